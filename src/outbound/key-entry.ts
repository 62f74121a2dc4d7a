import type { Instant } from '../core/instant.js'
import type { ClientKeyQuery, PublicJwk } from '../ports/client-keys.js'
import { fetchRefusal } from './guarded-fetch.js'
import type { KeyFailure } from './key-requests.js'
import { type KeySet, keyOf } from './key-set.js'

/** How long the key set of a proved client is used before it is fetched again. */
const freshMs = 300_000
/** How long it is used while it cannot be fetched. */
const staleMs = 900_000
/** How long any other answer is used, and the pause between requests for one key set. */
const pauseMs = 30_000
/** The pause between requests to a host that cannot be reached, for clients that are not proved. */
const hostPauseMs = 5_000

/** What is known of the keys at a wallet address, or a failure of its whole host. */
export interface Entry {
  readonly keys: KeySet
  /** When the keys were requested. */
  readonly keysAt: Instant
  /** Until when the keys are used without a request. */
  readonly freshUntil: Instant
  /** Why the latest request failed. There is no other request until `until`. */
  readonly failure?: {
    readonly problem: string
    readonly refused: boolean
    readonly until: Instant
  }
}

export const nothingKnown: Entry = {
  keys: [],
  keysAt: Number.NEGATIVE_INFINITY,
  freshUntil: Number.NEGATIVE_INFINITY,
}

/**
 * A key set of a proved client. An empty one is used only briefly, because it may be a mistake that is soon corrected.
 */
export function provedEntry(keys: KeySet, keysAt: Instant): Entry {
  return { keys, keysAt, freshUntil: keysAt + (keys.length === 0 ? pauseMs : freshMs) }
}

/** A key set of a client that is not proved. */
export function recentEntry(keys: KeySet, keysAt: Instant): Entry {
  return { keys, keysAt, freshUntil: keysAt + pauseMs }
}

/** What is known after a request failed. */
export function failedEntry(known: Entry, { problem, kind }: KeyFailure, now: Instant): Entry {
  const until = now + (kind === 'unreachable' ? hostPauseMs : pauseMs)
  return { ...known, failure: { problem, refused: kind === 'refused', until } }
}

export function isFresh({ freshUntil }: Entry, now: Instant): boolean {
  return now < freshUntil
}

/** Whether the key set may be requested for a key that cannot be taken from the entry. */
export function mayAsk(entry: Entry, { mayBeNew }: ClientKeyQuery, now: Instant): boolean {
  if (entry.failure !== undefined && now < entry.failure.until) return false
  return !isFresh(entry, now) || (mayBeNew && now - entry.keysAt >= pauseMs)
}

/**
 * Returns the key, or `undefined` if it does not exist.
 *
 * @throws {FetchRefusedError} for a grant request, if the fetch refuses the URL or the response.
 * @throws {Error} if the key set could not be fetched, because the key may exist.
 */
export function answerFrom(
  entry: Entry,
  { kid, mayBeNew }: ClientKeyQuery,
  now: Instant,
): PublicJwk | undefined {
  const { keys, keysAt, failure } = entry
  const key = keyOf(keys, kid)
  if (key !== undefined && (isFresh(entry, now) || now < keysAt + staleMs)) return key
  if (isFresh(entry, now) && !(mayBeNew && failure !== undefined)) return undefined
  if (mayBeNew && failure?.refused) throw fetchRefusal(failure.problem)
  throw new Error(failure?.problem ?? 'the key set could not be fetched')
}
