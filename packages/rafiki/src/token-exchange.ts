import { randomBytes } from 'node:crypto'
import {
  type AuthorizationServices,
  type ClientKeys,
  createSignatureVerifier,
  type Handler,
  type PublicJwk,
  type Store,
} from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { decideGrant, type Grant, type GrantPolicy } from 'open-payments-server/core'
import { type ExchangeKey, hash, type OldToken } from './exchange-key.js'
import { importPolicy } from './import-grants.js'

/** Options of `tokenExchange`. */
export interface TokenExchangeOptions {
  /** Rafiki's authorization server, as clients call it: management URIs are `{oldServer}/token/{id}`. */
  readonly oldServer: string
  readonly grantEndpoint: string
  readonly store: Store
  readonly clientKeys: ClientKeys
  /** The grants of the authorization server. */
  readonly grants: Pick<AuthorizationServices['grants'], 'revoke'>
  readonly key: ExchangeKey
  readonly policy?: GrantPolicy
  readonly clock?: { now(): number }
}

/**
 * Serves the management URIs of Rafiki for imported grants. `POST` returns a token of the library, with a management
 * URI of the library; a repeat returns the same until the client rotates that token. `DELETE` revokes the grant. As at
 * every management URI, the client presents the old token and signs with its key (RFC 9635 section 6).
 *
 * @example
 * ```ts
 * import { remoteClientKeys } from 'open-payments-server'
 * import { toExpress } from 'open-payments-server/express'
 * import { exchangeKey, tokenExchange } from 'open-payments-rafiki'
 *
 * const grantEndpoint = 'https://auth.wallet.example/cf5fd7d3'
 * const exchange = tokenExchange({
 *   oldServer: 'https://auth.wallet.example',
 *   grantEndpoint,
 *   store,
 *   clientKeys: remoteClientKeys(),
 *   grants: wallet.auth.grants,
 *   key: exchangeKey(new Uint8Array(32), grantEndpoint),
 * })
 * const handler = toExpress(exchange) // mount it at /token, before body parsers
 * ```
 */
export function tokenExchange(options: TokenExchangeOptions): Handler {
  const { oldServer, clock = { now: () => Date.now() } } = options
  const verify = createSignatureVerifier({ url: oldServer, clock })

  async function serve(request: HttpRequest): Promise<HttpResponse> {
    const old = oldTokenOf(request)
    const grant = old && (await find(old, options))
    if (old === undefined || grant === undefined) return refused(404, 'invalid_rotation')
    const key = await signingKey(request, grant, options)
    if (key === undefined || !(await verify(request, key)).ok) {
      return refused(401, 'invalid_client')
    }
    if (request.method === 'DELETE') {
      await options.grants.revoke(grant.id)
      return { status: 204, headers: {} }
    }
    if (request.method !== 'POST') return refused(405, 'invalid_request')
    const exchanged = await exchange(old, key, options, clock.now())
    return exchanged === undefined
      ? refused(404, 'invalid_rotation')
      : { status: 200, headers: json, body: tokenBody(exchanged, old, options, clock.now()) }
  }

  return (request) => serve(request).catch(() => refused(503, 'request_denied'))
}

const json = { 'content-type': 'application/json', 'cache-control': 'no-store' }

function refused(status: number, code: string): HttpResponse {
  const body = JSON.stringify({ error: { code, description: 'The token cannot be exchanged' } })
  return { status, headers: json, body }
}

function lineOf({ headers }: HttpRequest, name: string): string {
  return headers.find(([line]) => line.toLowerCase() === name)?.[1] ?? ''
}

function oldTokenOf(request: HttpRequest): OldToken | undefined {
  const managementId = /\/token\/([0-9a-f-]{36})$/.exec(request.url)?.[1]
  const token = /^GNAP ([\w-]{1,200})$/.exec(lineOf(request, 'authorization'))?.[1]
  return managementId && token ? { managementId, token } : undefined
}

async function find(old: OldToken, { store, key }: TokenExchangeOptions) {
  const [found] = await store.load([{ kind: 'grant', id: key.grantId(old.managementId) }])
  const grant = found as Grant | undefined
  return grant?.continuation.tokenHash === hash(key.proof(old)) ? grant : undefined
}

/** Finds the key that the request names, among those that the client publishes. */
async function signingKey(
  request: HttpRequest,
  { client }: Grant,
  { clientKeys }: TokenExchangeOptions,
): Promise<PublicJwk | undefined> {
  const kid = /;keyid="([^"\\]{1,200})"/.exec(lineOf(request, 'signature-input'))?.[1]
  const { walletAddress } = client
  if (kid === undefined || walletAddress === undefined) return undefined
  const { signal } = new AbortController()
  return clientKeys.find({ walletAddress, kid, mayBeNew: false }, { signal })
}

/** Issues the token to the client, recording this key, or finds it issued. Tries again after a lost race. */
async function exchange(
  old: OldToken,
  publicKey: PublicJwk,
  options: TokenExchangeOptions,
  now: number,
): Promise<Grant | undefined> {
  const { store, key, policy = importPolicy } = options
  const next = { hash: hash(key.newSecret(old)), manage: key.newPath(old) }
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const grant = await find(old, options)
    if (grant === undefined) return undefined
    if (grant.tokens?.[0]?.hash === next.hash && grant.finalized === undefined) return grant
    const { kid, x } = publicKey
    const client = { ...grant.client, kid, x, thumbprint: thumbprintOf(publicKey) }
    const decision = decideGrant<'continue'>(
      { ...grant, client },
      {
        type: 'continue',
        commandId: randomBytes(16).toString('base64url'),
        salt: randomBytes(32).toString('base64url'),
        nextTokens: [next],
      },
      now,
      policy,
    )
    if (decision.outcome !== 'changed') return undefined
    const { lists, dueAt } = grant
    const previous = {
      ...(lists !== undefined && { lists }),
      ...(dueAt !== undefined && { dueAt }),
    }
    const { version: expectedVersion } = grant
    const change = { kind: 'grant', next: decision.record, expectedVersion, previous } as const
    if (await store.commit({ changes: [change], guards: [] })) return decision.record
  }
  throw new Error('other writers keep changing the grant')
}

/** RFC 7638. */
function thumbprintOf({ x }: PublicJwk): string {
  return hash(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
}

function tokenBody(
  { id, tokens = [], granted = [] }: Grant,
  old: OldToken,
  { grantEndpoint, key }: TokenExchangeOptions,
  now: number,
): string {
  const [token] = tokens
  const access = granted.map(({ itemId: _, intervalCounting: __, ...item }) => item)
  return JSON.stringify({
    access_token: {
      value: `opa_${id}.${key.newSecret(old)}`,
      manage: `${grantEndpoint.replace(/\/$/, '')}/token/${id}.${key.newPath(old)}`,
      expires_in: Math.max(0, Math.floor(((token?.expiresAt ?? now) - now) / 1000)),
      access,
    },
  })
}
