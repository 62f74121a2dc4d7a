import { type AccessItem, type ServerOperation, walletAddressSubjects } from '../../src/index.js'
import {
  eur,
  euroReceiver,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  usd,
} from './spending.js'
import { type Surface, unsignedRequest } from './surface.js'
import {
  type Answer,
  alice,
  answerOf,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  outgoingAccess,
  resourceServer,
  type World,
  withFinish,
  withoutFinish,
} from './world.js'

/** A request that succeeds in another way than the simplest, with every member that the response can have. */
export interface Success {
  readonly name: string
  readonly operation: ServerOperation
  readonly run: (surface: Surface) => Promise<Answer>
}

const completing: AccessItem = { ...incomingAccess, actions: ['create', 'read', 'complete'] }

/** Creates an incoming payment with all members, of which a part has arrived. */
async function fullPayment({ shop, world }: Surface) {
  const { body } = await shop.request([completing])
  const token: string = body.access_token.value
  const { body: payment } = await shop.createPayment(token, {
    walletAddress: bob,
    incomingAmount: usd(1000),
    expiresAt: '2026-12-01T00:00:00.500Z',
    metadata: { invoice: 'INV-1', lines: [{ note: null }] },
  })
  const { incomingPayments } = world.resources
  const paymentId = incomingPayments.idOf(payment.id) ?? ''
  await incomingPayments.receive(paymentId, { transferId: payment.id, amount: usd(400) })
  return { token, url: payment.id as string, complete: () => incomingPayments.complete(paymentId) }
}

/** Requests the subject of the owner, and `more`. */
async function asking(more: object) {
  const world = createWorld({ auth: { subjects: walletAddressSubjects } })
  const client = world.client()
  const { body } = await client.post(grantEndpoint, {
    client: client.client,
    subject: { sub_ids: [{ id: alice, format: 'uri' }] },
    interact: withoutFinish,
    ...more,
  })
  await approve(world, interactionId(body.interact.redirect))
  return client.continue(body.continue)
}

function approve({ auth }: World, id: string) {
  return auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] })
}

const spent = `${resourceServer}/outgoing-payment-grant`
const received = { receiveAmount: eur(500), interval: 'R/2026-11-01T00:00:00Z/P1M' }

function success(operation: ServerOperation, name: string, run: Success['run']): Success {
  return { name, operation, run }
}

export const successes: readonly Success[] = [
  success('requestGrant', 'a grant that needs consent, with a redirect back', ({ shop }) =>
    shop.request([outgoingAccess], withFinish),
  ),
  success('requestGrant', 'a grant that needs consent, without a redirect back', ({ shop }) =>
    shop.request([outgoingAccess], withoutFinish),
  ),
  success('requestGrant', 'a grant for everything at once', ({ shop }) =>
    shop.request([
      { type: 'incoming-payment', actions: ['create', 'complete', 'read', 'list'] },
      { type: 'quote', actions: ['create', 'read'] },
    ]),
  ),
  success('discover', 'a CORS preflight', async ({ ask, handle }) => {
    const headers = [['Access-Control-Request-Method', 'POST']] as const
    return answerOf(await handle({ ...unsignedRequest(ask('discover')), headers }))
  }),
  success('continueGrant', 'a grant that is still pending', async ({ shop, world }) => {
    const { body } = await shop.request([outgoingAccess], withoutFinish)
    world.clock.advance(5_000)
    return shop.continue(body.continue)
  }),
  success('continueGrant', 'a token with limits of every kind', async ({ shop, world }) => {
    const { body } = await shop.request([outgoingItem(received)], withoutFinish)
    await approve(world, interactionId(body.interact.redirect))
    return shop.continue(body.continue)
  }),
  success('continueGrant', 'only a subject', () => asking({})),
  success('continueGrant', 'a subject and a token', () =>
    asking({ access_token: { access: [outgoingAccess] } }),
  ),
  success('introspectToken', 'a token that is not active', ({ ask, send }) =>
    send(ask('introspectToken', 'unknown')),
  ),
  success('createIncomingPayment', 'a payment with all members', async (surface) => {
    const { ask, send } = surface
    const metadata = { nested: { deeper: [1, 'two', null] }, receivedAmount: 7 }
    const expiresAt = '2026-12-01T00:00:00+01:00'
    const more = { incomingAmount: usd(1), metadata, expiresAt }
    const body = JSON.stringify({ walletAddress: bob, ...more })
    return send({ ...ask('createIncomingPayment'), body })
  }),
  success('getIncomingPayment', 'a payment of which something has arrived', async (surface) => {
    const { token, url } = await fullPayment(surface)
    return surface.shop.getPayment(token, url)
  }),
  success('getIncomingPayment', 'a completed payment', async (surface) => {
    const { token, url, complete } = await fullPayment(surface)
    await complete()
    return surface.shop.getPayment(token, url)
  }),
  success('getIncomingPayment', 'the public view of a payment', async (surface) => {
    const { url } = await fullPayment(surface)
    return answerOf(await surface.handle(unsignedRequest({ method: 'GET', url })))
  }),
  success(
    'completeIncomingPayment',
    'a payment of which something has arrived',
    async (surface) => {
      const { token, url } = await fullPayment(surface)
      return surface.shop.post(`${url}/complete`, undefined, token)
    },
  ),
  success('listIncomingPayments', 'payments of all kinds', async (surface) => {
    await fullPayment(surface)
    return surface.send(surface.ask('listIncomingPayments'))
  }),
  success('listIncomingPayments', 'an empty list', ({ ask, send, world }) => {
    // No payment follows the last possible cursor.
    const last = Buffer.from(`${world.clock.now() + 1} z`).toString('base64url')
    const { url, ...asked } = ask('listIncomingPayments')
    return send({ ...asked, url: `${url}&cursor=${last}` })
  }),
  success('createQuote', 'a quote in another currency', async ({ shop }) =>
    newQuote(shop, await quoteToken(shop), { receiver: euroReceiver, debitAmount: usd(100) }),
  ),
  success(
    'createOutgoingPayment',
    'a payment with a quote, an interval and a limit on the received amount',
    async ({ shop, world }) => {
      const { token } = await grantToPay(world, shop, [outgoingItem(received)])
      const quote = await newQuote(shop, await quoteToken(shop), {
        receiver: euroReceiver,
        receiveAmount: eur(100),
      })
      return payByQuote(shop, token, quote.body.id, { metadata: { invoice: 'INV-1' } })
    },
  ),
  success('createOutgoingPayment', 'a payment without limits', async ({ shop, world }) => {
    const { token } = await grantToPay(world, shop, [outgoingItem()])
    return pay(shop, token, 100)
  }),
  success(
    'getOutgoingPayment',
    'a payment that failed after a part was sent',
    async ({ ask, held, send, world }) => {
      const { outgoingPayments } = world.resources
      const paymentId = outgoingPayments.idOf(held.outgoing) ?? ''
      await outgoingPayments.begin(paymentId)
      const some = { sentAmount: usd(40), deliveredAmount: usd(40) }
      await outgoingPayments.fail(paymentId, { ...some, reason: 'no route' })
      return send(ask('getOutgoingPayment'))
    },
  ),
  success('listOutgoingPayments', 'payments of all kinds', async ({ ask, held, send, shop }) => {
    await payByQuote(shop, held.token.value, held.quote, { metadata: { invoice: 'INV-1' } })
    return send(ask('listOutgoingPayments'))
  }),
  success(
    'getOutgoingPaymentGrant',
    'the spent part of a limit on the received amount',
    async ({ shop, world }) => {
      const { token } = await grantToPay(world, shop, [outgoingItem(received)])
      return shop.getPayment(token, spent)
    },
  ),
  success('getOutgoingPaymentGrant', 'a grant without limits', async ({ shop, world }) => {
    const { token } = await grantToPay(world, shop, [outgoingItem()])
    return shop.getPayment(token, spent)
  }),
]
