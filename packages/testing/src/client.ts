import { type ClientKeys, type Clock, type Handler, InvalidInputError } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { type FullJwk, jwkOf, keyFromText } from './key.js'
import { signedRequest } from './sign.js'

/** Who the client of a test is. */
export interface TestClientOptions {
  /** Determines the key pair: the same seed gives the same key pair in every run. For tests only. */
  readonly seed: string
  readonly kid: string
  /** The wallet address that identifies the client. Default: its key alone identifies it. */
  readonly walletAddress?: string
  /** The clock that dates signatures, unless a request sets `created`. Default: the system clock. */
  readonly clock?: Clock
}

/** An unsigned request of a client. */
export interface ClientRequest {
  readonly method: string
  /** The absolute URL that the server expects in `@target-uri`. */
  readonly url: string
  /** Text and bytes are sent unchanged, any other value as JSON. Default: no body. */
  readonly body?: unknown
  /** An access token or continuation token, sent as `Authorization: GNAP …`. */
  readonly token?: string
  /** The `created` parameter of the signature, in seconds since 1970. Default: the clock's time. */
  readonly created?: number
  /** Default: none. Without a nonce, a server may treat an identical request as a repeat. */
  readonly nonce?: string
  /**
   * Additional headers. The signature covers `Idempotency-Key`, the headers that describe the body, and the header with
   * the token, but no other header.
   */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /**
   * The prefix that a proxy removes from the path after the client has signed it: the `strippedPrefix` of the server.
   * Default: none.
   */
  readonly strippedPrefix?: string
}

/** A server's response with its JSON body parsed. */
export interface ClientResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `undefined` if the response has no body. */
  readonly body: unknown
}

/** A client with an Ed25519 key, which signs requests like the published clients. */
export interface TestClient {
  readonly kid: string
  /** The `client` member of a grant request: the wallet address, or the key itself. */
  readonly client: string | { readonly jwk: FullJwk }
  readonly publicJwk: FullJwk
  /** The JWKS that the client publishes at `{walletAddress}/jwks.json`. */
  readonly jwks: { readonly keys: readonly FullJwk[] }
  /** The JWK thumbprint of its key (RFC 7638), base64url. */
  readonly thumbprint: string
  /** Signs a request according to RFC 9421 and RFC 9530. Pass the result to `handle` or send it. */
  sign(request: ClientRequest): HttpRequest
  /** Signs a request, passes it to a handler and parses the response. */
  send(handle: Handler, request: ClientRequest): Promise<ClientResponse>
}

const knownOptions: Readonly<Record<keyof TestClientOptions, true>> = {
  seed: true,
  kid: true,
  walletAddress: true,
  clock: true,
}

const knownParts: Readonly<Record<keyof ClientRequest, true>> = {
  method: true,
  url: true,
  body: true,
  token: true,
  created: true,
  nonce: true,
  headers: true,
  strippedPrefix: true,
}

/**
 * Creates a client for tests. Its key is derived from the seed and is not secret.
 *
 * @throws {InvalidInputError} for an invalid or unknown option. So does `sign` for a request without method or URL.
 *
 * @example
 * ```ts
 * import { testClient } from 'open-payments-server-testing'
 *
 * const shop = testClient({ seed: 'shop', kid: 'key-1', walletAddress: 'https://shop.example' })
 * const access = [{ type: 'incoming-payment', actions: ['create', 'read'] }]
 * const { status, body } = await shop.send(wallet.handle, {
 *   method: 'POST',
 *   url: 'https://wallet.example/auth',
 *   body: { client: shop.client, access_token: { access } },
 * })
 * ```
 */
export function testClient(options: TestClientOptions): TestClient {
  requireKnownOptions('', options, knownOptions)
  const { seed, kid, walletAddress, clock = { now: () => Date.now() } } = options
  requireText('seed', seed)
  requireText('kid', kid)
  if (walletAddress !== undefined) requireText('walletAddress', walletAddress)
  if (typeof clock.now !== 'function')
    throw new InvalidInputError('clock', 'must have a method now')
  const key = keyFromText(seed, kid)
  const publicJwk = jwkOf(key)

  function sign(unsigned: ClientRequest): HttpRequest {
    requireKnownOptions('request', unsigned, knownParts)
    requireText('request.method', unsigned.method)
    requireText('request.url', unsigned.url)
    const { body, created, strippedPrefix = '', ...request } = unsigned
    const signed = signedRequest({
      ...request,
      key,
      created: created ?? Math.floor(clock.now() / 1000),
      ...(body !== undefined && { body: contentOf(body) }),
    })
    return { ...signed, url: withoutPrefix(signed.url, strippedPrefix) }
  }

  return {
    kid,
    client: walletAddress ?? { jwk: publicJwk },
    publicJwk,
    jwks: { keys: [publicJwk] },
    thumbprint: key.thumbprint,
    sign,
    async send(handle, request) {
      const { status, headers, body } = await handle(sign(request))
      return { status, headers, body: body === undefined ? undefined : JSON.parse(body) }
    },
  }
}

function requireText(path: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') {
    throw new InvalidInputError(path, 'must be a non-empty string')
  }
}

function withoutPrefix(target: string, prefix: string): string {
  if (prefix === '' || !`${target}/`.startsWith(`${prefix}/`)) return target
  return target.slice(prefix.length) || '/'
}

function contentOf(body: unknown): string | Uint8Array {
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  return JSON.stringify(body)
}

/**
 * Serves the keys of test clients without a network, as the `clientKeys` option of
 * `createAuthorizationServer`. Clients without a wallet address send their key with the request and are never
 * looked up.
 *
 * @example
 * ```ts
 * import { createAuthorizationServer, memoryStore } from 'open-payments-server'
 * import { clientKeysOf, testClient } from 'open-payments-server-testing'
 *
 * const shop = testClient({ seed: 'shop', kid: 'key-1', walletAddress: 'https://shop.example' })
 * const auth = createAuthorizationServer({
 *   grantEndpoint: 'https://wallet.example/auth',
 *   consentUrl: 'https://wallet.example/consent',
 *   clientKeys: clientKeysOf(shop),
 *   store: memoryStore(),
 * })
 * ```
 */
export function clientKeysOf(...clients: readonly TestClient[]): ClientKeys {
  return {
    async find({ walletAddress, kid }) {
      const found = clients.find((each) => each.client === walletAddress && each.kid === kid)
      return found && { kid, x: found.publicJwk.x }
    },
  }
}
