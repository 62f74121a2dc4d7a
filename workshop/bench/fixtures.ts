import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createHeaders } from '@interledger/http-signature-utils'
import type {
  AuthorizationServer,
  Pricing,
  PublicJwk,
  RefusalReport,
  ResourcePolicy,
  ResourceServer,
  ServerOptions,
  Store,
  WalletAddresses,
} from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'

export type Library = typeof import('open-payments-server')

export const origin = 'https://wallet.example'
export const grantEndpoint = `${origin}/auth`
export const resourceServer = `${origin}/op`
export const bob = `${origin}/bob`
export const client = 'https://shop.example'

/** The body of a shop's request for an incoming payment. */
export const paymentBody = JSON.stringify({
  walletAddress: bob,
  incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
  expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
  metadata: { externalRef: 'INV2026-11-0137', description: 'Thank you for the shoes.' },
})

export const walletAddresses: WalletAddresses = {
  find: async (url) => ({ url, assetCode: 'USD', assetScale: 2 }),
}

/** Prices every payment at 1:1. */
export const pricing: Pricing = {
  async price({ debitAmount = { value: '2500', assetCode: 'USD', assetScale: 2 } }) {
    return { ok: true, debitAmount, receiveAmount: debitAmount }
  },
}

export interface BenchKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly jwk: PublicJwk & Record<string, string>
}

export function newKey(): BenchKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const kid = '53f2d913-e98a-40b9-b270-372d0547f23d'
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { privateKey, publicKey, jwk: { kid, x, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' } }
}

/** Signs a request like the published client and adds the header lines of Node's fetch. */
export async function signed(
  key: BenchKey,
  request: { method: string; url: string; token?: string; body?: string },
): Promise<HttpRequest & { readonly fullUrl: string; readonly text: string }> {
  const { method, url, token, body } = request
  const headers = token === undefined ? {} : { authorization: `GNAP ${token}` }
  const signature = await createHeaders({
    request: { method, url, headers, ...(body !== undefined && { body }) },
    privateKey: key.privateKey,
    keyId: key.jwk.kid,
  })
  const lines = Object.entries({
    host: 'wallet.example',
    accept: 'application/json',
    'content-type': 'application/json',
    ...headers,
    ...lowerCased(signature),
    'user-agent': 'node',
    'accept-language': '*',
    'accept-encoding': 'gzip, deflate',
    connection: 'keep-alive',
  })
  const text = body ?? ''
  return {
    method,
    url: url.slice(origin.length),
    fullUrl: url,
    headers: lines,
    body: Buffer.from(text),
    text,
  }
}

function lowerCased(headers: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
}

export interface BenchWallet {
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
  readonly key: BenchKey
  readonly store: Store
  /** The number of store calls and of key set fetches. */
  readonly counts: { store: number; fetches: number }
  /** Why the servers refused the last request that they refused. Responses do not say it. */
  readonly refusals: { readonly last: string }
}

/**
 * Creates a wallet, by default on the memory store. Its client keys come through the real cache from a fetch
 * that counts calls.
 */
export function benchWallet(
  library: Library,
  storage: Store = library.memoryStore(),
  options: Pick<ServerOptions, 'recordsEvents'> = {},
  key: BenchKey = newKey(),
  policy: ResourcePolicy = {},
): BenchWallet {
  const counts = { store: 0, fetches: 0 }
  const store = counted(storage, counts)
  const refusals = { last: 'none' }
  const onRefusal = ({ refusal, reason }: RefusalReport) => {
    refusals.last = `${refusal}: ${reason}`
  }
  const auth = library.createAuthorizationServer({
    ...options,
    onRefusal,
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    store,
    clientKeys: library.remoteClientKeys({
      async fetch() {
        counts.fetches += 1
        const body = Buffer.from(JSON.stringify({ keys: [key.jwk] }))
        return { status: 200, contentType: 'application/json', body }
      },
    }),
  })
  const resources = library.createResourceServer({
    ...options,
    onRefusal,
    baseUrl: resourceServer,
    store,
    grants: auth,
    walletAddresses,
    pricing,
    policy,
    paymentMethods: library.ilpPaymentMethods({
      addressPrefix: 'test.bench',
      secret: new Uint8Array(32).fill(7),
    }),
  })
  return { auth, resources, key, store, counts, refusals }
}

function counted(store: Store, counts: { store: number }): Store {
  return {
    ...store,
    load(keys) {
      counts.store += 1
      return store.load(keys)
    },
    commit(commit) {
      counts.store += 1
      return store.commit(commit)
    },
  }
}

/** Creates an access token for incoming payments, and returns how to manage it. */
export async function newToken({ auth, key }: BenchWallet) {
  const access = [{ type: 'incoming-payment', actions: ['create', 'read'], identifier: bob }]
  const body = JSON.stringify({ client, access_token: { access } })
  const response = await auth.handle(
    await signed(key, { method: 'POST', url: grantEndpoint, body }),
  )
  if (response.status !== 200) throw new Error(response.body)
  return JSON.parse(response.body ?? '').access_token as { value: string; manage: string }
}

/** Returns a signed request for an incoming payment, valid for a few minutes. */
export function creation({ key }: BenchWallet, token: string) {
  const url = `${resourceServer}/incoming-payments`
  return signed(key, { method: 'POST', url, token, body: paymentBody })
}

/** Returns the input of the lower bound: a signature over a base of the same length. */
export function floorSignature({ privateKey }: BenchKey) {
  const base = Buffer.alloc(640, 'x')
  return { base, signature: sign(null, base, privateKey) }
}

/** Converts Node's flat list of header lines to pairs. */
export function pairs(raw: readonly string[]): [string, string][] {
  const lines: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) lines.push([raw[i] ?? '', raw[i + 1] ?? ''])
  return lines
}
