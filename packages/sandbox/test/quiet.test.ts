import { expect, test, vi } from 'vitest'
import { startSandbox } from '../src/index.js'
import { clientFor, invoiceOf, payerOf } from './support/payer.js'

test('The sandbox prints nothing when payments wait for their receiver, or are cut off as it stops', async () => {
  const printed = vi.spyOn(console, 'error').mockReturnValue()
  const sandbox = await startSandbox({ port: 0, approve: ['all'], outboundTimeoutMs: 60_000 })
  try {
    const client = await clientFor(sandbox)
    const payer = await payerOf(client, sandbox.account('alice').walletAddress)
    const quoteOf = async (value: string) => {
      const { id } = await invoiceOf(client, sandbox.account('dana').walletAddress, value)
      return (await payer.quote(id)).id
    }
    const [long, waiting] = [await quoteOf('500000'), await quoteOf('100')]
    await payer.create(long)
    const packets = () => sandbox.requests().filter(({ path }) => path.startsWith('/ilp/')).length
    await expect.poll(packets).toBeGreaterThan(5)

    const fault = { fault: 'unavailable', operation: 'getIncomingPayment', times: 1_000 } as const
    sandbox.fault({ ...fault, wallet: sandbox.wallets[1].url })
    await payer.create(waiting)
    const hasRead = () => sandbox.requests().some((request) => request.fault === 'unavailable')
    await expect.poll(hasRead).toBe(true)
  } finally {
    await sandbox.stop()
  }
  const { calls } = printed.mock
  printed.mockRestore()
  expect(calls).toEqual([])
})
