import type { Instant } from '../core/instant.js'
import type { ClientKeyQuery, ClientKeys } from '../ports/client-keys.js'
import { type Clock, wholeMilliseconds } from '../ports/clock.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'
import {
  type DocumentFetch,
  type GuardedFetchOptions,
  guardedFetch,
  guardedFetchOptions,
} from './guarded-fetch.js'
import { createKeyCache } from './key-cache.js'
import { answerFrom, type Entry, isFresh, mayAsk } from './key-entry.js'
import { keyRequests } from './key-requests.js'
import { keyOf } from './key-set.js'

export interface RemoteClientKeysOptions extends GuardedFetchOptions {
  /**
   * Fetches documents instead of `guardedFetch`, which requires Node. Nothing else checks the URLs, which clients
   * choose: it must require https, not follow redirects, not connect to private addresses, and settle in time. It
   * cannot be combined with the options of `guardedFetch`.
   */
  readonly fetch?: DocumentFetch
  /** Clock for cache lifetimes. Default: `Date`. */
  readonly clock?: Clock
}

/** Concurrent requests to a host: for its proved clients, and for all that strangers can cause. */
const reservedPerHost = 2
const sharedPerHost = 1

/**
 * Finds client keys at `{walletAddress}/jwks.json`.
 *
 * A client is proved when it uses a grant, because a signature with its key was verified when it requested the grant.
 * The key set of a proved client is used for 300 s, and for up to 900 s while it cannot be fetched. The key set of any
 * other client is used for 30 s. Only `kid` and `x` of each key are kept, in 16 MiB for proved clients and 2 MiB for
 * all others; a full cache evicts key sets of the domain that uses most of it.
 *
 * A key has been withdrawn if the response is 404 or 410, or a valid key set without its `kid`. Any other response is a
 * failure, and so are redirects. For a grant request with an unknown `kid` the key set is fetched again, at most every
 * 30 s.
 *
 * Each host gets two requests at a time for proved clients and one for all others, so that strangers who name many
 * URLs of one host do not delay its clients.
 *
 * @throws {OptionError} for an invalid option, and on runtimes other than Node without `fetch`.
 */
export function remoteClientKeys(options: RemoteClientKeysOptions = {}): ClientKeys {
  requireKnownOptions('', options, { ...guardedFetchOptions, fetch: true, clock: true })
  const { fetch: ownFetch, clock: givenClock = Date, ...fetchOptions } = options
  const fetch = ownFetch === undefined ? guardedFetch(fetchOptions) : ownFetch
  if (typeof fetch !== 'function') throw invalidOption('fetch', 'must be a function')
  if (ownFetch !== undefined) requireNone(fetchOptions)
  if (typeof givenClock?.now !== 'function') throw invalidOption('clock', 'must have a method now')
  const clock = wholeMilliseconds(givenClock)
  const cache = createKeyCache()
  const reserved = keyRequests(fetch, clock, reservedPerHost)
  const shared = keyRequests(fetch, clock, sharedPerHost)

  /**
   * Requests a key set. The slots for proved clients are for requests that strangers cannot cause more often than the
   * client itself: not for clients that are not proved, and not for unknown keys of those that are.
   */
  async function refresh(query: ClientKeyQuery, entry: Entry, now: Instant): Promise<Entry> {
    const { walletAddress, mayBeNew } = query
    const isOwn = !mayBeNew || (cache.isProved(walletAddress) && !isFresh(entry, now))
    const answer = await (isOwn ? reserved : shared)(walletAddress)
    return cache.record(query, answer, clock.now())
  }

  return {
    async find(query: ClientKeyQuery) {
      const now = clock.now()
      const entry = cache.find(query, now)
      const key = isFresh(entry, now) ? keyOf(entry.keys, query.kid) : undefined
      if (key !== undefined) return key
      const latest = mayAsk(entry, query, now) ? await refresh(query, entry, now) : entry
      return answerFrom(latest, query, clock.now())
    },
  }
}

/** Rejects options that have no effect on the host's own `fetch`, because a host might rely on them. */
function requireNone(options: GuardedFetchOptions): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined)
  if (given !== undefined) throw invalidOption(given[0], 'has no effect with the option fetch')
}
