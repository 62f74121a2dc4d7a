import { describe, expect, test } from 'vitest'
import type { Market, Rail } from '../../examples/integration/host.js'
import { paymentSender, quotesOf } from '../../examples/integration/payments.js'
import type { OutgoingPaymentEvent } from '../../src/index.js'
import {
  createSpendingWorld,
  goneReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'

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
      const { state, sent } = (await outgoingPayments.get(id)) ?? {}
      return { ...drained, state, sent, asked: asked.length }
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

describe('quotes of a market', () => {
  const market: Market = {
    async lookUp(receiver) {
      if (receiver === goneReceiver) return undefined
      const asset = { assetCode: 'USD', assetScale: 2 }
      return receiver === shopReceiver ? { asset, remaining: usd(700) } : { asset }
    },
    arriving: (_, debitAmount) => ({ debitAmount, receiveAmount: usd(1) }),
    costOf: (_, receiveAmount) => ({ debitAmount: usd(2), receiveAmount }),
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
