import type { Instant } from '../core/instant.js'
import type { Clock } from '../ports/clock.js'
import type { ActiveToken, Introspect } from '../ports/introspect.js'
import { evictOldest } from '../util/evict-oldest.js'
import { hashText } from '../util/hash.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'

export interface IntrospectionCacheOptions {
  /**
   * How long an active token is cached, in milliseconds, at most 60,000. A revoked token can still be used for this
   * time.
   */
  readonly ttlMs: number
  /** Maximum number of cached tokens. The least recently used are removed first. Default: 10,000. */
  readonly entriesMax?: number
}

const ttlMaxMs = 60_000

interface Entry {
  readonly token: ActiveToken
  readonly until: Instant
}

/**
 * Caches active tokens by their SHA-256, until they expire at the latest. Does not cache failures, or inactive
 * tokens, which may become active later.
 */
export function cachedIntrospect(
  introspect: Introspect,
  clock: Clock,
  options: IntrospectionCacheOptions,
): Introspect {
  requireKnownOptions('cache', options, { ttlMs: true, entriesMax: true })
  const { ttlMs, entriesMax = 10_000 } = options
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > ttlMaxMs) {
    throw invalidOption('cache.ttlMs', `must be an integer from 1 to ${ttlMaxMs}`)
  }
  if (!Number.isSafeInteger(entriesMax) || entriesMax < 1) {
    throw invalidOption('cache.entriesMax', 'must be an integer of at least 1')
  }
  const entries = new Map<string, Entry>()

  /** Returns a cached token, and moves it to the end of the map as the most recently used. */
  function known(id: string, now: Instant): ActiveToken | undefined {
    const entry = entries.get(id)
    if (entry === undefined) return undefined
    entries.delete(id)
    if (now >= entry.until) return undefined
    entries.set(id, entry)
    return entry.token
  }

  function remember(id: string, entry: Entry): void {
    entries.set(id, entry)
    evictOldest(entries, entriesMax)
  }

  return async (query) => {
    const id = await hashText(query.accessToken)
    // The lifetime starts before the request, because the token may be revoked while it is in progress.
    const askedAt = clock.now()
    const remembered = known(id, askedAt)
    if (remembered !== undefined) return remembered
    const token = await introspect(query)
    if (token.active) {
      remember(id, { token, until: Math.min(askedAt + ttlMs, token.expiresAt) })
    }
    return token
  }
}
