import {
  type AccessItem,
  type AccountLimits,
  type Amount,
  type AuthorizationServer,
  type ClientKeys,
  type Clock,
  createAuthorizationServer,
  createResourceServer,
  type Handler,
  type Pricing,
  type ResourceServer,
  type SpendingLimit,
  type Store,
} from 'open-payments-server'
import type { AccessType, Json } from 'open-payments-server/core'
import {
  type ClientRequest,
  type ClientResponse,
  clientKeysOf,
  type TestClient,
  testClient,
} from '../client.js'
import { manualClock } from '../clock.js'
import {
  accountsOf,
  amountOf,
  receivedOf,
  type SpendingAmendment,
  type SpendingScene,
} from './history.js'
import { answerOf, checking, type SpendingHost, settling, sweptBy } from './host.js'
import type { SpendingRules } from './model.js'
import { failingStores } from './stores.js'
import type {
  ListAnswer,
  OwnerRequest,
  PaymentAnswer,
  SpendingAnswer,
  SpendingWallet,
  WalletRequest,
} from './wallet.js'

/** What the test passes to the host's code. */
export interface SpendingPorts {
  /** The `clock` of both servers, and of host code that needs the time. The test moves it. */
  readonly clock: Clock
  /** The `clientKeys` of the authorization server: the keys of the client that pays. */
  readonly clientKeys: ClientKeys
  /** The `policy.accountLimits` of the resource server: the limits that the owner sets in the history. */
  readonly accountLimits: AccountLimits
  /**
   * Returns a store that fails when the history says so: all of them, as of one database. Wrap the store of both
   * servers, and the store of each of your transactions: `resources.within(failing(inside))`. A store without it never
   * fails.
   */
  failing(store: Store): Store
}

/** The host's servers, and optionally its own code around them, as the search uses them. */
export interface SpendingServers extends SpendingHost {
  readonly authorizationServer: AuthorizationServer
  readonly resourceServer: ResourceServer
  /** The options of the servers. */
  readonly grantEndpoint: string
  readonly baseUrl: string
  /** The option of both servers, if they have it. */
  readonly strippedPrefix?: string
  /**
   * The URLs of the incoming payments that are paid, in the order of `scene.receivers`, if they exist only once the
   * servers do, such as those of accounts of the host's own. Default: the URLs of the scene.
   */
  readonly receivers?: readonly string[]
  /** The host's identifier of the owner of the accounts in `scene`. Default `owner`. */
  readonly resourceOwner?: string
  /** `policy.keyBinding` of the authorization server, if it is set. With `bound`, the client keeps its key. */
  readonly keyBinding?: 'published' | 'bound'
  /** Whether the resource server has the `accountLimits` of the ports. Default false: owners set none. */
  readonly limitsAccounts?: boolean
}

/** The wallet address of the client that pays, and the origin of its pages. */
const finishOrigin = 'https://shop.example'

/** The servers of a history, and what their client and host remember. */
interface State {
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
  readonly grantEndpoint: string
  readonly baseUrl: string
  readonly resourceOwner: string
  readonly tokensExpire: boolean
  readonly clock: Clock
  readonly walletAddresses: readonly string[]
  /** The current tokens of each grant. */
  readonly tokens: Map<string, GrantTokens>
  /** The quote of each request key, or its refusal. */
  readonly quotes: Map<string, ReturnType<typeof createQuote>>
  /** The ids of the items that pay, in the order of the approved access. */
  readonly itemIds: Map<string, readonly string[]>
  /** Payments that the host may not have begun yet. */
  readonly held: Set<string>
  readonly host: SpendingHost
  readonly ends: ReturnType<typeof settling>
  /** Rotations in progress, by the token that they replace. */
  readonly rotations: Map<string, Promise<void>>
  /** Rotations without a response. */
  readonly unanswered: Set<() => Promise<SpendingAnswer>>
  send(handle: Handler, request: ClientRequest): Promise<ClientResponse>
  newNonce(): string
}

/**
 * Creates servers of this library for a history, and returns a wallet of them, with a client that signs its requests.
 * If tokens may expire during the history, the client rotates them.
 */
export async function serversWallet(
  create: (ports: SpendingPorts) => SpendingServers | Promise<SpendingServers>,
  scene: SpendingScene,
  tokensExpire: boolean,
  wholePayments = false,
): Promise<SpendingWallet> {
  const clock = manualClock()
  const newKey = () =>
    testClient({
      // A key of its own, so that servers with the same URL do not recognize requests of another history as repeats.
      seed: crypto.randomUUID(),
      kid: crypto.randomUUID(),
      walletAddress: finishOrigin,
      clock,
    })
  /** The keys that the client publishes. It signs with the last one. */
  let keys: readonly TestClient[] = [newKey()]
  const { failing, fail } = failingStores()
  const limits = new Map<string, readonly SpendingLimit[]>()
  const host = await create({
    clock,
    clientKeys: { find: (query, call) => clientKeysOf(...keys).find(query, call) },
    accountLimits: (walletAddress) => limits.get(walletAddress) ?? [],
    failing,
  })
  const { strippedPrefix = '', resourceOwner = 'owner' } = host
  let nonces = 0
  async function send(by: TestClient | undefined, handle: Handler, request: ClientRequest) {
    if (by === undefined) throw new Error('the client has no key')
    return by.send(handle, { ...request, strippedPrefix })
  }
  const state: State = {
    auth: host.authorizationServer,
    resources: host.resourceServer,
    grantEndpoint: host.grantEndpoint,
    baseUrl: host.baseUrl,
    resourceOwner,
    tokensExpire,
    clock,
    walletAddresses: accountsOf(scene),
    tokens: new Map(),
    quotes: new Map(),
    itemIds: new Map(),
    held: new Set(),
    host,
    ends: settling(host, host.resourceServer, host.baseUrl, wholePayments),
    rotations: new Map(),
    unanswered: new Set(),
    send: (handle, request) => send(keys.at(-1), handle, request),
    newNonce: () => `nonce-${++nonces}`,
  }
  const actions = walletActions(state)
  const failStore: SpendingWallet['failStore'] = (failure, write) => {
    const restore = fail(failure, write)
    return async () => {
      restore()
      await repeatRotations(state)
    }
  }
  /** Requests in flight are signed with the key before, so it stays published until the next change. */
  async function replaceKey() {
    const [removed] = keys.length > 1 ? keys : []
    keys = [...keys.slice(-1), newKey()]
    const [token] = state.tokens.values()
    if (removed === undefined || token === undefined) return
    const url = `${host.baseUrl}/outgoing-payment-grant`
    const request = { method: 'GET', url, token: token.pay.value }
    const { status } = await send(removed, host.resourceServer.handle, request)
    if (status !== 401) throw new Error(`a request with a removed key got ${status}, not 401`)
  }
  const urls = new Map(scene.receivers.map(({ url }, i) => [url, host.receivers?.[i] ?? url]))
  return {
    ...toReceivers(actions, (url) => urls.get(url) ?? url),
    ...(host.keyBinding !== 'bound' && { replaceKey }),
    ...(host.limitsAccounts === true && {
      limitAccount: async (walletAddress, set) => void limits.set(walletAddress, set),
    }),
    setClock: clock.set,
    failStore,
    problem: checking(host, host.resourceServer),
    close: () => host.close?.(),
  }
}

/** Replaces the receivers of the scene by those of the host. */
function toReceivers(
  { grant, pay, order, quote, ...others }: ReturnType<typeof walletActions>,
  urlOf: (url: string) => string,
): SpendingWallet {
  const itemFor = (item: AccessItem): AccessItem =>
    item.type === 'outgoing-payment' && item.limits?.receiver !== undefined
      ? { ...item, limits: { ...item.limits, receiver: urlOf(item.limits.receiver) } }
      : item
  const requestFor = <Request extends { readonly receiver: string }>(request: Request) => {
    return { ...request, receiver: urlOf(request.receiver) }
  }
  return {
    ...others,
    grant: (asked, granted, limits) => grant(asked.map(itemFor), granted.map(itemFor), limits),
    pay: (request) => pay(requestFor(request)),
    order: (request) => order(requestFor(request)),
    quote: (request) => quote(requestFor(request)),
  }
}

function walletActions(state: State) {
  const { outgoingPayments } = state.resources
  return {
    grant: (...approved) => grant(state, ...approved),
    pay: (request) => pay(state, request),
    order: (request) => order(state, request),
    list: (grant, walletAddress) => listed(state, grant, walletAddress),
    quote: (request) => quoted(state, request),
    async begin(id) {
      const result = await outgoingPayments.begin(id)
      if (result.ok) state.held.delete(id)
      return answerOf(result)
    },
    reportSent: state.ends.reportSent,
    fail: state.ends.fail,
    ...(state.ends.decideDoubt !== undefined && { decideDoubt: state.ends.decideDoubt }),
    cancel: async (id) => answerOf(await outgoingPayments.cancel(id)),
    async lapse() {
      await lapse(state)
      await sweptBy(state.host)
    },
    rotate: (grant) => rotate(state, grant, 'pay'),
    async revoke(grant) {
      await state.auth.grants.revoke(grant)
    },
    amend: (grant, amendment) => amend(state, grant, amendment),
  } satisfies SpendingWallet
}

/** The maximum number of actions of a history that run concurrently. */
const atOnceMax = 4

const hundredYearsMs = 100 * 366 * 86_400_000

/** The store fails as the history says, and clients get 503: this is expected. */
const onError = () => undefined

/** Creates both servers of this library on a store. Their tokens outlive every history. */
export function libraryServers(
  store: Store,
  { clock, clientKeys, accountLimits }: SpendingPorts,
  { scene, intervalCounting, holdMs }: SpendingRules,
): SpendingServers {
  const accounts = accountsOf(scene)
  // Several histories may share one store.
  const origin = `https://wallet.example/${crypto.randomUUID()}`
  const grantEndpoint = `${origin}/auth`
  const baseUrl = `${origin}/op`
  const authorizationServer = createAuthorizationServer({
    store,
    clock,
    onError,
    grantEndpoint,
    clientKeys,
    consentUrl: `${origin}/consent`,
    policy: {
      continuation: { waitMs: 0 },
      accessTokens: { lifetimeMs: hundredYearsMs },
    },
    compatibility: { intervalCounting },
  })
  const createProcess = () =>
    createResourceServer({
      baseUrl,
      onError,
      grants: authorizationServer,
      walletAddresses: {
        find: async (url) => (accounts.includes(url) ? { url, ...scene.asset } : undefined),
      },
      paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
      pricing: pricesOf(scene),
      policy: { outgoingPayments: { holdMs }, accountLimits },
    })
  const first = createProcess()
  const processes = [first, ...Array.from({ length: atOnceMax - 1 }, createProcess)]
  let calls = 0
  const next = () => processes[calls++ % processes.length] ?? first
  // Each call that changes payments goes to the next process: in one process they share commits, and do not race.
  const handle: Handler = (request) =>
    (request.url.endsWith('/outgoing-payments') ? next() : first).handle(request)
  const outgoingPayments: typeof first.outgoingPayments = {
    ...first.outgoingPayments,
    create: (payment) => next().outgoingPayments.create(payment),
    begin: (id) => next().outgoingPayments.begin(id),
    reportSent: (id, report) => next().outgoingPayments.reportSent(id, report),
    fail: (id, report) => next().outgoingPayments.fail(id, report),
    decideDoubt: (id, decision) => next().outgoingPayments.decideDoubt(id, decision),
    cancel: (id, report) => next().outgoingPayments.cancel(id, report),
  }
  const sweep: typeof first.sweep = (options) => next().sweep(options)
  const resourceServer = { ...first, handle, outgoingPayments, sweep }
  return { authorizationServer, resourceServer, grantEndpoint, baseUrl, limitsAccounts: true }
}

function pricesOf({ receivers }: SpendingScene): Pricing {
  return {
    async price({ receiver: url, debitAmount }) {
      const receiver = receivers.find((each) => each.url === url)
      if (receiver === undefined) return { ok: false, refusal: 'receiver_invalid' }
      if (debitAmount === undefined) return { ok: false, refusal: 'amount_missing' }
      const received = receivedOf(BigInt(debitAmount.value), receiver)
      if (received === 0n) return { ok: false, refusal: 'amount_too_small' }
      const { walletAddress } = receiver
      return {
        ok: true,
        debitAmount,
        receiveAmount: amountOf(received, receiver.asset),
        ...(walletAddress !== undefined && { receiverWalletAddress: walletAddress }),
      }
    },
  }
}

/** How long the `due` list may lag behind a commit, in milliseconds. */
const dueLagMs = 5_000

const quoteAccess: AccessItem = { type: 'quote' satisfies AccessType, actions: ['create', 'read'] }

/** What a client may do beside payments: it gets prices, and lists all payments of the account of its first item. */
function besides([first]: readonly AccessItem[]): readonly AccessItem[] {
  const { identifier = '' } = first ?? {}
  return [quoteAccess, { type: 'outgoing-payment', actions: ['list-all'], identifier }]
}

/** Requests a grant with one token, or with a token for each use if the grant has several items. */
async function grant(
  state: State,
  asked: readonly AccessItem[],
  granted: readonly AccessItem[],
  limits?: readonly SpendingLimit[],
): Promise<string> {
  const { auth, send, grantEndpoint, tokens, walletAddresses, resourceOwner } = state
  const isSplit = asked.length > 1
  const uri = `${finishOrigin}/back`
  const requested = await send(auth.handle, {
    method: 'POST',
    url: grantEndpoint,
    body: {
      client: finishOrigin,
      access_token: isSplit
        ? [
            { label: 'pay', access: asked },
            { label: 'price', access: besides(asked) },
          ]
        : { access: [...asked, ...besides(asked)] },
      interact: {
        start: ['redirect'],
        finish: { method: 'redirect', uri, nonce: state.newNonce() },
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
    access: [...labelled('pay', granted), ...labelled('price', besides(asked))],
    ...(limits !== undefined && { conditions: { limits } }),
  })
  if (!approved.ok) throw new Error(`approving the grant failed: ${approved.reason}`)
  const continued = await send(auth.handle, {
    method: 'POST',
    url: stringOf(next, 'uri'),
    token: stringOf(fieldsOf(next)['access_token'], 'value'),
    body: { interact_ref: new URL(approved.redirect ?? uri).searchParams.get('interact_ref') },
  })
  const id = interaction.slice(0, interaction.indexOf('.'))
  tokens.set(id, tokensOf(bodyOf(continued, 200)))
  const { access = [] } = (await auth.grants.get(id)) ?? {}
  state.itemIds.set(
    id,
    access.flatMap(({ itemId }) => itemId ?? []),
  )
  return id
}

/** The resource owner narrows a grant: items that pay by their positions, all others as they are. */
async function amend(
  { auth, itemIds, resourceOwner }: State,
  grant: string,
  { items, conditions }: SpendingAmendment,
): Promise<SpendingAnswer> {
  const view = await auth.grants.get(grant)
  const ids = itemIds.get(grant) ?? []
  const access = view?.access.flatMap(({ limits, ...present }) => {
    if (present.type === 'quote') return [present]
    // The right to list alone would let the grant go on.
    const isList = !present.actions.some((each) => each === 'create')
    if (isList) return items?.length === 0 ? [] : [present]
    const found = items?.find(({ item }) => ids[item - 1] === present.itemId)
    if (found === undefined) return []
    const { item: _item, ...amounts } = found
    const next = { ...limits, ...amounts }
    return [Object.keys(next).length === 0 ? present : { ...present, limits: next }]
  })
  const result = await auth.grants.amend(grant, {
    resourceOwner,
    ...(items !== undefined && access !== undefined && { access }),
    ...(conditions !== undefined && { conditions }),
  })
  return answerOf(result)
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

/** The owner pays in the host's own app. */
async function order(
  { resources, quotes, held, ends, clock }: State,
  { key, by, walletAddress, receiver, debitAmount, countsInAccountLimits }: OwnerRequest,
): Promise<PaymentAnswer> {
  const common = { walletAddress, metadata: { request: key }, countsInAccountLimits }
  async function newQuote() {
    const quoted = await resources.quotes.create({ walletAddress, receiver, debitAmount })
    return quoted.ok ? quoted.quote.quoteId : refusedBy(quoted)
  }
  async function quoteId() {
    // Concurrent repeats share one quote.
    const quoted = quotes.get(key) ?? newQuote()
    quotes.set(key, quoted)
    const found = await quoted.catch((error: unknown) => {
      quotes.delete(key)
      throw error
    })
    if (typeof found !== 'string') quotes.delete(key)
    return found
  }
  const id = by === 'quote' ? await quoteId() : undefined
  if (typeof id === 'object') return id
  const created = await resources.outgoingPayments.create(
    id === undefined
      ? { ...common, receiver, debitAmount, idempotencyKey: key }
      : { ...common, quoteId: id },
  )
  if (!created.ok) return refusedBy(created)
  const { payment } = created
  held.add(payment.paymentId)
  ends.created(payment.paymentId, clock.now())
  return { accepted: true, id: payment.paymentId }
}

function refusedBy({ refusal, reason }: { readonly refusal: string; readonly reason: string }) {
  return { accepted: false, reason: `${refusal}: ${reason}` } as const
}

/** Lists the latest payments of an account that its owner has let the client see. */
async function listed(state: State, grant: string, walletAddress: string): Promise<ListAnswer> {
  const { send, resources, baseUrl } = state
  const url = `${baseUrl}/outgoing-payments?wallet-address=${encodeURIComponent(walletAddress)}&last=100`
  const response = await withToken(state, grant, 'price', (token) =>
    send(resources.handle, { method: 'GET', url, token }),
  )
  const refusal = refusalOf(response)
  if (refusal !== undefined) return refusal
  const { result } = bodyOf(response, 200)
  const ids = (Array.isArray(result) ? result : []).flatMap((each) => {
    return resources.outgoingPayments.idOf(stringOf(each, 'id')) ?? []
  })
  return { accepted: true, listed: ids }
}

async function createQuote(state: State, request: WalletRequest) {
  const response = await withToken(state, request.grant, 'price', (token) =>
    sendQuote(state, request, token),
  )
  return refusalOf(response) ?? stringOf(bodyOf(response, 201), 'id')
}

/** Returns what arrives according to a quote under a grant of its own: the grant of the request may be over. */
async function quoted(state: State, request: WalletRequest): Promise<Amount> {
  const { auth, send, grantEndpoint: url } = state
  const body = { client: finishOrigin, access_token: { access: [quoteAccess] } }
  const requested = await send(auth.handle, { method: 'POST', url, body })
  const token = tokensOf(bodyOf(requested, 200)).price.value
  return amountIn(bodyOf(await sendQuote(state, request, token), 201)['receiveAmount'])
}

function sendQuote(
  { send, resources, baseUrl }: State,
  { walletAddress, receiver, debitAmount }: WalletRequest,
  token: string,
): Promise<ClientResponse> {
  const body = { walletAddress, receiver, debitAmount, method: 'ilp' }
  return send(resources.handle, { method: 'POST', url: `${baseUrl}/quotes`, body, token })
}

async function createPayment(
  state: State,
  grant: string,
  request: () => Pick<ClientRequest, 'body' | 'headers' | 'nonce'>,
): Promise<PaymentAnswer> {
  const { send, resources, baseUrl, held, ends, clock } = state
  const url = `${baseUrl}/outgoing-payments`
  const response = await withToken(state, grant, 'pay', (token) =>
    send(resources.handle, { method: 'POST', url, token, ...request() }),
  )
  const refusal = refusalOf(response)
  if (refusal !== undefined) return refusal
  const created = bodyOf(response, 201)
  const id = resources.outgoingPayments.idOf(stringOf(created, 'id')) ?? ''
  held.add(id)
  ends.created(id, Math.floor(clock.now()))
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
  let token = tokenOf(state, grant, use)
  let response = await send(token)
  // A race waits for the first commit of each request: a rotation must not come before it.
  while (response.status === 401 && state.tokensExpire) {
    const next = await successorOf(state, grant, use, token)
    if (next === token) break
    token = next
    response = await send(token)
  }
  return response
}

/**
 * Returns the token that replaced one that no longer works, or the same one if it cannot be rotated. Concurrent
 * requests share one rotation: a second one would replace the new token before the first request could use it.
 */
async function successorOf(
  state: State,
  grant: string,
  use: keyof GrantTokens,
  token: string,
): Promise<string> {
  if (tokenOf(state, grant, use) === token) {
    const rotation = state.rotations.get(token) ?? rotateExpired(state, grant, use)
    state.rotations.set(token, rotation)
    await rotation.finally(() => state.rotations.delete(token))
  }
  return tokenOf(state, grant, use)
}

/** Rotates a token, and remembers the rotation if its response is lost. */
async function rotateExpired(state: State, grant: string, use: keyof GrantTokens): Promise<void> {
  const rotation = () => rotate(state, grant, use)
  state.unanswered.add(rotation)
  await rotation()
  state.unanswered.delete(rotation)
}

function tokenOf({ tokens }: State, grant: string, use: keyof GrantTokens): string {
  return (tokens.get(grant) ?? noTokens)[use].value
}

/** Repeats rotations whose responses were lost. It cannot be done when the new tokens have expired. */
async function repeatRotations({ unanswered }: State): Promise<void> {
  for (const rotation of unanswered) {
    unanswered.delete(rotation)
    await rotation()
  }
}

async function rotate(
  { auth, send, tokens, newNonce }: State,
  grant: string,
  use: keyof GrantTokens,
): Promise<SpendingAnswer> {
  const current = tokens.get(grant) ?? noTokens
  const { manage, value } = current[use]
  const request = { method: 'POST', url: manage, token: value, nonce: newNonce() }
  const response = await send(auth.handle, request)
  if (response.status !== 200) return refusalOf(response) ?? unexpected(response)
  const { pay: next } = tokensOf(bodyOf(response, 200))
  const isOne = current.pay === current.price
  // A concurrent request may have rotated the other token in the meantime, or this one before.
  const latest = tokens.get(grant) ?? current
  if (latest[use].value !== value) return { accepted: true }
  tokens.set(grant, isOne ? { pay: next, price: next } : { ...latest, [use]: next })
  return { accepted: true }
}

/** Repeats the query, because `due` may lag, until every payment whose hold expired has failed. */
async function lapse({ auth, resources, held, clock }: State): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    while ((await resources.sweep()).more);
    const all = await Promise.all([...held].map((id) => resources.outgoingPayments.getRecord(id)))
    const isDue = all.some((each) => each?.state === 'created' && each.holdUntil <= clock.now())
    if (!isDue || performance.now() - startedAt > dueLagMs) break
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await auth.sweep()
}

type Fields = { readonly [name: string]: Json }

interface IssuedToken {
  readonly value: string
  readonly manage: string
}

const refusalCodes = [
  'insufficient_access',
  'insufficient_grant',
  'invalid_token',
  'invalid_quote',
  'invalid_rotation',
  'request_differs',
]

/** Returns the refusal of a payment; any other unsuccessful response is an error of the wallet. */
function refusalOf({ status, body }: ClientResponse) {
  const code = fieldsOf(fieldsOf(body)['error'])['code']
  // The host's `mayPay` can have refused with 403.
  if (typeof code !== 'string' || !(refusalCodes.includes(code) || status === 403)) return undefined
  return { accepted: false, reason: code } as const
}

function bodyOf(response: ClientResponse, status: number): Fields {
  return response.status === status ? fieldsOf(response.body) : unexpected(response)
}

function unexpected({ status, body }: ClientResponse): never {
  const hint = status < 500 ? '' : '; the error is passed to onError of the servers'
  throw new Error(`the server responded with ${status} ${JSON.stringify(body)}${hint}`)
}

/** The tokens of a grant; it may have a single one for both uses. */
interface GrantTokens {
  readonly pay: IssuedToken
  readonly price: IssuedToken
}

const noToken: IssuedToken = { value: '', manage: '' }
const noTokens: GrantTokens = { pay: noToken, price: noToken }

function tokensOf(body: Fields): GrantTokens {
  const issued = body['access_token']
  const tokens = (Array.isArray(issued) ? issued : [issued]).map((token) => {
    return { value: stringOf(token, 'value'), manage: stringOf(token, 'manage') }
  })
  const [pay = noToken, price = pay] = tokens
  return { pay, price }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function stringOf(value: unknown, name: string): string {
  const found = fieldsOf(value)[name]
  return typeof found === 'string' ? found : ''
}

function spentAmount(name: 'spentDebitAmount' | 'spentReceiveAmount', amount: Json | undefined) {
  return amount === undefined ? {} : { [name]: amountIn(amount) }
}

function amountIn(amount: Json | undefined): Amount {
  const { value, assetCode, assetScale } = fieldsOf(amount)
  return {
    value: String(value),
    assetCode: String(assetCode),
    assetScale: Number(assetScale),
  }
}
