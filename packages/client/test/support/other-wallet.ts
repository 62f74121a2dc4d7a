import { createClient } from 'open-payments-client'
import type { FetchedDocument, GuardedRequest } from 'open-payments-server'
import { jwkOf, testKey } from 'open-payments-test-support/keys'

export const origin = 'https://bank.example'
export const bob = `${origin}/bob`
export const authServer = `${origin}/auth`
export const now = Date.UTC(2026, 10, 29, 12)
export const shop = testKey('shop')
export const shopAddress = 'https://shop.example'
export const shopJwk = { ...shop.privateKey.export({ format: 'jwk' }), ...{ kid: jwkOf(shop).kid } }

export const usd = (value: string) => ({ value, assetCode: 'USD', assetScale: 2 })

/** A request that has arrived at the wallet. */
export interface Arrived extends GuardedRequest {
  readonly url: string
  readonly method: string
  readonly json: unknown
}

/** How the wallet, or the network before it, treats a request. `act` lets the wallet carry it out. */
export type Fault = (request: Arrived, act: () => FetchedDocument) => Promise<FetchedDocument>

export const honest: Fault = async (_, act) => act()

export function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): FetchedDocument {
  const body = new TextEncoder().encode(JSON.stringify(value))
  return { status, contentType: 'application/json', body, headers }
}

/** Another wallet without a network, which counts what it has created. */
export function otherWallet() {
  const arrived: Arrived[] = []
  const created: { readonly collection: string; readonly id: string }[] = []
  const wallet = {
    arrived,
    created,
    fault: honest,
    /** The requests of one kind. */
    to: (method: string, path: string) =>
      arrived.filter((each) => each.method === method && new URL(each.url).pathname === path),
    async fetch(url: URL, request: GuardedRequest = {}): Promise<FetchedDocument> {
      const { method = 'GET', body } = request
      const text = body && new TextDecoder().decode(body)
      const each: Arrived = { ...request, url: url.href, method, json: text && JSON.parse(text) }
      arrived.push(each)
      return wallet.fault(each, () => answer(each))
    },
  }

  function create(collection: string): string {
    const id = `${origin}/${collection}/${created.length + 1}`
    created.push({ collection, id })
    return id
  }

  function answer({ url, method, json: asked, headers = {} }: Arrived): FetchedDocument {
    const { pathname } = new URL(url)
    const [, collection = '', id, action] = pathname.split('/')
    if (pathname === '/auth') return json(200, tokenFor((asked as AskedGrant).access_token.access))
    if (pathname === '/bob') return json(200, addressOfBob)
    if (collection === 'token' && method === 'DELETE')
      return { ...json(204, ''), body: new Uint8Array() }
    if (collection === 'continue' && method === 'DELETE')
      return { ...json(204, ''), body: new Uint8Array() }
    if (collection === 'token' || collection === 'continue') return json(200, tokenFor([]))
    if (collection === 'incoming-payments') {
      if (id === undefined) return json(201, incomingPayment(create(collection), asked as object))
      if (action === 'complete')
        return json(200, incomingPayment(url.replace('/complete', ''), { completed: true }))
      const isOpen = headers['authorization'] === undefined
      return json(200, isOpen ? { authServer, receivedAmount: usd('0') } : incomingPayment(url))
    }
    if (collection === 'quotes') {
      const { receiver, debitAmount = usd('100') } = (asked ?? {}) as AskedQuote
      const quote = {
        walletAddress: bob,
        receiver: receiver ?? `${origin}/incoming-payments/7`,
        debitAmount,
        receiveAmount: usd('100'),
      }
      return json(201, { id: id === undefined ? create(collection) : url, ...quote, method: 'ilp' })
    }
    if (collection === 'outgoing-payments') {
      const {
        incomingPayment: receiver = `${origin}/incoming-payments/7`,
        debitAmount = usd('100'),
      } = (asked ?? {}) as { incomingPayment?: string; debitAmount?: object }
      const payment = { walletAddress: bob, receiver, debitAmount, receiveAmount: usd('100') }
      return json(201, {
        id: method === 'GET' ? url : create(collection),
        ...payment,
        sentAmount: usd('0'),
        failed: false,
      })
    }
    return json(404, { error: { code: 'not_found', description: 'not found' } })
  }
  return wallet
}

interface AskedQuote {
  readonly receiver?: string
  readonly debitAmount?: object
}

interface AskedGrant {
  readonly access_token: { readonly access: readonly object[] }
}

export const addressOfBob = {
  ...{ id: bob, publicName: 'Bob', assetCode: 'USD', assetScale: 2 },
  ...{ authServer, resourceServer: origin, keys: `${bob}/jwks.json` },
}

export const tokenFor = (access: readonly object[]) => ({
  access_token: { value: 'a-token', manage: `${origin}/token/1`, expires_in: 600, access },
  continue: { access_token: { value: 'c-token' }, uri: `${origin}/continue/1` },
})

export const incomingPayment = (id: string, more: object = {}) => ({
  ...{ id, walletAddress: bob, completed: false, receivedAmount: usd('0') },
  ...{ createdAt: '2026-11-29T12:00:00Z', expiresAt: '2026-11-29T13:00:00Z' },
  methods: [{ type: 'ilp', ilpAddress: 'test.bank.1', sharedSecret: 'c2VjcmV0' }],
  ...more,
})

/** A client of the shop, whose requests all arrive at another wallet. */
export function clientOf(more: object = {}) {
  const wallet = otherWallet()
  const client = createClient({
    ...{ walletAddress: shopAddress, keyId: 'shop-1', privateKey: shopJwk },
    ...{ fetch: wallet.fetch, clock: { now: () => now } },
    ...more,
  })
  return { wallet, client }
}
