import { afterEach, describe, expect, test, vi } from 'vitest'
import { consumeEvents, createWallet, memoryStore, runSweeps } from '../../src/index.js'
import { createSpendingWorld, grantToPay, pay, shopReceiver, usd } from '../support/spending.js'
import { alice } from '../support/world.js'

afterEach(() => void vi.restoreAllMocks())

const failure = new Error('the table of accounts is gone')
const fails = () => Promise.reject(failure)

function walletWith(hooks: { readonly onError?: (error: unknown) => void } = {}) {
  return createWallet({
    baseUrl: 'https://wallet.example',
    consentUrl: 'https://wallet.example/consent',
    store: memoryStore(),
    walletAddresses: { find: fails },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    ...hooks,
  })
}

const request = { method: 'GET', url: '/alice', headers: [], body: new Uint8Array() } as const

describe('an error that no response shows', () => {
  test('is printed on the console by default', async () => {
    const print = vi.spyOn(console, 'error').mockReturnValue()
    expect((await walletWith().handle(request)).status).toBe(503)
    expect(print.mock.calls).toEqual([[failure]])
  })

  test('is received by onError instead, which may ignore it', async () => {
    const print = vi.spyOn(console, 'error').mockReturnValue()
    const onError = vi.fn()
    expect((await walletWith({ onError }).handle(request)).status).toBe(503)
    expect(onError).toHaveBeenCalledOnce()
    expect(print).not.toHaveBeenCalled()
  })

  test('is printed by consumers of events and by sweeps too', async () => {
    const print = vi.spyOn(console, 'error').mockReturnValue()
    const { drain, ...events } = walletWith().auth.events
    void drain
    const consumer = consumeEvents([{ ...events, drain: fails }], () => undefined)
    const sweeps = runSweeps([{ sweep: fails }])
    await expect.poll(() => print.mock.calls.flat()).toEqual([failure, failure])
    await Promise.all([consumer.stop(), sweeps.stop()])
  })
})

test('a refused order of the owner is returned to its caller, and no request that onRefusal reports', async () => {
  const onRefusal = vi.fn()
  const world = createSpendingWorld({
    resources: {
      onRefusal,
      policy: { mayPay: () => ({ ok: false, refusal: 'funds_insufficient', reason: 'too much' }) },
    },
  })
  const order = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(1) }
  const refused = await world.resources.outgoingPayments.create({ ...order, idempotencyKey: 'k' })
  expect(refused).toMatchObject({ refusal: 'funds_insufficient', reason: 'too much' })
  expect(onRefusal).not.toHaveBeenCalled()
  const client = world.client()
  const { token } = await grantToPay(world, client)
  expect((await pay(client, token, 1)).status).toBe(403)
  const report = { operation: 'createOutgoingPayment', refusal: 'funds_insufficient' }
  expect(onRefusal.mock.calls).toMatchObject([[report]])
})
