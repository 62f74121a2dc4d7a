import { expect, test } from 'vitest'
import { priceOfOwn } from '../../examples/frameworks/nest/src/own-accounts.js'
import { createSpendingWorld, eur, newQuote, quoteToken, usd } from '../support/spending.js'
import { bob, type World } from '../support/world.js'

test.each([
  ['another currency', eur(100)],
  ['another scale', { ...usd(100), assetScale: 0 }],
])(
  'a price of the guide refuses a receiveAmount in %s as a mistake of the client',
  async (_, receiveAmount) => {
    const world: World = createSpendingWorld({
      resources: { pricing: { price: (request) => priceOfOwn(world.resources, request) } },
    })
    const client = world.client()
    const asked = { walletAddress: bob, idempotencyKey: 'invoice' }
    const invoice = await world.resources.incomingPayments.create(asked)
    if (!invoice.ok) throw new Error(invoice.reason)
    const token = await quoteToken(client)
    const quoted = await newQuote(client, token, { receiver: invoice.url, receiveAmount })
    expect(quoted).toMatchObject({ status: 400, body: { error: { code: 'invalid_amount' } } })
    const right = { receiver: invoice.url, receiveAmount: usd(100) }
    expect(await newQuote(client, token, right)).toMatchObject({ status: 201 })
  },
)
