import { randomUUID } from 'node:crypto'
import type { HttpRequest } from 'open-payments-server/adapter'
import type { KeyPair } from '../../../test/support/keys.js'
import { signedRequest } from '../../../test/support/sign.js'
import { bob, grantEndpoint, origin, resourceServer } from '../fixtures.js'
import type { Send } from './sender.js'

const alice = `${origin}/alice`
const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })
const receiver = 'https://bank.example/incoming-payments/1'

/** A client that measures nothing but its own responses. */
export interface Client {
  readonly walletAddress: string
  readonly key: KeyPair
  readonly send: Send
  /** Is called with each request that was served. */
  readonly onServed: (request: HttpRequest) => void
}

type Sent = { readonly token?: string; readonly body?: object }

// biome-ignore lint/suspicious/noExplicitAny: the bodies of responses
type Body = any

/** Signs and sends a request; throws if it is refused, because honest requests must not be. */
export async function call(
  client: Client,
  method: string,
  url: string,
  sent: Sent = {},
): Promise<Body> {
  const { token, body } = sent
  const request = signedRequest({
    method,
    url,
    key: client.key,
    created: Math.floor(Date.now() / 1_000),
    nonce: randomUUID(),
    ...(token !== undefined && { token }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const { status, text } = await client.send(request)
  if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
  client.onServed(request)
  return text === '' ? undefined : JSON.parse(text)
}

export function requestGrant(
  client: Client,
  access: readonly object[],
  interact?: object,
): Promise<Body> {
  const body = { client: client.walletAddress, access_token: { access }, interact }
  return call(client, 'POST', grantEndpoint, { body })
}

/** A purchase: the shop asks for money, looks at it, and ends its grant. */
async function receive(client: Client): Promise<void> {
  const actions = ['create', 'read', 'list', 'complete']
  const granted = await requestGrant(client, [
    { type: 'incoming-payment', actions, identifier: bob },
  ])
  const { value: first, manage } = granted.access_token
  const body = { walletAddress: bob, incomingAmount: usd('2500'), metadata: { order: '17' } }
  const url = `${resourceServer}/incoming-payments`
  const created = await call(client, 'POST', url, { token: first, body })
  await call(client, 'GET', created.id, { token: first })
  const rotated = await call(client, 'POST', manage, { token: first })
  const { value: token } = rotated.access_token
  await call(client, 'GET', `${url}?first=10&wallet-address=${bob}`, { token })
  await call(client, 'POST', `${created.id}/complete`, { token })
  await call(client, 'DELETE', rotated.access_token.manage, { token })
}

/** Requests access to which the owner consents, and returns the token. */
export async function consented(client: Client, access: object): Promise<string> {
  const finish = { method: 'redirect', uri: 'https://shop.example/back', nonce: randomUUID() }
  const pending = await requestGrant(client, [access], { start: ['redirect'], finish })
  const id = pending.interact.redirect.split('/').at(-1)
  const approval = { method: 'POST', url: `/approve/${id}`, headers: [], body: Buffer.alloc(0) }
  const { text: interact_ref } = await client.send(approval)
  const { uri, access_token } = pending.continue
  const continued = { token: access_token.value, body: { interact_ref } }
  const granted = await call(client, 'POST', uri, continued)
  return granted.access_token.value
}

/** A payment: a quote, consent, and payments under the limit, with and without a quote. */
async function spend(client: Client): Promise<void> {
  const asked = await requestGrant(client, [{ type: 'quote', actions: ['create', 'read'] }])
  const quote = await call(client, 'POST', `${resourceServer}/quotes`, {
    token: asked.access_token.value,
    body: { walletAddress: alice, receiver, method: 'ilp', debitAmount: usd('100') },
  })
  const token = await consented(client, {
    type: 'outgoing-payment',
    actions: ['create', 'read', 'list'],
    identifier: alice,
    limits: { debitAmount: usd('2500') },
  })
  const url = `${resourceServer}/outgoing-payments`
  const byQuote = { walletAddress: alice, quoteId: quote.id }
  const paid = await call(client, 'POST', url, { token, body: byQuote })
  const direct = { walletAddress: alice, incomingPayment: receiver, debitAmount: usd('5') }
  await call(client, 'POST', url, { token, body: direct })
  await call(client, 'GET', paid.id, { token })
  await call(client, 'GET', `${url}?first=10&wallet-address=${alice}`, { token })
}

/** Uses the servers until it is stopped, with one request at a time. */
export async function liveHonestly(client: Client, isStopped: () => boolean): Promise<void> {
  for (let i = 0; !isStopped(); i++) await (i % 2 === 0 ? receive(client) : spend(client))
}
