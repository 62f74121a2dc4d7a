import type { AccessItem } from '../../../src/index.js'
import {
  type createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  usd,
} from '../spending.js'
import { approvedGrant, bob, incomingAccess, type TestClient } from '../world.js'

/** Access to every operation that needs a token. */
export const everything: readonly AccessItem[] = [
  {
    type: 'incoming-payment',
    actions: ['create', 'read', 'list', 'complete'],
    identifier: bob,
  },
  outgoingItem({ debitAmount: usd(2500) }),
  { type: 'quote', actions: ['create', 'read'] },
]

export type Held = Awaited<ReturnType<typeof createHeld>>

/** Creates one record of each kind that a client can request. */
export async function createHeld(world: ReturnType<typeof createSpendingWorld>, shop: TestClient) {
  const expired = await grantToPay(world, shop, everything)
  world.clock.advance(600_000)
  const { accessToken: token } = await grantToPay(world, shop, everything)
  const granted = async () => (await shop.request([incomingAccess])).body.access_token
  const [rotating, revoking] = [await granted(), await granted()]
  const [continuing, cancelling] = [
    await approvedGrant(world, shop),
    await approvedGrant(world, shop),
  ]
  const incoming = await shop.createPayment(token.value, { walletAddress: bob })
  const quote = await newQuote(shop, token.value)
  const outgoing = await pay(shop, token.value, 100)
  return {
    token,
    expired: expired.accessToken,
    rotating,
    revoking,
    continuing,
    cancelling,
    incoming: incoming.body.id as string,
    quote: quote.body.id as string,
    outgoing: outgoing.body.id as string,
  }
}
