import { expect, test } from 'vitest'
import {
  createSpendingWorld,
  newQuote,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf } from '../support/spending-client.js'
import { closed } from '../support/world.js'

test('an account that is not active gets no quotes and payments, from clients, its owner or the host', async () => {
  const world = createSpendingWorld()
  const client = world.client()
  const { quotes, outgoingPayments, incomingPayments } = world.resources
  const token = await quoteToken(client)
  const amount = { debitAmount: usd(100) }
  const asked = { walletAddress: closed, receiver: shopReceiver, ...amount }
  const inactive = [400, 'inactive_wallet_address']
  expect(errorOf(await newQuote(client, token, asked))).toEqual(inactive)
  const { body } = await client.request([{ type: 'incoming-payment', actions: ['create'] }])
  expect(
    errorOf(await client.createPayment(body.access_token.value, { walletAddress: closed })),
  ).toEqual(inactive)
  const key = { idempotencyKey: 'one' }
  const orders = [
    () => quotes.create(asked),
    () => outgoingPayments.create({ ...asked, ...key }),
    () => incomingPayments.create({ walletAddress: closed, ...key }),
  ]
  for (const order of orders) {
    expect(await order()).toMatchObject({ ok: false, refusal: 'wallet_address_inactive' })
  }
})
