import type { Clock } from '../ports/clock.js'
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
import { invalidOption } from '../util/option-error.js'
import { cachedIntrospect, type IntrospectionCacheOptions } from './introspection-cache.js'
import { jsonPost } from './json-post.js'

export interface RemoteIntrospectionOptions {
  /** URL of the grant endpoint, exactly as the authorization server has it: the issuer of its tokens. */
  readonly grantEndpoint: string
  /** Where tokens are asked about. Default: `{grantEndpoint}/introspect`. */
  readonly introspectionEndpoint?: string
  /** The id that the authorization server knows this resource server by. */
  readonly resourceServerId: string
  /** The key that this resource server signs with, and the `kid` that its public half is registered by. */
  readonly key: { readonly kid: string; readonly privateKey: PrivateJwk }
  /** How long an answer may take, in milliseconds, at most 60,000. Default 2,000. */
  readonly timeoutMs?: number
  /**
   * Remembers active tokens for a while, which spares most requests, at the price that a revoked token goes on
   * being good until then. Default: every token is asked about each time.
   */
  readonly cache?: IntrospectionCacheOptions
  /**
   * Whether every request has a nonce, so that nobody can send a captured one again. With false the
   * authorization server has nothing to write for a request that only reads. Default true.
   */
  readonly nonces?: boolean
  /** Lets http reach this machine, for development. Default false. */
  readonly allowLoopback?: boolean
  /** Sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
  /** Tells the time. Default: `Date`. */
  readonly clock?: Clock
  /** Makes nonces. Default: the global `crypto`. */
  readonly random?: Random
}

/**
 * Asks the authorization server in another process about access tokens (RFC 9767 section 3.3): what
 * `createResourceServer` takes as `introspect`. Requests are signed with the resource server's own key, which
 * is registered there as one of `resourceServers`.
 *
 * Follows no redirect, and takes no answer of over 64 KiB. It rejects when there is no answer in time, and for
 * any answer but a well-formed one: clients then get 503 with `Retry-After`, and the token is taken neither for
 * active nor for inactive.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
 */
export function remoteIntrospection(options: RemoteIntrospectionOptions): Introspect {
  const { grantEndpoint, resourceServerId: resourceServer, cache, nonces = true } = options
  const { clock = Date, random = crypto } = options
  const key = signingKey(options.key)
  if (typeof resourceServer !== 'string' || resourceServer === '') {
    throw invalidOption('resourceServerId', 'must be the id of this resource server')
  }
  if (typeof nonces !== 'boolean') throw invalidOption('nonces', 'must be true or false')
  if (typeof clock?.now !== 'function') throw invalidOption('clock', 'must have a method now')
  if (typeof random?.getRandomValues !== 'function') {
    throw invalidOption('random', 'must have a method getRandomValues')
  }
  const url = endpointOf(options)
  const post = jsonPost(options)

  async function introspect({ accessToken }: { readonly accessToken: string }) {
    // What is no access token by its form is not worth a question, which anybody could cause.
    const known = parseCredential(accessTokenClass, accessToken) !== undefined
    return known ? ask(accessToken) : ({ active: false } as const)
  }

  async function ask(accessToken: string): Promise<Introspection> {
    const body = encodeUtf8(JSON.stringify(introspectionRequestBody(accessToken, resourceServer)))
    const unsigned = { method: 'POST', url, body, createdAt: clock.now() }
    const request = nonces ? { ...unsigned, nonce: newPath(random) } : unsigned
    const answer = await post(url, await signatureHeaders(request, key), body)
    const read = readIntrospectionAnswer(parseJson(answer), grantEndpoint)
    if (!read.ok) throw new Error(`the response is malformed: ${read.path} ${read.problem}`)
    if (!read.value.active) return read.value
    const thumbprint = await thumbprintOf(read.value.key)
    return { ...read.value, key: { ...read.value.key, thumbprint } }
  }

  return cache === undefined ? introspect : cachedIntrospect(introspect, clock, cache)
}

function signingKey(key: RemoteIntrospectionOptions['key']): SigningKey {
  const { kid, privateKey } = key ?? {}
  if (typeof privateKey !== 'object' || privateKey === null) {
    throw invalidOption('key.privateKey', 'must be a JWK')
  }
  const read = readSigningKey(kid, privateKey)
  if (!read.ok) throw invalidOption('key', read.problem)
  return read.value
}

/** The URL as it is sent and signed. */
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
