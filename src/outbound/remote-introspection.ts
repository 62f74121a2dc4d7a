import { type Clock, wholeMilliseconds } from '../ports/clock.js'
import type { Introspect, Introspection } from '../ports/introspect.js'
import type { Random } from '../ports/random.js'
import { accessTokenClass, newPath, parseCredential } from '../protocol/credential.js'
import { thumbprintOf } from '../protocol/http-signature/jwk.js'
import {
  type PrivateJwk,
  readSigningKey,
  type SigningKey,
  signatureHeaders,
} from '../protocol/http-signature/sign.js'
import { introspectionRequestBody, readIntrospectionAnswer } from '../protocol/introspection.js'
import { parseJson } from '../protocol/json.js'
import { isLoopback, parseUrl } from '../protocol/url.js'
import { encodeUtf8 } from '../util/bytes.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'
import { boundedIntrospect } from './bounded-introspection.js'
import { cachedIntrospect, type IntrospectionCacheOptions } from './introspection-cache.js'
import { jsonPost } from './json-post.js'

export interface RemoteIntrospectionOptions {
  /** URL of the grant endpoint, exactly as configured at the authorization server: the issuer of its tokens. */
  readonly grantEndpoint: string
  /** URL of the introspection endpoint. Default: `{grantEndpoint}/introspect`. */
  readonly introspectionEndpoint?: string
  /** The id of this resource server at the authorization server. */
  readonly resourceServerId: string
  /** The signing key of this resource server, and the `kid` under which its public key is registered. */
  readonly key: { readonly kid: string; readonly privateKey: PrivateJwk }
  /** Timeout for a response, in milliseconds, at most 60,000. Default: 2,000. */
  readonly timeoutMs?: number
  /**
   * Caches active tokens. This avoids most requests, but a revoked token stays valid until its cache entry expires.
   * Default: no cache.
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

const knownOptions: Readonly<Record<keyof RemoteIntrospectionOptions, true>> = {
  grantEndpoint: true,
  introspectionEndpoint: true,
  resourceServerId: true,
  key: true,
  timeoutMs: true,
  cache: true,
  nonces: true,
  allowLoopback: true,
  fetch: true,
  clock: true,
  random: true,
}

/**
 * Creates the option `introspect` of `createResourceServer` for an authorization server in another process (RFC 9767
 * section 3.3). Requests are signed with the key of the resource server, which must be registered in the option
 * `resourceServers` of the authorization server.
 *
 * The function does not follow redirects and reads at most 64 KiB. It sends at most 128 requests at the same time, one
 * for each token, and lets at most 256 wait: half of them for tokens that were active before, half for others. It
 * rejects if there are more, or if there is no valid response in time. Clients then get 503 with `Retry-After`, and the
 * token is treated neither as active nor as inactive.
 *
 * @throws {OptionError} for an invalid option.
 */
export function remoteIntrospection(options: RemoteIntrospectionOptions): Introspect {
  requireKnownOptions('', options, knownOptions)
  const { grantEndpoint, resourceServerId: resourceServer, cache, nonces = true } = options
  const { clock: givenClock = Date, random = crypto } = options
  const key = signingKey(options.key)
  if (typeof resourceServer !== 'string' || resourceServer === '') {
    throw invalidOption('resourceServerId', 'must be the id of this resource server')
  }
  if (typeof nonces !== 'boolean') throw invalidOption('nonces', 'must be true or false')
  if (typeof givenClock?.now !== 'function') throw invalidOption('clock', 'must have a method now')
  const clock = wholeMilliseconds(givenClock)
  if (typeof random?.getRandomValues !== 'function') {
    throw invalidOption('random', 'must have a method getRandomValues')
  }
  const url = endpointOf(options)
  const post = jsonPost(options)

  async function introspect({ accessToken }: { readonly accessToken: string }) {
    // Malformed tokens are rejected locally, so they cause no introspection requests.
    const known = parseCredential(accessTokenClass, accessToken) !== undefined
    return known ? ask({ accessToken }) : ({ active: false } as const)
  }

  const ask = boundedIntrospect(async ({ accessToken }): Promise<Introspection> => {
    const body = encodeUtf8(JSON.stringify(introspectionRequestBody(accessToken, resourceServer)))
    const unsigned = { method: 'POST', url, body, createdAt: clock.now() }
    const request = nonces ? { ...unsigned, nonce: newPath(random) } : unsigned
    const answer = await post(url, await signatureHeaders(request, key), body)
    const read = readIntrospectionAnswer(parseJson(answer), grantEndpoint)
    if (!read.ok) throw new Error(`the response is malformed: ${read.path} ${read.problem}`)
    if (!read.value.active) return read.value
    const thumbprint = await thumbprintOf(read.value.key)
    return { ...read.value, key: { ...read.value.key, thumbprint } }
  })

  return cache === undefined ? introspect : cachedIntrospect(introspect, clock, cache)
}

function signingKey(key: RemoteIntrospectionOptions['key']): SigningKey {
  requireKnownOptions('key', key, { kid: true, privateKey: true })
  const { kid, privateKey } = key
  if (typeof privateKey !== 'object' || privateKey === null) {
    throw invalidOption('key.privateKey', 'must be a JWK')
  }
  const read = readSigningKey(kid, privateKey)
  if (!read.ok) throw invalidOption('key', read.problem)
  return read.value
}

/** Returns the URL that is requested and signed. */
function endpointOf(options: RemoteIntrospectionOptions): string {
  const { grantEndpoint, introspectionEndpoint, allowLoopback = false } = options
  if (typeof allowLoopback !== 'boolean') {
    throw invalidOption('allowLoopback', 'must be true or false')
  }
  const grant = checkedUrl('grantEndpoint', grantEndpoint, allowLoopback)
  return introspectionEndpoint === undefined
    ? `${grant.href.replace(/\/$/, '')}/introspect`
    : checkedUrl('introspectionEndpoint', introspectionEndpoint, allowLoopback).href
}

function checkedUrl(option: string, text: unknown, allowLoopback: boolean): URL {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url === undefined || url.search !== '' || String(text).includes('#')) {
    throw invalidOption(option, 'must be an absolute URL without userinfo, query or fragment')
  }
  const local = allowLoopback && url.protocol === 'http:' && isLoopback(url)
  if (url.protocol === 'https:' || local) return url
  throw invalidOption(option, 'must use https, or http on loopback with allowLoopback')
}
