import type { ClientKeys, Clock, Handler, HttpRequest } from 'open-payments-server'
import { type FullJwk, jwkOf, keyFromText } from './key.js'
import { signedRequest } from './sign.js'

export interface TestClientOptions {
  /** Names the key: the same seed is the same key pair in every run. For tests only. */
  readonly seed: string
  readonly kid: string
  /** The wallet address that the client instance goes by. Default: it goes by its key alone. */
  readonly walletAddress?: string
  /** When signatures are created, unless a request says otherwise. Default: now. */
  readonly clock?: Clock
}

/** A request of a client instance, before it is signed. */
export interface ClientRequest {
  readonly method: string
  /** The absolute URL, as the server knows it. */
  readonly url: string
  /** Text or bytes are sent as they are, any other value as JSON. Default: no body. */
  readonly body?: unknown
  /** An access token or continuation token: becomes `Authorization: GNAP …`. */
  readonly token?: string
  /** When the signature says that it was created, in seconds since 1970. Default: as the clock says. */
  readonly created?: number
  /** Default: none. Without one a server may take an identical request for a repeat. */
  readonly nonce?: string
  /** Header lines beside those that signing adds. They are not covered by the signature. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
}

/** What a server answered, with its JSON read. */
export interface ClientResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `undefined` where there was no body. */
  readonly body: unknown
}

/** A client instance with an Ed25519 key, which signs as the published clients do. */
export interface TestClient {
  readonly kid: string
  /** What goes as `client` in a grant request: the wallet address, or the key itself. */
  readonly client: string | { readonly jwk: FullJwk }
  readonly publicJwk: FullJwk
  /** What the client instance publishes at `{walletAddress}/jwks.json`. */
  readonly jwks: { readonly keys: readonly FullJwk[] }
  /** The JWK thumbprint of its key (RFC 7638), base64url. */
  readonly thumbprint: string
  /** Signs a request as RFC 9421 and RFC 9530 say, for `handle` or to be sent. */
  sign(request: ClientRequest): HttpRequest
  /** Signs a request, hands it to a handler and reads the answer. */
  send(handle: Handler, request: ClientRequest): Promise<ClientResponse>
}

/** Makes a client instance for tests. Its key is no secret: it follows from the seed. */
export function testClient(options: TestClientOptions): TestClient {
  const { seed, kid, walletAddress, clock = Date } = options
  const key = keyFromText(seed, kid)
  const publicJwk = jwkOf(key)

  function sign({ body, created, ...request }: ClientRequest): HttpRequest {
    return signedRequest({
      ...request,
      key,
      created: created ?? Math.floor(clock.now() / 1000),
      ...(body === undefined ? {} : { body: contentOf(body) }),
    })
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

function contentOf(body: unknown): string | Uint8Array {
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  return JSON.stringify(body)
}

/**
 * The keys of these client instances, without a network: what `createAuthorizationServer` takes as
 * `clientKeys`. Those that have no wallet address bring their keys along and are not looked for.
 */
export function clientKeysOf(...clients: readonly TestClient[]): ClientKeys {
  return {
    async find({ walletAddress, kid }) {
      const found = clients.find((each) => each.client === walletAddress && each.kid === kid)
      return found && { kid, x: found.publicJwk.x }
    },
  }
}
