import type { AccessItem, AccessType, Clock, ResourceServer, Store } from 'open-payments-server'
import type { ClientRequest } from '../client.js'
import {
  type LibraryServers,
  type LibraryWalletOptions,
  libraryServers,
} from './library-servers.js'
import {
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
import { accountsOf } from './scene.js'
import type { PaymentAnswer, SpendingAnswer, SpendingWallet, WalletRequest } from './wallet.js'

/** How long the `due` list may lag behind a commit, in milliseconds. */
const dueLagMs = 5_000

/** The servers of a history, and what their client instance and host remember. */
interface State extends LibraryServers {
  readonly walletAddresses: readonly string[]
  /** The current tokens of each grant. */
  readonly tokens: Map<string, GrantTokens>
  /** The quote of each request key, or its refusal. */
  readonly quotes: Map<string, ReturnType<typeof createQuote>>
  /** Payments that the host may not have begun yet. */
  readonly held: Set<string>
  newNonce(): string
}

/** Creates a wallet of this library on a store, with a client instance that signs its requests. */
export function libraryWallet(store: Store, options: LibraryWalletOptions): SpendingWallet {
  const servers = libraryServers(store, options)
  const { auth, clock } = servers
  const { outgoingPayments } = servers.resources
  let nonces = 0
  const state: State = {
    ...servers,
    walletAddresses: accountsOf(options.scene),
    tokens: new Map(),
    quotes: new Map(),
    held: new Set(),
    newNonce: () => `nonce-${++nonces}`,
  }
  return {
    grant: (asked, granted) => grant(state, asked, granted),
    pay: (request) => pay(state, request),
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
    rotate: (grant) => rotate(state, grant),
    async revoke(grant) {
      await auth.grants.revoke(grant)
    },
    setClock: (now) => clock.set(now),
  }
}

const quoteAccess: AccessItem = { type: 'quote' satisfies AccessType, actions: ['create', 'read'] }

/** Requests a grant with one token, or with a token for each use if the grant has several items. */
async function grant(
  { auth, client, origin, tokens, walletAddresses }: State,
  asked: readonly AccessItem[],
  granted: readonly AccessItem[],
): Promise<string> {
  const isSplit = asked.length > 1
  const requested = await client.send(auth.handle, {
    method: 'POST',
    url: `${origin}/auth`,
    body: {
      client: client.client,
      access_token: isSplit
        ? [
            { label: 'pay', access: asked },
            { label: 'price', access: [quoteAccess] },
          ]
        : { access: [...asked, quoteAccess] },
      interact: { start: ['redirect'] },
    },
  })
  const { interact, continue: next } = bodyOf(requested, 200)
  const interaction = stringOf(interact, 'redirect').slice(`${origin}/consent/`.length)
  const labelled = (label: string, items: readonly AccessItem[]) =>
    isSplit ? items.map((item) => ({ label, ...item })) : items
  const approved = await auth.interactions.approve(interaction, {
    resourceOwner: 'owner',
    walletAddresses,
    access: [...labelled('pay', granted), ...labelled('price', [quoteAccess])],
  })
  if (!approved.ok) throw new Error(`approving the grant failed: ${approved.reason}`)
  const continued = await client.send(auth.handle, {
    method: 'POST',
    url: stringOf(next, 'uri'),
    token: stringOf(fieldsOf(next)['access_token'], 'value'),
  })
  const id = interaction.slice(0, interaction.indexOf('.'))
  tokens.set(id, tokensOf(bodyOf(continued, 200)))
  return id
}

async function pay(state: State, request: WalletRequest): Promise<PaymentAnswer> {
  const { quotes } = state
  const { key, by, walletAddress, receiver: incomingPayment, debitAmount } = request
  const tokens = state.tokens.get(request.grant)
  const token = tokens?.pay.value ?? ''
  const common = { walletAddress, metadata: { request: key } }
  if (by === 'direct') {
    const headers = [['idempotency-key', key]] as const
    const body = { ...common, incomingPayment, debitAmount }
    // Without a nonce, a repeat in the same second would be byte-identical.
    return createPayment(state, { body, token, headers, nonce: state.newNonce() })
  }
  // Concurrent repeats share one quote.
  const quoted = quotes.get(key) ?? createQuote(state, request, tokens?.price.value ?? '')
  quotes.set(key, quoted)
  const quoteId = await quoted.catch((error: unknown) => {
    quotes.delete(key)
    throw error
  })
  if (typeof quoteId !== 'string') {
    quotes.delete(key)
    return quoteId
  }
  return createPayment(state, { body: { ...common, quoteId }, token })
}

async function createQuote(
  { client, resources, origin }: State,
  { walletAddress, receiver, debitAmount }: WalletRequest,
  token: string,
) {
  const body = { walletAddress, receiver, debitAmount, method: 'ilp' }
  const url = `${origin}/op/quotes`
  const response = await client.send(resources.handle, { method: 'POST', url, body, token })
  return refusalOf(response) ?? stringOf(bodyOf(response, 201), 'id')
}

async function createPayment(
  { client, resources, pay, origin, held }: State,
  request: Omit<ClientRequest, 'method' | 'url'>,
): Promise<PaymentAnswer> {
  const url = `${origin}/op/outgoing-payments`
  const response = await client.send(pay, { method: 'POST', url, ...request })
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

async function rotate(
  { auth, client, tokens, newNonce }: State,
  grant: string,
): Promise<SpendingAnswer> {
  const { pay, price } = tokens.get(grant) ?? noTokens
  const { manage, value } = pay
  const request = { method: 'POST', url: manage, token: value, nonce: newNonce() }
  const response = await client.send(auth.handle, request)
  if (response.status !== 200) return refusalOf(response) ?? unexpected(response)
  const { pay: next } = tokensOf(bodyOf(response, 200))
  tokens.set(grant, { pay: next, price: price === pay ? next : price })
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
