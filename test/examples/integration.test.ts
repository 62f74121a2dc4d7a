import { perMinute } from 'create-open-payments-server/wallet/rate-limit'
import fc from 'fast-check'
import { testClient } from 'open-payments-server-testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Ledger, Market, Rail } from '../../examples/integration/host.js'
import {
  payable,
  paymentSender,
  quotesOf,
  receivable,
  requestMoney,
} from '../../examples/integration/payments.js'
import { authorizationServer, resourceServer } from '../../examples/integration/two-processes.js'
import type { OutgoingPaymentEvent } from '../../src/entry-core.js'
import { type RequestedPayment, toFetch } from '../../src/index.js'
import { balanceProperty } from '../support/held-balances.js'
import { privateJwkOf } from '../support/introspection.js'
import { testKey } from '../support/keys.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  newQuote,
  otherReceiver,
  outgoingItem,
  pay,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf } from '../support/spending-client.js'
import { alice } from '../support/world.js'

describe('requesting money for an invoice', () => {
  test('returns one URL for each invoice, also after a repeat', async () => {
    const { resources } = createSpendingWorld()
    const invoice = { number: '17', payee: alice, total: usd(100) }
    const url = await requestMoney(resources, invoice)
    expect(resources.incomingPayments.idOf(url)).toBeDefined()
    expect(await requestMoney(resources, invoice)).toBe(url)
    expect(await requestMoney(resources, { ...invoice, number: '18' })).not.toBe(url)
    const mismatched = { ...invoice, total: { ...usd(1), assetCode: 'EUR' } }
    await expect(requestMoney(resources, { ...mismatched, number: '19' })).rejects.toThrow('asset')
  })
})

describe('the limit of calls in each minute', () => {
  const call = {
    client: 'https://shop.example',
    operation: 'createQuote',
    method: 'POST',
    bucket: 'requests',
  } as const

  test('is for each client, and begins again with the next minute', () => {
    const limit = perMinute(2)
    const other = { ...call, client: 'https://other.example' }
    const results = [call, call, call, other].map((each) => limit({ ...each, at: 61_000 }))
    expect(results).toEqual([undefined, undefined, { retryAfterMs: 59_000 }, undefined])
    expect(limit({ ...call, at: 120_000 })).toBeUndefined()
  })

  test('leaves a client that has used up its requests its revocations', () => {
    const limit = perMinute(1)
    const revocation = {
      ...call,
      operation: 'revokeToken',
      method: 'DELETE',
      bucket: 'revocations',
    } as const
    const results = [call, call, revocation].map((each) => limit({ ...each, at: 0 }))
    expect(results).toEqual([undefined, { retryAfterMs: 60_000 }, undefined])
  })

  test('is not for calls that need no signature, because all strangers would share it', () => {
    const { client: _, ...unsigned } = call
    const limit = perMinute(0)
    expect(limit({ ...unsigned, at: 0 })).toBeUndefined()
    expect(limit({ ...call, at: 0 })).toEqual({ retryAfterMs: 60_000 })
  })
})

describe('the servers in two processes', () => {
  test('accept a token of the other, over HTTP', async () => {
    const key = testKey('op')
    const auth = authorizationServer(key.x)
    const sent: string[] = []
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
      sent.push(url)
      return toFetch(auth.handle)(new Request(url, init))
    })
    onTestFinished(() => void vi.unstubAllGlobals())
    const resources = resourceServer(privateJwkOf(key))
    const shop = testClient({ seed: 'shop', kid: 'shop-key' })
    const access = [{ type: 'incoming-payment', actions: ['create'] }]
    const granted = await shop.send(auth.handle, {
      method: 'POST',
      url: 'https://auth.wallet.example/',
      body: { client: shop.client, access_token: { access } },
    })
    const { value } = (granted.body as { access_token: { value: string } }).access_token
    const created = await shop.send(resources.handle, {
      method: 'POST',
      url: 'https://wallet.example/incoming-payments',
      body: { walletAddress: alice },
      token: value,
    })
    expect(created.status).toBe(201)
    expect(sent).toEqual(['https://auth.wallet.example/introspect'])
  })
})

describe('the payment sender', () => {
  async function paid(...outcomes: ({ sent: string; arrived: boolean } | 'crash')[]) {
    const world = createSpendingWorld()
    const client = world.client()
    const { token } = await grantToPay(world, client, [outgoingItem()])
    const { body } = await pay(client, token, 1000)
    const { outgoingPayments, events } = world.resources
    const id = outgoingPayments.idOf(body.id) ?? ''

    const asked: string[] = []
    const rail: Rail = {
      async send(payment: OutgoingPaymentEvent) {
        asked.push(payment.outgoingPaymentId)
        const outcome = outcomes.shift() ?? 'crash'
        if (outcome === 'crash') throw new Error('the process has crashed')
        const { sent, arrived } = outcome
        return { arrived, sentAmount: usd(sent), deliveredAmount: usd(sent) }
      },
    }
    /** Delivers what is due, and returns the state of the payment. */
    async function drain() {
      const drained = await events.drain(paymentSender(world.resources, rail))
      const { status: state, sentAmount } = (await outgoingPayments.get(id)) ?? {}
      return { ...drained, state, sent: sentAmount?.value, asked: asked.length }
    }
    return { ...world, id, drain }
  }

  test('begins a payment, sends it, and settles it', async () => {
    const { drain } = await paid({ sent: '1000', arrived: true })
    expect(await drain()).toMatchObject({ failed: 0, state: 'completed', sent: '1000', asked: 1 })
    expect(await drain()).toMatchObject({ state: 'completed', asked: 1 })
  })

  test('settles a payment that arrived in part, and fails one that did not arrive', async () => {
    const less = await paid({ sent: '900', arrived: true })
    expect(await less.drain()).toMatchObject({ state: 'completed', sent: '900' })
    const none = await paid({ sent: '100', arrived: false })
    expect(await none.drain()).toMatchObject({ state: 'failed', sent: '100' })
  })

  test('asks the rail again after a crash', async () => {
    const { drain, clock } = await paid('crash', { sent: '1000', arrived: true })
    expect(await drain()).toMatchObject({ failed: 1, state: 'begun', asked: 1 })
    clock.advance(60_000)
    expect(await drain()).toMatchObject({ failed: 0, state: 'completed', asked: 2 })
  })

  test('sends nothing for a cancelled payment', async () => {
    const { drain, id, resources } = await paid({ sent: '1000', arrived: true })
    await resources.outgoingPayments.cancel(id)
    expect(await drain()).toMatchObject({ failed: 0, state: 'failed', asked: 0 })
  })

  test('does not acknowledge an event whose outcome cannot be recorded', async () => {
    const { drain } = await paid({ sent: '1001', arrived: true })
    expect(await drain()).toMatchObject({ failed: 1, state: 'begun' })
  })
})

/** A ledger as the example describes it: it holds the amount of each payment once. */
function holdingLedger() {
  const holds = new Map<string, RequestedPayment>()
  let balance = 0n
  const ledger: Ledger = {
    isScreened: async (receiver) => receiver === shopReceiver,
    async covers(payment) {
      const others = [...holds.values()].filter(
        ({ outgoingPaymentId: id, walletAddress }) =>
          walletAddress === payment.walletAddress && id !== payment.outgoingPaymentId,
      )
      const all = [...others, payment].map(({ debitAmount }) => BigInt(debitAmount.value))
      return all.reduce((sum, value) => sum + value, 0n) <= balance
    },
    async hold(payment) {
      if (!(await ledger.covers(payment))) return false
      holds.set(payment.outgoingPaymentId, payment)
      return true
    },
  }
  async function reset(given: bigint) {
    holds.clear()
    balance = given
  }
  return { mayPay: payable(ledger), reset }
}

describe('the host that holds funds', () => {
  test('refuses payments beyond the balance, and to receivers that are not screened', async () => {
    const { mayPay, reset } = holdingLedger()
    await reset(1_500n)
    const world = createSpendingWorld({ resources: { policy: { mayPay } } })
    const client = world.client()
    const { token } = await grantToPay(world, client, [outgoingItem()])
    expect((await pay(client, token, 1000)).status).toBe(201)
    expect(errorOf(await pay(client, token, 1000))).toEqual([403, 'insufficient_funds'])
    const elsewhere = { incomingPayment: otherReceiver }
    expect(errorOf(await pay(client, token, 1, elsewhere))).toEqual([403, 'payment_denied'])
  })

  test('holds nothing for a preview, which counts what is held for payments', async () => {
    const { mayPay, reset } = holdingLedger()
    await reset(1_500n)
    const world = createSpendingWorld({ resources: { policy: { mayPay } } })
    const client = world.client()
    const { token, grantId } = await grantToPay(world, client, [outgoingItem()])
    const preview = (value: number) => {
      const asked = { walletAddress: alice, receiver: shopReceiver, debitAmount: usd(value) }
      const { outgoingPayments } = world.resources
      return outgoingPayments.preview({ grantId, ...asked, asksMayPay: true })
    }
    expect(await preview(1_500)).toMatchObject({ ok: true })
    expect((await pay(client, token, 1_000)).status).toBe(201)
    expect(await preview(501)).toMatchObject({ ok: false, refusal: 'funds_insufficient' })
    expect(await preview(500)).toMatchObject({ ok: true })
    expect((await pay(client, token, 500)).status).toBe(201)
  })

  test('never pays more than the balance, whatever keys and amounts are repeated', async () => {
    await fc.assert(balanceProperty(holdingLedger()), { numRuns: 100 })
  })
})

test('the host that limits what accounts receive refuses payments and arrivals', async () => {
  let max = 500n
  const policy = { mayReceive: receivable({ receiveMax: async () => max }) }
  const { incomingPayments } = createSpendingWorld({ resources: { policy } }).resources
  const create = (value: number) =>
    incomingPayments.create({
      walletAddress: alice,
      incomingAmount: usd(value),
      idempotencyKey: `${value}`,
    })
  expect(await create(501)).toMatchObject({ refusal: 'amount_too_large' })
  const created = await create(500)
  const id = created.ok ? created.payment.paymentId : ''
  const arrive = (value: number) =>
    incomingPayments.receive(id, { transferId: `${max} ${value}`, amount: usd(value) })
  expect(await arrive(501)).toMatchObject({ refusal: 'amount_too_large' })
  expect(await arrive(400)).toMatchObject({ changed: true })
  max = 0n
  expect(await arrive(1)).toMatchObject({ refusal: 'payment_not_allowed' })
})

describe('quotes of a market', () => {
  const market: Market = {
    async lookUp(receiver) {
      if (receiver === goneReceiver) return undefined
      const asset = { assetCode: 'USD', assetScale: 2 }
      return receiver === shopReceiver ? { asset, remaining: usd(700) } : { asset }
    },
    arriving: (_, debitAmount) => ({ ok: true, debitAmount, receiveAmount: usd(1) }),
    costOf: (_, receiveAmount) => ({ ok: true, debitAmount: usd(2), receiveAmount }),
  }

  test.each([
    [
      'the debit amount',
      { debitAmount: usd(500) },
      { debitAmount: usd(500), receiveAmount: usd(1) },
    ],
    [
      'the receive amount',
      { receiveAmount: usd(5) },
      { debitAmount: usd(2), receiveAmount: usd(5) },
    ],
    ['the incoming amount', {}, { debitAmount: usd(2), receiveAmount: usd(700) }],
    ['no amount', { receiver: `${shopReceiver}0` }, { error: { code: 'invalid_amount' } }],
    ['no receiver', { receiver: goneReceiver }, { error: { code: 'invalid_receiver' } }],
  ])('are created from %s', async (_, asked, expected) => {
    const world = createSpendingWorld({ resources: { pricing: quotesOf(market) } })
    const client = world.client()
    const { body } = await newQuote(client, await quoteToken(client), asked)
    expect(body).toMatchObject(expected)
  })
})
