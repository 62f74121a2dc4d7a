import {
  type AccessItem,
  type AccessType,
  type Clock,
  createAuthorizationServer,
  createResourceServer,
  type IntervalCounting,
  type Json,
  type Pricing,
  type ResourceServer,
  type Store,
} from 'open-payments-server'
import {
  type ClientRequest,
  type ClientResponse,
  clientKeysOf,
  type TestClient,
  testClient,
} from '../client.js'
import { manualClock } from '../clock.js'
import { amountOf, receivedOf, type SpendingScene } from './scene.js'
import type { PaymentAnswer, SpendingWallet, WalletRequest } from './wallet.js'

export interface LibraryWalletOptions {
  readonly scene: SpendingScene
  readonly intervalCounting: IntervalCounting
  readonly holdMs: number
}

type Fields = { readonly [name: string]: Json }

/** How long the `due` list may lag behind a commit, in milliseconds. */
const dueLagMs = 5_000
const hundredYearsMs = 100 * 366 * 86_400_000

/** Creates a wallet of this library on a store, with a client instance that signs its requests. */
export function libraryWallet(store: Store, options: LibraryWalletOptions): SpendingWallet {
  const { scene } = options
  const clock = manualClock()
  const origin = `https://wallet.example/${newName()}`
  const client = testClient({
    seed: 'spending',
    kid: 'spending',
    walletAddress: 'https://shop.example',
    clock,
  })
  const { auth, resources } = createServers(store, origin, client, clock, options)
  const grants = new Map<string, { value: string; manage: string }>()
  const quotes = new Map<string, ReturnType<typeof quote>>()
  /** Payments that the host may not have begun yet. */
  const held = new Set<string>()
  let nonces = 0
  const newNonce = () => `nonce-${++nonces}`

  async function grant(asked: readonly AccessItem[], granted: readonly AccessItem[]) {
    const access = [...asked, quoteAccess]
    const requested = await client.send(auth.handle, {
      method: 'POST',
      url: `${origin}/auth`,
      body: { client: client.client, access_token: { access }, interact: { start: ['redirect'] } },
    })
    const { interact, continue: next } = bodyOf(requested, 200)
    const interaction = stringOf(interact, 'redirect').slice(`${origin}/consent/`.length)
    const approved = await auth.interactions.approve(interaction, {
      resourceOwner: 'owner',
      walletAddresses: [scene.walletAddress],
      access: [...granted, quoteAccess],
    })
    if (!approved.ok) throw new Error(`approving the grant failed: ${approved.reason}`)
    const continued = await client.send(auth.handle, {
      method: 'POST',
      url: stringOf(next, 'uri'),
      token: stringOf(fieldsOf(next)['access_token'], 'value'),
    })
    const id = interaction.slice(0, interaction.indexOf('.'))
    grants.set(id, tokenOf(bodyOf(continued, 200)))
    return id
  }

  async function pay(request: WalletRequest): Promise<PaymentAnswer> {
    const { key, by, walletAddress, receiver: incomingPayment, debitAmount } = request
    const token = grants.get(request.grant)?.value ?? ''
    const common = { walletAddress, metadata: { request: key } }
    if (by === 'direct') {
      const headers = [['idempotency-key', key]] as const
      const body = { ...common, incomingPayment, debitAmount }
      // Without a nonce, a repeat in the same second would be byte-identical.
      return create({ body, token, headers, nonce: newNonce() })
    }
    // Concurrent repeats share one quote.
    const quoted = quotes.get(key) ?? quote(request, token)
    quotes.set(key, quoted)
    const quoteId = await quoted
    if (typeof quoteId !== 'string') {
      quotes.delete(key)
      return quoteId
    }
    return create({ body: { ...common, quoteId }, token })
  }

  async function quote(request: WalletRequest, token: string) {
    const { walletAddress, receiver, debitAmount } = request
    const body = { walletAddress, receiver, debitAmount, method: 'ilp' }
    const url = `${origin}/op/quotes`
    const response = await client.send(resources.handle, { method: 'POST', url, body, token })
    return refusalOf(response) ?? stringOf(bodyOf(response, 201), 'id')
  }

  async function create(request: Omit<ClientRequest, 'method' | 'url'>): Promise<PaymentAnswer> {
    const url = `${origin}/op/outgoing-payments`
    const response = await client.send(resources.handle, { method: 'POST', url, ...request })
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

  const { outgoingPayments } = resources
  return {
    grant,
    pay,
    async begin(id) {
      const result = await outgoingPayments.begin(id)
      if (result.ok) held.delete(id)
      return answerOf(result)
    },
    settle: async (paymentId, totals) =>
      answerOf(await outgoingPayments.reportSent({ paymentId, ...totals })),
    fail: async (paymentId, totals) =>
      answerOf(await outgoingPayments.fail({ paymentId, ...totals })),
    cancel: async (id) => answerOf(await outgoingPayments.cancel(id)),
    async lapse() {
      await lapseAll(resources, [...held], clock)
      await auth.sweep()
    },
    async rotate(grant) {
      const { manage = '', value = '' } = grants.get(grant) ?? {}
      const request = { method: 'POST', url: manage, token: value, nonce: newNonce() }
      const response = await client.send(auth.handle, request)
      if (response.status !== 200) return refusalOf(response) ?? unexpected(response)
      grants.set(grant, tokenOf(bodyOf(response, 200)))
      return { accepted: true }
    },
    async revoke(grant) {
      await auth.grants.revoke(grant)
    },
    setClock: (now) => clock.set(now),
  }
}

const quoteAccess: AccessItem = { type: 'quote' satisfies AccessType, actions: ['create', 'read'] }

function createServers(
  store: Store,
  origin: string,
  client: TestClient,
  clock: Clock,
  { scene, intervalCounting, holdMs }: LibraryWalletOptions,
) {
  const { walletAddress, asset } = scene
  const grantEndpoint = `${origin}/auth`
  const auth = createAuthorizationServer({
    store,
    clock,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    clientKeys: clientKeysOf(client),
    policy: { waitMs: 0, accessTokenLifetimeMs: hundredYearsMs, intervalCounting },
  })
  const resources = createResourceServer({
    store,
    clock,
    baseUrl: `${origin}/op`,
    grantEndpoint,
    introspect: auth.introspect,
    walletAddresses: {
      find: async (url) => (url === walletAddress ? { url, ...asset } : undefined),
    },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing: pricesOf(scene),
    policy: { outgoingPaymentHoldMs: holdMs },
  })
  return { auth, resources }
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

function pricesOf({ receivers }: SpendingScene): Pricing {
  return {
    async price({ receiver: url, debitAmount }) {
      const receiver = receivers.find((each) => each.url === url)
      if (receiver === undefined) return { refusal: 'receiver_invalid' }
      if (debitAmount === undefined) return { refusal: 'amount_missing' }
      const received = receivedOf(BigInt(debitAmount.value), receiver)
      if (received === 0n) return { refusal: 'amount_too_small' }
      return { debitAmount, receiveAmount: amountOf(received, receiver.asset) }
    },
  }
}

/** Gives the servers of each history their own names, although they may share one store. */
function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function answerOf(result: { readonly ok: boolean; readonly refusal?: string }) {
  if (result.ok) return { accepted: true } as const
  return { accepted: false, reason: result.refusal ?? '' } as const
}

/** Returns the refusal of a payment; any other unsuccessful response is an error of the wallet. */
function refusalOf(response: ClientResponse) {
  const code = fieldsOf(fieldsOf(response.body)['error'])['code']
  const known = ['insufficient_grant', 'invalid_token', 'invalid_quote', 'invalid_rotation']
  if (typeof code !== 'string' || !known.includes(code)) return undefined
  return { accepted: false, reason: code } as const
}

function bodyOf(response: ClientResponse, status: number): Fields {
  return response.status === status ? fieldsOf(response.body) : unexpected(response)
}

function unexpected({ status, body }: ClientResponse): never {
  throw new Error(`the server responded with ${status} ${JSON.stringify(body)}`)
}

function tokenOf(body: Fields): { value: string; manage: string } {
  const token = body['access_token']
  return { value: stringOf(token, 'value'), manage: stringOf(token, 'manage') }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function stringOf(value: unknown, name: string): string {
  const found = fieldsOf(value)[name]
  return typeof found === 'string' ? found : ''
}

function spentAmount(name: 'spentDebitAmount' | 'spentReceiveAmount', amount: Json | undefined) {
  if (amount === undefined) return {}
  const { value, assetCode, assetScale } = fieldsOf(amount)
  const asset = { assetCode: String(assetCode), assetScale: Number(assetScale) }
  return { [name]: { value: String(value), ...asset } }
}
