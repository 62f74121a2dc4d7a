import * as v from 'valibot'
import type { Instant } from '../core/instant.js'
import type { ActiveToken, Clock, Introspect } from '../ports/host.js'
import { evictOldest } from '../util/evict-oldest.js'
import { integerFrom, type Members, optionsOf, positiveInteger } from '../util/input.js'
import { hashOfQuery, isForKey } from './introspection-query.js'

export interface IntrospectionCacheOptions {
  /**
   * How long an active token is cached, in milliseconds, at most 60,000. A revoked token can still be used for this
   * time, but not for an outgoing payment.
   */
  readonly ttlMs: number
  /** Maximum number of cached tokens. The least recently used are removed first. Default: 10,000. */
  readonly entriesMax?: number
}

const ttlMaxMs = 60_000

export const introspectionCacheOptions = optionsOf({
  ttlMs: integerFrom(1, ttlMaxMs),
  entriesMax: v.optional(positiveInteger, 10_000),
} satisfies Members<IntrospectionCacheOptions>)

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
  { ttlMs, entriesMax }: v.InferOutput<typeof introspectionCacheOptions>,
): Introspect {
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
