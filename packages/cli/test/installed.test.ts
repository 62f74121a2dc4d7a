import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

/** The command as it is installed: nothing of its modules is imported. */
const command = fileURLToPath(new URL('../bin.js', import.meta.url))

describe('the installed command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'installed-'))
  let wallet: CreatedWallet
  beforeAll(async () => {
    wallet = await startCreatedWallet({ create: plainWallet })
  })
  afterAll(async () => {
    await wallet.stop()
    rmSync(folder, { recursive: true })
  })

  /** Resolves to the exit code and the output. */
  function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const env = { ...process.env, XDG_CONFIG_HOME: folder }
    return new Promise((resolve) => {
      const child = execFile(process.execPath, [command, ...args], { env }, (_, out, err) =>
        resolve({ code: child.exitCode ?? -1, out, err }),
      )
    })
  }

  test('tells its version and its commands', async () => {
    expect(await run('--version')).toMatchObject({ code: 0, out: `${manifest.version}\n` })
    const { code, out } = await run('--help')
    expect(code).toBe(0)
    for (const name of ['key', 'request', 'pay', 'grant', 'read', 'list']) {
      expect(out).toContain(name)
    }
  })

  test('ends with 2 for arguments that it does not understand', async () => {
    expect(await run('refund')).toMatchObject({ code: 2, out: '' })
  })

  test('requests money of a wallet, and reads the request again', async () => {
    const bob = `${wallet.baseUrl}/bob`
    const asked = await run('request', bob, '--amount', '5.00', '--timeout', '600')
    expect(asked.code).toBe(0)
    const url = asked.out.trim()
    expect(url).toContain(`${wallet.baseUrl}/incoming-payments/`)
    const read = await run('read', url, '--timeout', '600')
    expect(read.code).toBe(0)
    expect(JSON.parse(read.out)).toMatchObject({ receivedAmount: { value: '0' } })
  })
})
