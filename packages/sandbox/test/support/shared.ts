import type { AuthenticatedClient } from '@interledger/open-payments'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/index.js'
import { clientFor } from './payer.js'

/** Gives the tests of a file a sandbox and a client, and removes faults and changes of the clock after each test. */
export function shareSandbox(
  rules: Pick<SandboxOptions, 'approve' | 'deny'>,
  started: (sandbox: Sandbox, client: AuthenticatedClient) => void,
): void {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, outboundTimeoutMs: 60_000, ...rules })
    started(sandbox, await clientFor(sandbox))
  })
  afterAll(() => sandbox.stop())
  afterEach(async () => {
    sandbox.clearFaults()
    await sandbox.moveClock({ reset: true })
  })
}
