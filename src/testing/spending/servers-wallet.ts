import type {
  AccessItem,
  AccessType,
  AuthorizationServer,
  Clock,
  Handler,
  ResourceServer,
} from 'open-payments-server'
import type { ClientRequest, ClientResponse, TestClient } from '../client.js'
import type { ManualClock } from '../clock.js'
import {
  amountIn,
  bodyOf,
  fieldsOf,
  type GrantTokens,
  noTokens,
  refusalOf,
  spentAmount,
  stringOf,
  tokensOf,
  unexpected,
} from './responses.js'
import { accountsOf, type SpendingScene } from './scene.js'
import type { PaymentAnswer, SpendingAnswer, SpendingWallet, WalletRequest } from './wallet.js'

/** How long the `due` list may lag behind a commit, in milliseconds. */
const dueLagMs = 5_000

/** Servers of this library, and the client instance that pays. */
export interface ClientServers {
  readonly grantEndpoint: string
  readonly baseUrl: string
  readonly clock: ManualClock
  readonly client: TestClient
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
  /** Handles requests for payments. */
  readonly pay: Handler
  readonly resourceOwner: string
  /** Whether tokens may expire during a history. */
  readonly tokensExpire: boolean
}

/** The servers of a history, and what their client instance and host remember. */
interface State extends ClientServers {
  readonly walletAddresses: readonly string[]
  /** The current tokens of each grant. */
  readonly tokens: Map<string, GrantTokens>
  /** The quote of each request key, or its refusal. */
  readonly quotes: Map<string, ReturnType<typeof createQuote>>
  /** Payments that the host may not have begun yet. */
  readonly held: Set<string>
  newNonce(): string
}

/** Creates a wallet of servers of this library, with a client instance that signs its requests. */
export function serversWallet(servers: ClientServers, scene: SpendingScene): SpendingWallet {
  const { auth, clock } = servers
  const { outgoingPayments } = servers.resources
  let nonces = 0
  const state: State = {
    ...servers,
    walletAddresses: accountsOf(scene),
    tokens: new Map(),
    quotes: new Map(),
    held: new Set(),
    newNonce: () => `nonce-${++nonces}`,
  }
  return {
    grant: (asked, granted) => grant(state, asked, granted),
    pay: (request) => pay(state, request),
    quote: (request) => quoted(state, request),
    async begin(id) {
      const result = await outgoingPayments.begin(id)
      if (result.ok) state.held.delete(id)
      return answerOf(result)
    },
    reportSent: async (paymentId, totals) =>
      answerOf(await outgoingPayments.reportSent(paymentId, totals)),
    fail: async (paymentId, totals) => answerOf(await outgoingPayments.fail(paymentId, totals)),
    cancel: async (id) => answerOf(await outgoingPayments.cancel(id)),
    lapse: () => lapse(state),
    rotate: (grant) => rotate(state, grant, 'pay'),
    async revoke(grant) {
      await auth.grants.revoke(grant)
    },
    setClock: (now) => clock.set(now),
  }
}

/** The origin of the client instance that pays. */
export const finishOrigin = 'https://shop.example'

const quoteAccess: AccessItem = { type: 'quote' satisfies AccessType, actions: ['create', 'read'] }

/** Requests a grant with one token, or with a token for each use if the grant has several items. */
async function grant(
  state: State,
  asked: readonly AccessItem[],
  granted: readonly AccessItem[],
): Promise<string> {
  const { auth, client, grantEndpoint, tokens, walletAddresses, resourceOwner, newNonce } = state
  const isSplit = asked.length > 1
  const uri = `${finishOrigin}/back`
  const requested = await client.send(auth.handle, {
    method: 'POST',
    url: grantEndpoint,
    body: {
      client: client.client,
      access_token: isSplit
        ? [
            { label: 'pay', access: asked },
            { label: 'price', access: [quoteAccess] },
          ]
        : { access: [...asked, quoteAccess] },
      interact: {
        start: ['redirect'],
        finish: { method: 'redirect', uri, nonce: newNonce() },
      },
    },
  })
  const { interact, continue: next } = bodyOf(requested, 200)
  const [interaction = ''] = new URL(stringOf(interact, 'redirect')).pathname.split('/').slice(-1)
  const labelled = (label: string, items: readonly AccessItem[]) =>
    isSplit ? items.map((item) => ({ label, ...item })) : items
  const approved = await auth.interactions.approve(interaction, {
    resourceOwner,
    walletAddresses,
    access: [...labelled('pay', granted), ...labelled('price', [quoteAccess])],
  })
  if (!approved.ok) throw new Error(`approving the grant failed: ${approved.reason}`)
  const continued = await client.send(auth.handle, {
    method: 'POST',
    url: stringOf(next, 'uri'),
    token: stringOf(fieldsOf(next)['access_token'], 'value'),
    body: { interact_ref: new URL(approved.redirect ?? uri).searchParams.get('interact_ref') },
  })
  const id = interaction.slice(0, interaction.indexOf('.'))
  tokens.set(id, tokensOf(bodyOf(continued, 200)))
  return id
}

async function pay(state: State, request: WalletRequest): Promise<PaymentAnswer> {
  const { quotes, newNonce } = state
  const { grant, key, by, walletAddress, receiver: incomingPayment, debitAmount } = request
  const common = { walletAddress, metadata: { request: key } }
  if (by === 'direct') {
    const headers = [['idempotency-key', key]] as const
    const body = { ...common, incomingPayment, debitAmount }
    // Without a nonce, a repeat in the same second would be byte-identical.
    return createPayment(state, grant, () => ({ body, headers, nonce: newNonce() }))
  }
  // Concurrent repeats share one quote.
  const quoted = quotes.get(key) ?? createQuote(state, request)
  quotes.set(key, quoted)
  const quoteId = await quoted.catch((error: unknown) => {
    quotes.delete(key)
    throw error
  })
  if (typeof quoteId !== 'string') {
    quotes.delete(key)
    return quoteId
  }
  return createPayment(state, grant, () => ({ body: { ...common, quoteId } }))
}

async function createQuote(
  state: State,
  { grant, walletAddress, receiver, debitAmount }: WalletRequest,
) {
  const { client, resources, baseUrl } = state
  const body = { walletAddress, receiver, debitAmount, method: 'ilp' }
  const url = `${baseUrl}/quotes`
  const response = await withToken(state, grant, 'price', (token) =>
    client.send(resources.handle, { method: 'POST', url, body, token }),
  )
  return refusalOf(response) ?? stringOf(bodyOf(response, 201), 'id')
}

/** Returns what arrives according to a quote under a grant of its own: the grant of the request may be over. */
async function quoted({ auth, client, resources, ...urls }: State, request: WalletRequest) {
  const requested = await client.send(auth.handle, {
    method: 'POST',
    url: urls.grantEndpoint,
    body: { client: client.client, access_token: { access: [quoteAccess] } },
  })
  const token = tokensOf(bodyOf(requested, 200)).price.value
  const { walletAddress, receiver, debitAmount } = request
  const body = { walletAddress, receiver, debitAmount, method: 'ilp' }
  const response = await client.send(resources.handle, {
    method: 'POST',
    url: `${urls.baseUrl}/quotes`,
    body,
    token,
  })
  return amountIn(bodyOf(response, 201)['receiveAmount'])
}

async function createPayment(
  state: State,
  grant: string,
  request: () => Pick<ClientRequest, 'body' | 'headers' | 'nonce'>,
): Promise<PaymentAnswer> {
  const { client, resources, pay, baseUrl, held } = state
  const url = `${baseUrl}/outgoing-payments`
  const response = await withToken(state, grant, 'pay', (token) =>
    client.send(pay, { method: 'POST', url, token, ...request() }),
  )
  const refusal = refusalOf(response)
  if (refusal !== undefined) return refusal
  const created = bodyOf(response, 201)
  const id = resources.outgoingPayments.idOf(stringOf(created, 'id')) ?? ''
  held.add(id)
  return {
    accepted: true,
    id,
    ...spentAmount('spentDebitAmount', created['grantSpentDebitAmount']),
    ...spentAmount('spentReceiveAmount', created['grantSpentReceiveAmount']),
  }
}

/** Sends a request, and again with the next token if the access token has expired. */
async function withToken(
  state: State,
  grant: string,
  use: keyof GrantTokens,
  send: (token: string) => Promise<ClientResponse>,
): Promise<ClientResponse> {
  const tokenOf = () => (state.tokens.get(grant) ?? noTokens)[use].value
  const response = await send(tokenOf())
  // A race waits for the first commit of each request: a rotation must not come before it.
  if (response.status !== 401 || !state.tokensExpire) return response
  const { accepted } = await rotate(state, grant, use)
  return accepted === true ? send(tokenOf()) : response
}

async function rotate(
  { auth, client, tokens, newNonce }: State,
  grant: string,
  use: keyof GrantTokens,
): Promise<SpendingAnswer> {
  const current = tokens.get(grant) ?? noTokens
  const { manage, value } = current[use]
  const request = { method: 'POST', url: manage, token: value, nonce: newNonce() }
  const response = await client.send(auth.handle, request)
  if (response.status !== 200) return refusalOf(response) ?? unexpected(response)
  const { pay: next } = tokensOf(bodyOf(response, 200))
  const isOne = current.pay === current.price
  tokens.set(grant, isOne ? { pay: next, price: next } : { ...current, [use]: next })
  return { accepted: true }
}

async function lapse({ auth, resources, held, clock }: State): Promise<void> {
  await lapseAll(resources, [...held], clock)
  await auth.sweep()
}

/** Repeats the query, because `due` may lag, until every payment whose hold expired has failed. */
async function lapseAll(
  { sweep, outgoingPayments }: Pick<ResourceServer, 'sweep' | 'outgoingPayments'>,
  held: readonly string[],
  clock: Clock,
): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    while ((await sweep()).more);
    const all = await Promise.all(held.map((id) => outgoingPayments.get(id)))
    const waiting = all.some(
      (payment) => payment?.state === 'created' && payment.holdUntil <= clock.now(),
    )
    if (!waiting || performance.now() - startedAt > dueLagMs) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function answerOf(result: { readonly ok: boolean; readonly refusal?: string }) {
  if (result.ok) return { accepted: true } as const
  return { accepted: false, reason: result.refusal ?? '' } as const
}
