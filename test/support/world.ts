import {
  type AccessItem,
  type AuthorizationServerOptions,
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  type Handler,
  ilpPaymentMethods,
  memoryStore,
  type RefusalReport,
  type ResourceServerOptions,
  type Store,
  type WalletAddress,
} from 'open-payments-server'
import type { HttpResponse } from 'open-payments-server/adapter'
import { boundedStore } from './bounded-store.js'
import { type ManualClock, manualClock } from './clock.js'
import { jwkOf, publishedKeys, type TestKey, testKey } from './keys.js'
import { seededRandom } from './random.js'
import { type SignOptions, signedRequest } from './sign.js'

export const origin = 'https://wallet.example'
export const grantEndpoint = `${origin}/auth`
export const resourceServer = `${origin}/op`
export const alice = `${origin}/alice`
export const bob = `${origin}/bob`
export const carol = `${origin}/carol`
export const closed = `${origin}/closed`
export const finishUri = 'https://shop.example/back?order=17'

export interface WorldOptions {
  readonly store?: Store
  readonly clock?: ManualClock
  readonly auth?: Partial<AuthorizationServerOptions>
  readonly resources?: Partial<ResourceServerOptions>
  /** Carries the requests of clients to the servers. Default: calls the handlers directly. */
  readonly carry?: Handler
}

export type World = ReturnType<typeof createWorld>

/** A wallet without a network, with a clock and randomness that the test controls. */
export function createWorld(options: WorldOptions = {}) {
  const { clock = manualClock() } = options
  const store = boundedStore(options.store ?? memoryStore())
  const clientKeys = publishedKeys()
  const refusals: RefusalReport[] = []
  const errors: unknown[] = []
  const shared = {
    store,
    clock,
    random: seededRandom(),
    recordsEvents: true,
    onRefusal: (report: RefusalReport) => void refusals.push(report),
    onError: (error: unknown) => void errors.push(error),
  }
  const accounts: WalletAddress[] = [
    { url: alice, assetCode: 'USD', assetScale: 2, publicName: 'Alice', keys: [testKey('alice')] },
    { url: bob, assetCode: 'USD', assetScale: 2 },
    { url: carol, assetCode: 'EUR', assetScale: 2 },
    { url: closed, assetCode: 'USD', assetScale: 2, active: false },
  ]
  const walletAddresses = {
    find: async (url: string) => accounts.find((account) => account.url === url),
  }
  const auth = createAuthorizationServer({
    ...shared,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    clientKeys,
    ...options.auth,
  })
  const resources = createResourceServer({
    ...shared,
    baseUrl: resourceServer,
    grants: auth,
    walletAddresses,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: Buffer.alloc(32, 7),
    }),
    ...options.resources,
  })
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServerUrl: resourceServer,
    walletAddresses,
    clock,
  })

  const handle: Handler = (request) => {
    if (request.url.startsWith('/auth')) return auth.handle(request)
    if (request.url.startsWith('/op')) return resources.handle(request)
    return wallets.handle(request)
  }

  const { carry = handle } = options
  /** A client with a wallet address, or with only a key. `nonces` is the number of its first nonce. */
  function client(
    name = 'shop',
    {
      byKey = false,
      walletAddress = `https://${name}.example`,
      nonces = 0,
    }: {
      readonly byKey?: boolean
      readonly walletAddress?: string
      readonly nonces?: number
    } = {},
  ) {
    const key = testKey(name)
    if (!byKey) clientKeys.publish(walletAddress, key)
    return createClient(byKey ? { jwk: jwkOf(key) } : walletAddress, key, carry, clock, nonces)
  }

  return { store, clock, clientKeys, auth, resources, wallets, handle, client, refusals, errors }
}

/** A response with its JSON parsed. */
export interface Answer {
  readonly status: number
  readonly headers: HttpResponse['headers']
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the tests are about
  readonly body: any
}

export type TestClient = ReturnType<typeof createClient>

/** Every call of a client, each with a fresh signature. */
function createClient(
  client: unknown,
  key: TestKey,
  handle: Handler,
  clock: ManualClock,
  firstNonce: number,
) {
  let nonces = firstNonce

  /**
   * Signs and sends a request. Unless a test overrides it, each request has a nonce, so that none is a
   * replay.
   */
  async function send(options: Partial<SignOptions> & Pick<SignOptions, 'method' | 'url'>) {
    return answerOf(await handle(sign(options)))
  }

  function sign(options: Partial<SignOptions> & Pick<SignOptions, 'method' | 'url'>) {
    const created = Math.floor(clock.now() / 1000)
    return signedRequest({ key, created, nonce: `nonce-${key.kid}-${nonces++}`, ...options })
  }

  function post(url: string, body?: unknown, token?: string, more: Partial<SignOptions> = {}) {
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const authorized = token === undefined ? {} : { token }
    return send({ method: 'POST', url, ...content, ...authorized, ...more })
  }

  return {
    key,
    client,
    sign,
    send,
    post,
    request: (access: readonly AccessItem[], interact?: object, more?: Partial<SignOptions>) =>
      post(grantEndpoint, { client, access_token: { access }, interact }, undefined, more),
    continue: (
      continuation: { uri: string; access_token: { value: string } },
      interactRef?: string,
      more?: Partial<SignOptions>,
    ) => {
      const body = interactRef === undefined ? undefined : { interact_ref: interactRef }
      return post(continuation.uri, body, continuation.access_token.value, more)
    },
    cancel: (continuation: { uri: string; access_token: { value: string } }) =>
      send({
        method: 'DELETE',
        url: continuation.uri,
        token: continuation.access_token.value,
      }),
    rotate: (token: { manage: string; value: string }, more?: Partial<SignOptions>) =>
      post(token.manage, undefined, token.value, more),
    revoke: (token: { manage: string; value: string }) =>
      send({ method: 'DELETE', url: token.manage, token: token.value }),
    createPayment: (token: string, body: object, more?: Partial<SignOptions>) =>
      post(`${resourceServer}/incoming-payments`, body, token, more),
    getPayment: (token: string, url: string, more?: Partial<SignOptions>) =>
      send({ method: 'GET', url, token, ...more }),
  }
}

export function answerOf({ status, headers, body }: HttpResponse): Answer {
  return { status, headers, body: body === undefined ? undefined : JSON.parse(body) }
}

export const incomingAccess: AccessItem = {
  type: 'incoming-payment',
  actions: ['create', 'read'],
  identifier: bob,
}

export const outgoingAccess: AccessItem = {
  type: 'outgoing-payment',
  actions: ['create', 'read'],
  identifier: alice,
  limits: { debitAmount: { value: '2500', assetCode: 'USD', assetScale: 2 } },
}

export const withFinish = {
  start: ['redirect'],
  finish: { method: 'redirect', uri: finishUri, nonce: 'client-nonce' },
}

export const withoutFinish = { start: ['redirect'] }

/** Returns the id of an interaction from the URL in the grant response. */
export function interactionId(redirect: string): string {
  return redirect.slice(redirect.lastIndexOf('/') + 1)
}

/** Creates a grant with consent, up to the point where its client has the reference. */
export async function approvedGrant(
  world: World,
  client: TestClient,
  interact: object = withFinish,
) {
  const { body } = await client.request([outgoingAccess], interact)
  const id = interactionId(body.interact.redirect)
  const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
  const result = await world.auth.interactions.approve(id, approval)
  if (!result.ok) throw new Error(result.reason)
  const redirect = result.redirect === undefined ? undefined : new URL(result.redirect)
  return { id, body, redirect, interactRef: redirect?.searchParams.get('interact_ref') ?? '' }
}

/** Creates a client with an access token that was issued after consent. */
export async function issuedGrant(world: World, client: TestClient) {
  const approved = await approvedGrant(world, client)
  const { body } = await client.continue(approved.body.continue, approved.interactRef)
  return { ...approved, continue: body.continue, token: body.access_token }
}
