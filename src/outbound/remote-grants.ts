import * as v from 'valibot'
import { wholeMilliseconds } from '../core/instant.js'
import type { Clock, Introspection, IntrospectionQuery, Random } from '../ports/host.js'
import { accessTokenClass, newUniqueText, parseCredential } from '../protocol/credential.js'
import { clockOption, randomOption } from '../protocol/host-options.js'
import { kidLengthMax, thumbprintOf } from '../protocol/http-signature/jwk.js'
import {
  type PrivateJwk,
  readSigningKey,
  type SigningKey,
  signatureHeaders,
} from '../protocol/http-signature/sign.js'
import { introspectionRequestBody, readIntrospectionAnswer } from '../protocol/introspection.js'
import { isObject, parseJson } from '../protocol/json.js'
import { parseUrl } from '../protocol/url.js'
import { encodeUtf8 } from '../util/bytes.js'
import { boolean, checked, type Members, optionsOf, readInput, text } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { isLoopback } from '../util/loopback.js'
import { boundedIntrospect } from './bounded-introspection.js'
import {
  cachedIntrospect,
  type IntrospectionCacheOptions,
  introspectionCacheOptions,
} from './introspection-cache.js'
import { jsonPost, jsonPostOptions } from './json-post.js'

/** The authorization server that is asked about tokens, and the key by which it knows who asks. */
export interface RemoteGrantsOptions {
  /** URL of the grant endpoint, exactly as configured at the authorization server: the issuer of its tokens. */
  readonly grantEndpoint: string
  /** URL of the introspection endpoint. Default: `{grantEndpoint}/introspect`. */
  readonly introspectionEndpoint?: string
  /** The id of this resource server at the authorization server. */
  readonly resourceServerId: string
  /** The signing key of this resource server, and the `kid` under which its public key is registered. */
  readonly key: {
    /** The `kid` under which the authorization server knows the public key. */
    readonly kid: string
    /** An Ed25519 key with `x` and `d`. */
    readonly privateKey: PrivateJwk
  }
  /** Timeout for a response, in milliseconds, at most 60,000. Default: 2,000. */
  readonly timeoutMs?: number
  /**
   * Caches active tokens. This avoids most requests, but a revoked token stays valid until its cache entry expires. The
   * creation of an outgoing payment does not use the cache. Default: no cache.
   */
  readonly cache?: IntrospectionCacheOptions
  /**
   * Whether each request has a nonce, so that a captured request cannot be replayed. Without nonces, the
   * authorization server writes no record for an introspection request. Default: true.
   */
  readonly nonces?: boolean
  /** Allows http to loopback addresses, for development. Default: false. */
  readonly allowLoopback?: boolean
  /** Sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
  /** Clock for the signatures. Default: `Date`. */
  readonly clock?: Clock
  /** Source of nonces. Default: the global `crypto`. */
  readonly random?: Random
}

/** Enough for the access of a token and the conditions of its grant. */
const answerValuesMax = 2_048

const introspectedUrl = checked<string>((text) => {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  const isPlain = url !== undefined && url.search === '' && !String(text).includes('#')
  return isPlain ? undefined : 'must be an absolute URL without userinfo, query or fragment'
})

const remoteGrantsOptions = optionsOf({
  grantEndpoint: introspectedUrl,
  introspectionEndpoint: v.optional(introspectedUrl),
  resourceServerId: text,
  key: optionsOf({
    kid: v.unknown(),
    privateKey: v.custom<PrivateJwk>(
      (key) => typeof key === 'object' && key !== null,
      'must be a JWK',
    ),
  }),
  cache: v.optional(introspectionCacheOptions),
  nonces: v.optional(boolean, true),
  allowLoopback: v.optional(boolean, false),
  clock: clockOption,
  random: randomOption,
  ...jsonPostOptions,
} satisfies Members<RemoteGrantsOptions>)

type Settings = v.InferOutput<typeof remoteGrantsOptions>

/**
 * Creates the option `grants` of `createResourceServer` for an authorization server in another process, whose access
 * tokens it introspects (RFC 9767 section 3.3). Requests are signed with the key of the resource server, which must be
 * registered in the option `resourceServers` of the authorization server.
 *
 * Introspection does not follow redirects and reads at most 64 KiB. It sends at most 128 requests at the same time, one
 * for each token and `keyid`, and lets at most 256 wait: half of them for tokens that were active before with the key
 * that was asked about, half for others. It rejects if there are more, or if there is no valid response in time.
 * Clients then get 503 with `Retry-After`, and the token is treated neither as active nor as inactive.
 *
 * @throws {InvalidInputError} for an invalid option.
 *
 * @example
 * ```ts
 * import { createResourceServer, remoteGrants } from 'open-payments-server'
 *
 * const resources = createResourceServer({
 *   baseUrl: 'https://op.wallet.example',
 *   store,
 *   grants: remoteGrants({
 *     grantEndpoint: 'https://auth.wallet.example',
 *     resourceServerId: 'https://op.wallet.example',
 *     key: { kid: 'op-1', privateKey: JSON.parse(process.env['RESOURCE_SERVER_KEY'] ?? '') },
 *   }),
 *   walletAddresses: accounts,
 *   paymentMethods,
 * })
 * ```
 */
export function remoteGrants(options: RemoteGrantsOptions): {
  readonly grantEndpoint: string
  introspect(query: {
    readonly accessToken: string
    readonly keyid?: string
    readonly isFresh?: boolean
  }): Promise<Introspection>
} {
  const settings = readInput('', remoteGrantsOptions, options)
  const { grantEndpoint, resourceServerId: resourceServer, cache, nonces, random } = settings
  const key = signingKey(settings.key)
  const clock = wholeMilliseconds(settings.clock)
  const url = endpointOf(settings)
  const post = jsonPost(settings)

  async function introspect({ accessToken, keyid = '' }: IntrospectionQuery) {
    // Malformed tokens are rejected locally, so they cause no introspection requests.
    const known = parseCredential(accessTokenClass, accessToken) !== undefined
    if (!known) return { active: false } as const
    const isKid = keyid !== '' && keyid.length <= kidLengthMax
    return ask(isKid ? { accessToken, keyid } : { accessToken })
  }

  async function sent(body: Uint8Array) {
    const unsigned = { method: 'POST', url, body, createdAt: clock.now() }
    const request = nonces ? { ...unsigned, nonce: newUniqueText(random) } : unsigned
    return post(url, await signatureHeaders(request, key), body)
  }

  const ask = boundedIntrospect(async (query): Promise<Introspection> => {
    const body = encodeUtf8(JSON.stringify(introspectionRequestBody(query, resourceServer)))
    const first = await sent(body)
    // A proxy has repeated the request, and its first answer is lost. Introspection changes nothing, so it may be asked
    // anew; without a nonce, the signature would be the same.
    const { isConflict, content: answer } =
      nonces && isSignatureUsed(first) ? await sent(body) : first
    if (isConflict) throw new Error('the response has status 409')
    const read = readIntrospectionAnswer(parseJson(answer, answerValuesMax), grantEndpoint)
    if (!read.ok) throw new Error(`the response is malformed: ${read.path} ${read.problem}`)
    if (!read.value.active) return read.value
    const thumbprint = await thumbprintOf(read.value.key)
    return { ...read.value, key: { ...read.value.key, thumbprint } }
  })

  return {
    grantEndpoint,
    introspect: cache === undefined ? introspect : cachedIntrospect(introspect, clock, cache),
  }
}

/** Whether the authorization server has answered a request with these bytes before. */
function isSignatureUsed({
  isConflict,
  content,
}: Awaited<ReturnType<ReturnType<typeof jsonPost>>>) {
  if (!isConflict) return false
  const body = parseJson(content, answerValuesMax)
  const error = isObject(body) ? body['error'] : undefined
  return isObject(error) && error['code'] === 'signature_used'
}

function signingKey({ kid, privateKey }: Settings['key']): SigningKey {
  const read = readSigningKey(kid, privateKey)
  if (!read.ok) throw new InvalidInputError('key', read.problem)
  return read.value
}

/** Returns the URL that is requested and signed. */
function endpointOf({ grantEndpoint, introspectionEndpoint, allowLoopback }: Settings): string {
  const grant = checkedUrl('grantEndpoint', grantEndpoint, allowLoopback)
  return introspectionEndpoint === undefined
    ? `${grant.href.replace(/\/$/, '')}/introspect`
    : checkedUrl('introspectionEndpoint', introspectionEndpoint, allowLoopback).href
}

function checkedUrl(option: string, text: string, allowLoopback: boolean): URL {
  const url = new URL(text)
  const local = allowLoopback && url.protocol === 'http:' && isLoopback(url)
  if (url.protocol === 'https:' || local) return url
  throw new InvalidInputError(option, 'must use https, or http on loopback with allowLoopback')
}
