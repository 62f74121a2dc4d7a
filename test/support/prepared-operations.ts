import type { AccessItem } from '../../src/index.js'
import { createSpendingWorld, grantToPay, newQuote, payByQuote, quoteToken } from './spending.js'
import { approvedGrant, bob, incomingAccess, issuedGrant } from './world.js'

/** Prepares one call of each operation that clients and hosts make most, with its request signed and built. */
export async function preparedOperations(): Promise<Record<string, () => Promise<unknown>>> {
  const world = createSpendingWorld()
  const client = world.client()
  const { resources } = world
  const approved = await approvedGrant(world, client)
  const issued = await issuedGrant(world, client)
  const creating: AccessItem = { ...incomingAccess, actions: ['create', 'read', 'complete'] }
  const { body: granted } = await client.request([creating])
  const token: string = granted.access_token.value
  const { body: payment } = await client.createPayment(token, { walletAddress: bob })
  const paymentId = resources.incomingPayments.idOf(payment.id) ?? ''
  const paying = await grantToPay(world, client)
  const { body: quote } = await newQuote(client, await quoteToken(client))
  const funds = { transferId: 'one', amount: { value: '10', assetCode: 'USD', assetScale: 2 } }
  return {
    'request a grant': () => client.request([incomingAccess]),
    'continue a grant': () => client.continue(approved.body.continue, approved.interactRef),
    'rotate a token': () => client.rotate(issued.token),
    'create an incoming payment': () => client.createPayment(token, { walletAddress: bob }),
    'create an outgoing payment': () => payByQuote(client, paying.token, quote.id),
    receive: () => resources.incomingPayments.receive(paymentId, funds),
  }
}
