import {
  type AccessItem,
  createWalletAddressServer,
  type Handler,
  type HttpRequest,
  memoryStore,
  type Pricing,
  type RecordChange,
  type Route,
  type ServerOperation,
  type Store,
} from '../../src/index.js'
import { bankId, bankKey } from './introspection.js'
import type { TestKey } from './keys.js'
import { bytesOf, type SignOptions, signedRequest } from './sign.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  priceList,
  shopReceiver,
  usd,
} from './spending.js'
import {
  type Answer,
  alice,
  answerOf,
  approvedGrant,
  bob,
  grantEndpoint,
  incomingAccess,
  origin,
  resourceServer,
} from './world.js'

/** How the host behaves; a test turns it for one request and back. */
export interface Switches {
  limited: boolean
  mayRequest: boolean
  requiresFinish: boolean
  /** Whether commits take effect, lose against others for ever, or meet a transaction that has failed. */
  store: 'works' | 'contended' | 'failed'
  /** What the wallet addresses throw, if anything. */
  accounts: Error | undefined
  price: Pricing['price']
}

/** A request before it is signed. */
export interface Ask {
  readonly method: string
  readonly url: string
  readonly token?: string | undefined
  /** JSON text. */
  readonly body?: string | undefined
  /** Whose key signs; absent where none needs to. */
  readonly key?: TestKey
}

/** What a test may change of a request when it is sent. */
export type Sending = Partial<Pick<SignOptions, 'created' | 'headers' | 'key' | 'nonce'>> & {
  readonly bend?: (request: HttpRequest) => HttpRequest
}

/** Rights to everything that can be done with a token. */
export const everything: readonly AccessItem[] = [
  {
    type: 'incoming-payment',
    actions: ['create', 'read', 'list', 'complete'],
    identifier: bob,
  },
  outgoingItem({ debitAmount: usd(2500) }),
  { type: 'quote', actions: ['create', 'read'] },
]

export type Surface = Awaited<ReturnType<typeof createSurface>>

/** All servers with all their routes, and of everything that can be asked for one that is there. */
export async function createSurface() {
  const switches = switchesOff()
  const { store, kept } = watchedAndSwitched(switches)
  const rateLimit = () => (switches.limited ? { retryAfterMs: 2_000 } : undefined)
  const world = createSpendingWorld({
    store,
    auth: {
      resourceServers: [{ id: bankId, keys: [bankKey] }],
      rateLimit,
      policy: {
        mayRequest: () => switches.mayRequest,
        requiresFinish: () => switches.requiresFinish,
      },
    },
    resources: { rateLimit, pricing: { price: (request) => switches.price(request) } },
  })
  const { auth, resources, clock } = world
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServer,
    walletAddresses: {
      async find(url) {
        if (switches.accounts !== undefined) throw switches.accounts
        return url === alice ? { url, assetCode: 'USD', assetScale: 2 } : undefined
      },
    },
    rateLimit,
    clock,
    onRefusal: (report) => void world.refusals.push(report),
    onError: (error) => void world.errors.push(error),
  })
  const routes: readonly Route[] = [...auth.routes, ...resources.routes, ...wallets.routes]
  const handle: Handler = (request) =>
    /^\/(?:auth|op)\b/.test(request.url) ? world.handle(request) : wallets.handle(request)

  const shop = world.client()
  const expired = await grantToPay(world, shop, everything)
  clock.advance(600_000)
  const { accessToken: token } = await grantToPay(world, shop, everything)
  const [rotating, revoking] = [await granted(), await granted()]
  const [continuing, cancelling] = [
    await approvedGrant(world, shop),
    await approvedGrant(world, shop),
  ]
  const incoming = await shop.createPayment(token.value, { walletAddress: bob })
  const quote = await newQuote(shop, token.value)
  const outgoing = await pay(shop, token.value, 100)
  const held = {
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

  async function granted() {
    return (await shop.request([incomingAccess])).body.access_token
  }

  /** A request that is served: with the token that it takes, or with another in the place of that. */
  function ask(operation: ServerOperation, given?: string): Ask {
    const key = shop.key
    const access = given ?? held.token.value
    const post = (url: string, of: string | undefined, body?: object): Ask => ({
      method: 'POST',
      url,
      key,
      token: of,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const get = (path: string): Ask => {
      const url = path.startsWith('https:') ? path : resourceServer + path
      return { method: 'GET', url, key, token: access }
    }
    const { rotating, revoking, continuing, cancelling } = held
    const whose = `wallet-address=${encodeURIComponent(bob)}`
    const price = { walletAddress: alice, receiver: shopReceiver, method: 'ilp' }
    const direct = { walletAddress: alice, incomingPayment: shopReceiver, debitAmount: usd(100) }
    const asks: Readonly<Record<ServerOperation, () => Ask>> = {
      requestGrant: () =>
        post(grantEndpoint, given, {
          client: shop.client,
          access_token: { access: [incomingAccess] },
        }),
      discover: () => ({ method: 'OPTIONS', url: grantEndpoint }),
      continueGrant: () =>
        post(continuing.body.continue.uri, given ?? continuing.body.continue.access_token.value, {
          interact_ref: continuing.interactRef,
        }),
      cancelGrant: () => ({
        ...post(cancelling.body.continue.uri, given ?? cancelling.body.continue.access_token.value),
        method: 'DELETE',
      }),
      rotateToken: () => post(rotating.manage, given ?? rotating.value, {}),
      revokeToken: () => ({
        ...post(revoking.manage, given ?? revoking.value),
        method: 'DELETE',
      }),
      introspectToken: () => ({
        ...post(`${grantEndpoint}/introspect`, undefined, {
          access_token: access,
          proof: 'httpsig',
          resource_server: bankId,
        }),
        key: bankKey,
      }),
      createIncomingPayment: () =>
        post(`${resourceServer}/incoming-payments`, access, { walletAddress: bob }),
      listIncomingPayments: () => get(`/incoming-payments?${whose}`),
      getIncomingPayment: () => get(held.incoming),
      completeIncomingPayment: () => post(`${held.incoming}/complete`, access, {}),
      createQuote: () => post(`${resourceServer}/quotes`, access, price),
      getQuote: () => get(held.quote),
      createOutgoingPayment: () => post(`${resourceServer}/outgoing-payments`, access, direct),
      listOutgoingPayments: () =>
        get(`/outgoing-payments?wallet-address=${encodeURIComponent(alice)}`),
      getOutgoingPayment: () => get(held.outgoing),
      getOutgoingPaymentGrant: () => get('/outgoing-payment-grant'),
      getWalletAddress: () => ({ method: 'GET', url: alice }),
      getWalletAddressKeys: () => ({ method: 'GET', url: `${alice}/jwks.json` }),
      preflight: () => ({ method: 'OPTIONS', url: alice }),
    }
    return asks[operation]()
  }

  let nonces = 0

  /** Signs, each time with a nonce of its own, and bends what was signed if a test wants that. */
  function sign(asked: Ask, { bend = (request) => request, ...more }: Sending = {}): HttpRequest {
    const { method, url, token, body } = asked
    const key = more.key ?? asked.key
    if (key === undefined) return bend(unsignedRequest(asked))
    const created = Math.floor(clock.now() / 1000)
    return bend(
      signedRequest({
        method,
        url,
        created,
        nonce: `surface-${nonces++}`,
        ...(token === undefined ? {} : { token }),
        ...(body === undefined ? {} : { body }),
        ...more,
        key,
      }),
    )
  }

  async function send(asked: Ask, sending?: Sending): Promise<Answer> {
    return answerOf(await handle(sign(asked, sending)))
  }

  return { world, shop, handle, routes, switches, kept, held, ask, sign, send }
}

/** An answer in one cell of a table: its status, and its code if there is one. */
export function cell({ status, body }: Answer): string {
  return body?.error === undefined ? String(status) : `${status} ${body.error.code}`
}

/** The last segment of a URL's path. */
export function lastSegment(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

export function switchesOff(): Switches {
  return {
    limited: false,
    mayRequest: true,
    requiresFinish: false,
    store: 'works',
    accounts: undefined,
    price: priceList.price,
  }
}

/** The same request without what signing adds. */
export function unsignedRequest({ method, url, token, body }: Ask): HttpRequest {
  const headers: [string, string][] = []
  if (token !== undefined) headers.push(['Authorization', `GNAP ${token}`])
  if (body !== undefined) headers.push(['Content-Type', 'application/json'])
  return { method, url: url.slice(origin.length) || '/', headers, body: bytesOf(body) }
}

/** A memory store that obeys a switch, and keeps what every commit that took effect has changed. */
function watchedAndSwitched(switches: Switches): {
  readonly store: Store
  readonly kept: (readonly RecordChange[])[]
} {
  const store = memoryStore()
  const kept: (readonly RecordChange[])[] = []
  return {
    kept,
    store: {
      ...store,
      async commit(commit) {
        if (switches.store === 'contended') return false
        if (switches.store === 'failed') {
          throw Object.assign(new Error('it has failed'), { code: 'ERR_TRANSACTION_FAILED' })
        }
        const landed = await store.commit(commit)
        if (landed) kept.push(commit.changes)
        return landed
      },
    },
  }
}
