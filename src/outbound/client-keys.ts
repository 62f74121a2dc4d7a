import type { Instant } from '../core/decision.js'
import type { ClientKeyQuery, ClientKeys, PublicJwk } from '../ports/client-keys.js'
import type { Clock } from '../ports/clock.js'
import { invalidOption } from '../util/option-error.js'
import {
  type DocumentFetch,
  type GuardedFetchOptions,
  guardedFetch,
  isFetchRefusal,
} from './guarded-fetch.js'
import { hostGate, isGateFull } from './host-gate.js'
import { emptyKeySet, type KeySet, readKeySet } from './key-set.js'

export interface RemoteClientKeysOptions extends GuardedFetchOptions {
  /**
   * Gets documents instead of the guarded fetch of this library, which needs Node. It follows no redirect
   * and reaches no private address, or strangers will use it to do so.
   */
  readonly fetch?: DocumentFetch
  /** Tells the time that keys are cached by. Default: `Date`. */
  readonly clock?: Clock
}

/** How long a key set is used without asking again. */
const freshMs = 300_000
/** How long it is used while its server does not answer. */
const staleMs = 900_000
/** How long a host is left alone after it had no good answer, or after a new key was looked for there. */
const pauseMs = 30_000
const entriesMax = 10_000

interface Entry {
  readonly url: URL
  keys: KeySet | undefined
  keysAt: Instant
  /** How long `keys` needs no second look. */
  freshUntil: Instant
  failure: unknown
  failedUntil: Instant
  inFlight: Promise<void> | undefined
}

/**
 * Finds client keys at `{walletAddress}/jwks.json`.
 *
 * Key sets are cached for 300 s, fetched once at a time, and used for up to 900 s while their server fails
 * with network errors or 5xx. A document that is gone, or a `kid` that is no longer in it, is a key that has
 * been withdrawn. On a grant request an unknown `kid` is looked up afresh, unless its host was asked in the
 * last 30 s.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` where there is neither Node nor a `fetch`.
 */
export function remoteClientKeys(options: RemoteClientKeysOptions = {}): ClientKeys {
  const { fetch = guardedFetch(options), clock = Date } = options
  if (typeof fetch !== 'function') throw invalidOption('fetch', 'must be a function')
  if (typeof clock?.now !== 'function') throw invalidOption('clock', 'must have a method now')
  const entries = new Map<string, Entry>()
  const gate = hostGate(clock)

  function entryOf(walletAddress: string): Entry {
    const entry = entries.get(walletAddress) ?? newEntry(walletAddress)
    entries.delete(walletAddress)
    entries.set(walletAddress, entry)
    const [oldest] = entries.keys()
    if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
    return entry
  }

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
      if (isFetchRefusal(error)) {
        accept(entry, emptyKeySet, now)
      } else {
        entry.failure = error
        // Where there was no room to ask, the host has not failed, and may be asked as soon as there is.
        entry.failedUntil = isGateFull(error) ? now : now + pauseMs
      }
    }
  }

  /** Whether a key that the cached set lacks may be looked for again. */
  function mayLookAgain(entry: Entry, now: Instant): boolean {
    const askedAt = gate.lastAskedAt(entry.url.host)
    return askedAt === undefined || now - askedAt >= pauseMs
  }

  return {
    async find({ walletAddress, kid, mayBeNew }: ClientKeyQuery) {
      const entry = entryOf(walletAddress)
      const now = clock.now()
      const known = entry.keys?.find(kid)
      const fresh = now < entry.freshUntil
      if (known !== undefined && fresh) return known

      const wanted = fresh ? mayBeNew && mayLookAgain(entry, now) : now >= entry.failedUntil
      if (wanted || entry.inFlight !== undefined) await refresh(entry)
      return answer(entry, kid, mayBeNew, clock.now())
    },
  }
}

function newEntry(walletAddress: string): Entry {
  const url = new URL(`${walletAddress}/jwks.json`)
  const never = Number.NEGATIVE_INFINITY
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

/** A set without keys is believed for a short while only: it may be a mistake that is mended soon. */
function accept(entry: Entry, keys: KeySet, now: Instant): void {
  entry.keys = keys
  entry.keysAt = now
  entry.freshUntil = now + (keys === emptyKeySet ? pauseMs : freshMs)
  entry.failure = undefined
  entry.failedUntil = Number.NEGATIVE_INFINITY
}

/** A key that could not be looked for is not a key that is missing. */
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
