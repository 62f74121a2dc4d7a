import { afterAll, beforeAll, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import {
  type Access,
  allDeployments,
  approvedToken,
  clientOf,
  failure,
  startDeployment,
  tokenWithoutConsent,
  usd,
} from '../support/official-client.js'

let shop: Shop
let client: Awaited<ReturnType<typeof clientOf>>
beforeAll(async () => {
  shop = await openShop()
  client = await clientOf(shop)
})
afterAll(() => shop.stop())

/** The suites beside this file run on the first deployment. */
const [, ...others] = allDeployments

test.each(others)(
  'the published client requests, pays, lists, rotates and is refused over $name',
  async (deployment) => {
    const running = await startDeployment(deployment)
    const { alice, bob, auth, op } = running
    try {
      const open: Access = [
        {
          type: 'incoming-payment',
          actions: ['create', 'read', 'list', 'complete'],
          identifier: bob,
        },
        { type: 'quote', actions: ['create'] },
      ]
      const receiving = { url: op, accessToken: await tokenWithoutConsent(client, auth, open) }
      const { id: receiver } = await client.incomingPayment.create(receiving, {
        walletAddress: bob,
        incomingAmount: usd('1000'),
      })
      const paying: Access = [
        {
          type: 'outgoing-payment',
          actions: ['create', 'read'],
          identifier: alice,
          limits: { debitAmount: usd('1010') },
        },
      ]
      const { value, manage } = await approvedToken(client, auth, paying, shop)
      const asked = { walletAddress: alice, receiver, method: 'ilp' as const }
      const { id: quoteId } = await client.quote.create(receiving, asked)
      const { access_token: rotated } = await client.token.rotate({
        url: manage,
        accessToken: value,
      })
      const body = { walletAddress: alice, quoteId }
      const using = { url: op, accessToken: rotated.value }
      const payment = await client.outgoingPayment.create(using, body)
      expect(payment.debitAmount).toEqual(usd('1010'))
      const listed = { ...receiving, walletAddress: bob }
      const { result } = await client.incomingPayment.list(listed, {
        first: 1,
        'wallet-address': bob,
      })
      expect(result.map(({ id }) => id)).toEqual([receiver])
      const old = client.outgoingPayment.create({ url: op, accessToken: value }, body)
      expect(await failure(old)).toMatchObject({ status: 401, code: 'invalid_token' })
    } finally {
      await running.stop()
    }
  },
)
