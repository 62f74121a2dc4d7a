import type { Instant } from '../core/decision.js'
import type { Clock } from '../ports/clock.js'
import type { ActiveToken, Introspect } from '../ports/introspect.js'
import { hashText } from '../util/hash.js'
import { invalidOption } from '../util/option-error.js'

export interface IntrospectionCacheOptions {
  /** How long an active token is believed to be active, in milliseconds, at most 60,000: as long as a revoked
   * one may go on being used. */
  readonly ttlMs: number
  /** The most tokens that are remembered; those not used for longest are forgotten. Default 10,000. */
  readonly entriesMax?: number
}

const ttlMaxMs = 60_000

interface Entry {
  readonly token: ActiveToken
  readonly until: Instant
}

/**
 * Remembers active tokens for a while, by their SHA-256, and none beyond its expiry. An inactive answer is not
 * kept, since a token may become active the moment after; nor is a failure.
 */
export function cachedIntrospect(
  introspect: Introspect,
  clock: Clock,
  { ttlMs, entriesMax = 10_000 }: IntrospectionCacheOptions,
): Introspect {
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > ttlMaxMs) {
    throw invalidOption('cache.ttlMs', `must be an integer from 1 to ${ttlMaxMs}`)
  }
  if (!Number.isSafeInteger(entriesMax) || entriesMax < 1) {
    throw invalidOption('cache.entriesMax', 'must be an integer of at least 1')
  }
  const entries = new Map<string, Entry>()

  /** Also moves the entry to where those are that were used last. */
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
    const [oldest] = entries.keys()
    if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
  }

  return async (query) => {
    const id = await hashText(query.accessToken)
    // The answer is as old as the question: what happens while it is under way is not in it.
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
