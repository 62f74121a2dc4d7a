import { expect, test, vi } from 'vitest'
import { startSandbox } from '../src/index.js'
import { clientFor, invoiceOf, payerOf } from './support/payer.js'

test('The sandbox prints nothing when payments are cut off as it stops', async () => {
  const printed = vi.spyOn(console, 'error').mockReturnValue()
  const sandbox = await startSandbox({ port: 0, approve: ['all'], outboundTimeoutMs: 60_000 })
  try {
    const client = await clientFor(sandbox)
    const payer = await payerOf(client, sandbox.account('alice').walletAddress)
    const { id } = await invoiceOf(client, sandbox.account('dana').walletAddress, '100')
    await payer.pay(id)
  } finally {
    await sandbox.stop()
  }
  const { calls } = printed.mock
  printed.mockRestore()
  expect(calls).toEqual([])
})
