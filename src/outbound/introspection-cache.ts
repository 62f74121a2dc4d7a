import * as v from 'valibot'
import type { Instant } from '../core/instant.js'
import type { ActiveToken, Clock, Introspect } from '../ports/host.js'
import { integerFrom, type Members, optionsOf, positiveInteger } from '../util/input.js'
import { recentlyUsed } from '../util/recently-used.js'
import { hashOfQuery, isForKey } from './introspection-query.js'

/** How `remoteGrants` caches active tokens: its option `cache`. */
export interface IntrospectionCacheOptions {
  /**
   * How long an active token is cached, in milliseconds, at most 60,000. A revoked token can still be used for this
   * time, but not for an outgoing payment.
   */
  readonly ttlMs: number
  /** Maximum number of cached tokens: at least the half of them that was used last. Default: 10,000. */
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
  const entries = recentlyUsed<CachedToken>(entriesMax)

  function known(id: string, now: Instant): ActiveToken | undefined {
    const entry = entries.get(id)
    if (entry === undefined || now < entry.until) return entry?.token
    entries.delete(id)
    return undefined
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
      entries.set(id, { token, until: Math.min(askedAt + ttlMs, token.expiresAt) })
    }
    return token
  }
}
