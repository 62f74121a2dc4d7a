import type { Instant } from '../core/decision.js'
import type { ClientKeyQuery, ClientKeys, PublicJwk } from '../ports/client-keys.js'
import type { Clock } from '../ports/clock.js'
import { requireKnownOptions } from '../util/known-options.js'
import { invalidOption } from '../util/option-error.js'
import {
  type DocumentFetch,
  type GuardedFetchOptions,
  guardedFetch,
  guardedFetchOptions,
  isFetchRefusal,
} from './guarded-fetch.js'
import { hostGate, isGateFull } from './host-gate.js'
import { emptyKeySet, type KeySet, readKeySet } from './key-set.js'

export interface RemoteClientKeysOptions extends GuardedFetchOptions {
  /**
   * Fetches documents instead of `guardedFetch`, which requires Node. It must not follow redirects or connect to
   * private addresses, because clients choose the URLs.
   */
  readonly fetch?: DocumentFetch
  /** Clock for cache lifetimes. Default: `Date`. */
  readonly clock?: Clock
}

/** How long a key set is used before it is fetched again. */
const freshMs = 300_000
/** How long it is used while its server fails. */
const staleMs = 900_000
/** The pause between requests to a host after it failed, or after a search for a new key. */
const pauseMs = 30_000
const entriesMax = 10_000
const never = Number.NEGATIVE_INFINITY

interface Entry {
  readonly url: URL
  keys: KeySet | undefined
  keysAt: Instant
  /** Until when `keys` is used without fetching. */
  freshUntil: Instant
  failure: unknown
  failedUntil: Instant
  inFlight: Promise<void> | undefined
}

/**
 * Finds client keys at `{walletAddress}/jwks.json`.
 *
 * Each key set is cached for 300 s, and used for up to 900 s while its server fails with network errors, 429 or
 * 5xx. At most one request for a key set is in progress. If the document or the `kid` no longer exists, the key
 * has been withdrawn. For a grant request with an unknown `kid` the key set is fetched again, unless the library
 * has sent a request to the same host in the last 30 s.
 *
 * @throws {OptionError} for an invalid option, and on runtimes other than Node without `fetch`.
 */
export function remoteClientKeys(options: RemoteClientKeysOptions = {}): ClientKeys {
  requireKnownOptions('', options, { ...guardedFetchOptions, fetch: true, clock: true })
  const { fetch: ownFetch, clock = Date, ...fetchOptions } = options
  const fetch = ownFetch === undefined ? guardedFetch(fetchOptions) : ownFetch
  if (typeof fetch !== 'function') throw invalidOption('fetch', 'must be a function')
  if (typeof clock?.now !== 'function') throw invalidOption('clock', 'must have a method now')
  const entries = new Map<string, Entry>()
  const gate = hostGate(clock)

  function refresh(entry: Entry): Promise<void> {
    entry.inFlight ??= load(entry).finally(() => {
      entry.inFlight = undefined
    })
    return entry.inFlight
  }

  async function load(entry: Entry): Promise<void> {
    try {
      const document = await gate.run(entry.url.host, () => fetch(entry.url))
      accept(entry, readKeySet(document), clock.now())
    } catch (error) {
      const now = clock.now()
      if (isFetchRefusal(error)) accept(entry, emptyKeySet, now)
      else noteFailure(entry, error, now)
    }
  }

  return {
    async find({ walletAddress, kid, mayBeNew }: ClientKeyQuery) {
      const entry = entryOf(entries, walletAddress)
      const now = clock.now()
      const known = entry.keys?.find(kid)
      const fresh = now < entry.freshUntil
      if (known !== undefined && fresh) return known

      const mayLookAgain = () => now - (gate.lastAskedAt(entry.url.host) ?? never) >= pauseMs
      const wanted = fresh ? mayBeNew && mayLookAgain() : now >= entry.failedUntil
      if (wanted || entry.inFlight !== undefined) await refresh(entry)
      return answer(entry, kid, mayBeNew, clock.now())
    },
  }
}

/** Returns the entry of a wallet address, which becomes the newest. */
function entryOf(entries: Map<string, Entry>, walletAddress: string): Entry {
  const entry = entries.get(walletAddress) ?? newEntry(walletAddress)
  entries.delete(walletAddress)
  entries.set(walletAddress, entry)
  const [oldest] = entries.keys()
  if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
  return entry
}

function newEntry(walletAddress: string): Entry {
  const url = new URL(`${walletAddress}/jwks.json`)
  return {
    url,
    keys: undefined,
    keysAt: never,
    freshUntil: never,
    failure: undefined,
    failedUntil: never,
    inFlight: undefined,
  }
}

/** Caches a set without keys only briefly, because it may be a mistake that the client soon corrects. */
function accept(entry: Entry, keys: KeySet, now: Instant): void {
  entry.keys = keys
  entry.keysAt = now
  entry.freshUntil = now + (keys === emptyKeySet ? pauseMs : freshMs)
  entry.failure = undefined
  entry.failedUntil = never
}

function noteFailure(entry: Entry, error: unknown, now: Instant): void {
  entry.failure = error
  // If the gate was full, the host has not failed, and the next request may be sent immediately.
  entry.failedUntil = isGateFull(error) ? now : now + pauseMs
}

/** Throws if the key set could not be fetched, because the key may exist. */
function answer(
  { keys, keysAt, freshUntil, failure }: Entry,
  kid: string,
  mayBeNew: boolean,
  now: Instant,
): PublicJwk | undefined {
  const fresh = now < freshUntil
  const key = keys?.find(kid)
  if (key !== undefined && (fresh || now < keysAt + staleMs)) return key
  if (fresh && !(mayBeNew && failure !== undefined)) return undefined
  throw failure ?? new Error('the key set could not be fetched')
}
