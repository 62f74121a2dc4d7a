import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSandbox } from 'open-payments-sandbox'
import { afterAll, expect, test } from 'vitest'
import { doctor } from './support/doctor.js'

const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
afterAll(() => rmSync(folder, { recursive: true }))

test.each([[[]], [['all']]])(
  'the doctor finds nothing wrong with the sandbox, which approves %j by rule',
  async (approve: readonly string[]) => {
    const sandbox = await startSandbox({ port: 0, approve, outboundTimeoutMs: 60_000 })
    try {
      const { walletAddress, privateKeyPem } = sandbox.account('app')
      const key = join(folder, 'key.pem')
      writeFileSync(key, privateKeyPem)
      for (const name of ['alice', 'emil']) {
        const client = ['--client', walletAddress, '--key', key]
        const account = sandbox.account(name).walletAddress
        const { code, out } = await doctor(['--allow-private', '--json', ...client, account])
        const { findings, skipped } = JSON.parse(out)
        expect({ code, findings, skipped }).toEqual({ code: 0, findings: [], skipped: [] })
      }
    } finally {
      await sandbox.stop()
    }
  },
)
