import { describe, expect, test } from 'vitest'
import { type Authority, authorities, payerOf } from '../support/authorities.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { alice, bob, incomingAccess, origin, resourceServer } from '../support/world.js'

const alicia = `${origin}/alicia`
const account = { assetCode: 'USD', assetScale: 2 }

/** A wallet in which Alice has been paid and has paid, and whose accounts a test can rename. */
async function setUp(authority: Authority = 'a client under a grant') {
  const urls = [alice, bob]
  const world = createSpendingWorld({
    resources: {
      walletAddresses: {
        find: async (url) => (urls.includes(url) ? { url, ...account } : undefined),
      },
    },
  })
  const client = world.client()
  const { body } = await client.request([{ ...incomingAccess, identifier: alice }])
  const incomingToken = body.access_token.value as string
  const incoming = await client.createPayment(incomingToken, { walletAddress: alice })
  const grant = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(100) })])
  const outgoing =
    authority === 'a client under a grant'
      ? await pay(client, grant.token, 10)
      : await (await payerOf(world, authority)).pay(10)
  expect([incoming.status, outgoing.status]).toEqual([201, 201])
  return { world, client, urls, incomingToken, incoming, outgoing, ...grant }
}

describe('an account with another wallet address', () => {
  test('is paid from by its owner under the address that it has now', async () => {
    const { world, urls } = await setUp()
    const payer = await payerOf(world, 'the owner of the account')
    urls.splice(0, 2, alicia, bob)
    expect((await payer.pay(10)).status).toBe(404)
    expect(await payer.pay(10, { walletAddress: alicia })).toMatchObject({
      status: 201,
      body: { walletAddress: alicia },
    })
  })

  test.each(authorities)(
    'keeps its payments by %s, their arrivals and the tokens of its grants',
    async (authority) => {
      const { world, client, urls, ...given } = await setUp(authority)
      urls.splice(0, 2, alicia, bob)
      const { incomingPayments, outgoingPayments } = world.resources
      const incomingId = incomingPayments.idOf(given.incoming.body.id) ?? ''
      const outgoingId = outgoingPayments.idOf(given.outgoing.body.id) ?? ''
      const arrival = { transferId: 'transfer-1', amount: usd(5) }
      expect(await incomingPayments.receive(incomingId, arrival)).toMatchObject({ changed: true })
      expect(await client.getPayment(given.incomingToken, given.incoming.body.id)).toMatchObject({
        status: 200,
        body: { walletAddress: alice, receivedAmount: usd(5) },
      })
      expect(await outgoingPayments.begin(outgoingId)).toMatchObject({ ok: true })
      const listed = await outgoingPayments.list({ walletAddress: alice })
      expect(listed.result).toHaveLength(1)
      expect(await world.auth.grants.list({ resourceOwner: 'alice' })).toMatchObject({
        result: [{ grantId: given.grantId, status: 'approved' }],
      })
      expect((await client.rotate(given.accessToken)).status).toBe(200)
    },
  )

  test('pays under earlier grants only while the earlier address is an account too', async () => {
    const { client, urls, token } = await setUp()
    urls.splice(0, 2, alicia, bob)
    expect((await pay(client, token, 10)).status).toBe(404)
    const renamed = await pay(client, token, 10, { walletAddress: alicia })
    expect(renamed.status).toBe(403)
    urls.push(alice)
    const paid = await pay(client, token, 10)
    expect(paid).toMatchObject({ status: 201, body: { grantSpentDebitAmount: usd(20) } })
    const list = `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`
    const listed = await client.getPayment(token, list)
    expect(listed.body.result).toHaveLength(2)
  })
})
