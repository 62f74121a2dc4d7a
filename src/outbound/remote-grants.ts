import { type Instant, wholeMilliseconds } from '../core/instant.js'
import type {
  ActiveToken,
  Clock,
  Introspect,
  Introspection,
  IntrospectionQuery,
  Random,
} from '../ports/host.js'
import { accessTokenClass, newPath, parseCredential } from '../protocol/credential.js'
import { kidLengthMax, thumbprintOf } from '../protocol/http-signature/jwk.js'
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
import { evictOldest } from '../util/evict-oldest.js'
import { hashText } from '../util/hash.js'
import {
  boolean,
  callback,
  InvalidInputError,
  integerFrom,
  positiveInteger,
  requireKnownOptions,
  requireMethods,
  text,
} from '../util/input.js'
import { requireTimeout, withDeadline } from './gate.js'

export interface RemoteGrantsOptions {
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
   * Caches active tokens. This avoids most requests, but a revoked token stays valid until its cache entry expires. The
   * creation of an outgoing payment does not use the cache. Default: no cache.
   */
  readonly cache?: {
    /**
     * How long an active token is cached, in milliseconds, at most 60,000. A revoked token can still be used for this
     * time, but not for an outgoing payment.
     */
    readonly ttlMs: number
    /** Maximum number of cached tokens. The least recently used are removed first. Default: 10,000. */
    readonly entriesMax?: number
  }
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

const knownOptions: Readonly<Record<keyof RemoteGrantsOptions, true>> = {
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
 * Creates the option `grants` of `createResourceServer` for an authorization server in another process, whose access
 * tokens it introspects (RFC 9767 section 3.3). Requests are signed with the key of the resource server, which must be registered in the option
 * `resourceServers` of the authorization server.
 *
 * Introspection does not follow redirects and reads at most 64 KiB. It sends at most 128 requests at the same time, one
 * for each token and `keyid`, and lets at most 256 wait: half of them for tokens that were active before with the key
 * that was asked about, half for others. It
 * rejects if there are more, or if there is no valid response in time. Clients then get 503 with `Retry-After`, and the
 * token is treated neither as active nor as inactive.
 *
 * @throws {InvalidInputError} for an invalid option.
 */
export function remoteGrants(options: RemoteGrantsOptions): {
  readonly grantEndpoint: string
  introspect(query: {
    readonly accessToken: string
    readonly keyid?: string
    readonly isFresh?: boolean
  }): Promise<Introspection>
} {
  requireKnownOptions('', options, knownOptions)
  const { grantEndpoint, resourceServerId: resourceServer, cache, nonces = true } = options
  const { clock: givenClock = Date, random = crypto } = options
  const key = signingKey(options.key)
  text('resourceServerId', resourceServer)
  boolean('nonces', nonces)
  requireMethods('clock', givenClock, ['now'])
  requireMethods('random', random, ['getRandomValues'])
  const clock = wholeMilliseconds(givenClock)
  const url = endpointOf(options)
  const post = jsonPost(options)

  async function introspect({ accessToken, keyid = '' }: IntrospectionQuery) {
    // Malformed tokens are rejected locally, so they cause no introspection requests.
    const known = parseCredential(accessTokenClass, accessToken) !== undefined
    if (!known) return { active: false } as const
    const isKid = keyid !== '' && keyid.length <= kidLengthMax
    return ask(isKid ? { accessToken, keyid } : { accessToken })
  }

  const ask = boundedIntrospect(async (query): Promise<Introspection> => {
    const body = encodeUtf8(JSON.stringify(introspectionRequestBody(query, resourceServer)))
    const unsigned = { method: 'POST', url, body, createdAt: clock.now() }
    const request = nonces ? { ...unsigned, nonce: newPath(random) } : unsigned
    const answer = await post(url, await signatureHeaders(request, key), body)
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

function signingKey(key: RemoteGrantsOptions['key']): SigningKey {
  requireKnownOptions('key', key, { kid: true, privateKey: true })
  const { kid, privateKey } = key
  if (typeof privateKey !== 'object' || privateKey === null) {
    throw new InvalidInputError('key.privateKey', 'must be a JWK')
  }
  const read = readSigningKey(kid, privateKey)
  if (!read.ok) throw new InvalidInputError('key', read.problem)
  return read.value
}

/** Returns the URL that is requested and signed. */
function endpointOf(options: RemoteGrantsOptions): string {
  const { grantEndpoint, introspectionEndpoint, allowLoopback = false } = options
  boolean('allowLoopback', allowLoopback)
  const grant = checkedUrl('grantEndpoint', grantEndpoint, allowLoopback)
  return introspectionEndpoint === undefined
    ? `${grant.href.replace(/\/$/, '')}/introspect`
    : checkedUrl('introspectionEndpoint', introspectionEndpoint, allowLoopback).href
}

function checkedUrl(option: string, text: unknown, allowLoopback: boolean): URL {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url === undefined || url.search !== '' || String(text).includes('#')) {
    throw new InvalidInputError(
      option,
      'must be an absolute URL without userinfo, query or fragment',
    )
  }
  const local = allowLoopback && url.protocol === 'http:' && isLoopback(url)
  if (url.protocol === 'https:' || local) return url
  throw new InvalidInputError(option, 'must use https, or http on loopback with allowLoopback')
}

/** Identifies what is asked: the answer for one `keyid` is not the answer for another. */
function hashOfQuery({ accessToken, keyid }: IntrospectionQuery): Promise<string> {
  return hashText(JSON.stringify([accessToken, keyid]))
}

/**
 * Whether an answer is about the key that was asked about. Others must not take the place of answers for clients:
 * anyone with a token, which need not be theirs, can invent any number of `keyid`s.
 */
function isForKey(token: ActiveToken, { keyid }: IntrospectionQuery): boolean {
  return keyid === undefined || keyid === token.key.kid
}

/** Requests in progress and waiting, for each of the two groups of tokens. */
const activeMax = 64
const waitingMax = 128
const knownMax = 10_000

/** The requests of a group of tokens. */
interface Group {
  active: number
  readonly waiting: (() => void)[]
}

/**
 * Limits the introspection requests that run and wait at the same time. Further ones are rejected immediately. Tokens
 * that were active when they were last introspected, with the key that was asked about, have slots of their own, so that
 * a stranger, who can invent any number of tokens and keys, cannot use up the slots of clients. A token has one request
 * in progress for each `keyid`.
 *
 * Callers that ask about the same token and `keyid` share a request that has not been sent yet. They never share one that has been
 * sent: its answer may predate a revocation that has completed since.
 */
export function boundedIntrospect(introspect: Introspect): Introspect {
  const groups: Readonly<Record<'known' | 'unknown', Group>> = {
    known: { active: 0, waiting: [] },
    unknown: { active: 0, waiting: [] },
  }
  /** By the hash of the query. */
  const sent = new Map<string, Promise<unknown>>()
  const unsent = new Map<string, Promise<Introspection>>()
  /** Hashes of queries for tokens that were active, the least recently used first. */
  const known = new Set<string>()

  async function ask(id: string, query: IntrospectionQuery): Promise<Introspection> {
    await sent.get(id)
    const group = groups[known.has(id) ? 'known' : 'unknown']
    if (group.active < activeMax) group.active += 1
    else if (group.waiting.length >= waitingMax) {
      throw new Error('too many introspection requests are in progress')
    } else {
      // A request that ends passes its slot on, so the slot is already counted when the wait ends.
      await new Promise<void>((resolve) => group.waiting.push(resolve))
    }
    unsent.delete(id)
    const answer = introspect(query)
    const ended = answer.then(
      (token) => {
        known.delete(id)
        if (token.active && isForKey(token, query)) known.add(id)
        evictOldest(known, knownMax)
      },
      () => undefined,
    )
    sent.set(id, ended)
    await ended
    sent.delete(id)
    const next = group.waiting.shift()
    if (next === undefined) group.active -= 1
    else next()
    return answer
  }

  return async (query) => {
    const id = await hashOfQuery(query)
    const shared = unsent.get(id)
    if (shared !== undefined) return shared
    const asked = ask(id, query).finally(() => {
      if (unsent.get(id) === asked) unsent.delete(id)
    })
    unsent.set(id, asked)
    return asked
  }
}

const ttlMaxMs = 60_000

interface CachedToken {
  readonly token: ActiveToken
  readonly until: Instant
}

/**
 * Caches active tokens by the SHA-256 of token and `keyid`, until they expire at the latest. Does not cache failures,
 * inactive tokens, which may become active later, or an answer with another key. A fresh answer takes the place of a
 * cached one.
 */
export function cachedIntrospect(
  introspect: Introspect,
  clock: Clock,
  options: NonNullable<RemoteGrantsOptions['cache']>,
): Introspect {
  requireKnownOptions('cache', options, { ttlMs: true, entriesMax: true })
  const { ttlMs, entriesMax = 10_000 } = options
  integerFrom(1, ttlMaxMs)('cache.ttlMs', ttlMs)
  positiveInteger('cache.entriesMax', entriesMax)
  const entries = new Map<string, CachedToken>()

  /** Returns a cached token, and moves it to the end of the map as the most recently used. */
  function known(id: string, now: Instant): ActiveToken | undefined {
    const entry = entries.get(id)
    if (entry === undefined) return undefined
    entries.delete(id)
    if (now >= entry.until) return undefined
    entries.set(id, entry)
    return entry.token
  }

  function remember(id: string, entry: CachedToken): void {
    entries.set(id, entry)
    evictOldest(entries, entriesMax)
  }

  return async (query) => {
    const id = await hashOfQuery(query)
    // The lifetime starts before the request, because the token may be revoked while it is in progress.
    const askedAt = clock.now()
    const remembered = query.isFresh ? undefined : known(id, askedAt)
    if (remembered !== undefined) return remembered
    const token = await introspect(query)
    entries.delete(id)
    if (token.active && isForKey(token, query)) {
      remember(id, { token, until: Math.min(askedAt + ttlMs, token.expiresAt) })
    }
    return token
  }
}

/** Posts JSON and resolves to the bytes of a JSON response with status 200. Rejects for any other response. */
type JsonPost = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
) => Promise<Uint8Array>

const answerBytesMax = 64 * 1024

/** Enough for the access of a token and the conditions of its grant. */
const answerValuesMax = 2_048

/**
 * Creates a function that posts to a server that the host configured and trusts, which may have a private address.
 * It does not follow redirects, reads at most 64 KiB, and enforces the timeout even if `fetch` ignores signals. Its
 * errors name the cause, but contain nothing of the request or response.
 *
 * @throws {InvalidInputError} for an invalid option.
 */
function jsonPost({ fetch = globalThis.fetch, timeoutMs = 2_000 }: RemoteGrantsOptions): JsonPost {
  callback('fetch', fetch)
  requireTimeout('timeoutMs', timeoutMs)

  async function send(signal: AbortSignal, ...[url, headers, body]: Parameters<JsonPost>) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
      body: body as Uint8Array<ArrayBuffer>,
      redirect: 'manual',
      signal,
    })
    const { status, headers: received } = response
    const contentType = received.get('content-type') ?? ''
    return { status, contentType, content: await contentOf(response) }
  }

  return async (...request) => {
    let late = false
    const answer = withDeadline(timeoutMs, (signal) => {
      signal.addEventListener('abort', () => {
        late = true
      })
      return send(signal, ...request)
    })
    const { status, contentType, content } = await answer.catch((cause: unknown) => {
      throw late ? new Error(`no response within ${timeoutMs} ms`) : unreachable(cause)
    })
    if (status !== 200) throw new Error(`the response has status ${status}`)
    if (content === undefined) throw new Error('the response is too large')
    if (!/^application\/json[\t ]*(?:;|$)/i.test(contentType)) {
      throw new Error('the response is not JSON')
    }
    return content
  }
}

/** Reads a response up to the limit. Returns `undefined` if it is longer. */
async function contentOf({ body }: Response): Promise<Uint8Array | undefined> {
  const reader = body?.getReader()
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
    chunks.push(read.value)
    length += read.value.length
    if (length > answerBytesMax) {
      await reader?.cancel()
      return undefined
    }
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}

/** Adds the system's error code, if there is one. */
function unreachable(cause: unknown): Error {
  const { code } = (cause instanceof Error && (cause.cause as { code?: unknown })) || {}
  const named = typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : ''
  return new Error(`the server cannot be reached${named}`, { cause })
}
