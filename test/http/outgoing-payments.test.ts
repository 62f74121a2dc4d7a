import { describe, expect, test } from 'vitest'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  pay,
  payByQuote,
  quoteToken,
  usd,
  shopReceiver,
} from '../support/spending.js'
import { alice, resourceServer } from '../support/world.js'

describe('x', () => {
  test('y', async () => {
    const world = createSpendingWorld()
    const client = world.client()
    const { token } = await grantToPay(world, client)
    const q = await newQuote(client, await quoteToken(client), { debitAmount: usd(1000) })
    console.log(q.status, q.body)
    console.log(await client.getPayment(await quoteToken(client), q.body.id))
    const p = await payByQuote(client, token, q.body.id)
    console.log(p.status, p.body, world.errors, world.refusals)
    console.log((await payByQuote(client, token, q.body.id)).body)
    const p2 = await pay(client, token, 1500)
    console.log(p2.status, p2.body)
    const p3 = await pay(client, token, 1)
    console.log(p3.status, p3.body)
    const id = world.resources.outgoingPayments.idOf(p.body.id) ?? ''
    console.log(await world.resources.outgoingPayments.begin(id))
    console.log(await world.resources.outgoingPayments.settle({ paymentId: id, sentAmount: usd(500), deliveredAmount: usd(500), final: true }))
    const p4 = await pay(client, token, 500)
    console.log(p4.status, p4.body)
    console.log((await client.getPayment(token, `${resourceServer}/outgoing-payment-grant`)).body)
    console.log((await client.getPayment(token, `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`)).body)
  })
})
