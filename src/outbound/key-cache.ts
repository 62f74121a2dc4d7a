import type { Result } from '../core/decision.js'
import type { Instant } from '../core/instant.js'
import { type BoundedCache, boundedCache, type Rank, siteOf } from '../network/index.js'
import type { ClientKeyQuery } from '../ports/host.js'
import type { KeySet, KeySetFailure } from './key-set.js'

/** How long the key set of a proved client is used before it is fetched again. */
const freshMs = 300_000
/** How long it is used while it cannot be fetched. */
export const staleMs = 900_000
/** How long any other answer is used, and the pause between requests for one key set. */
const pauseMs = 30_000
/** The pause before a fresh key set is requested again for a `kid` that it lacks. */
const missingKidPauseMs = 5_000
/** The pause between requests to a host that cannot be reached, for clients that are not proved. */
const hostPauseMs = 5_000

/** A key set and when it was requested, or why there is none. */
export type KeyAnswer = Result<KeySet, KeySetFailure> & { readonly askedAt: Instant }

/** The known state of the keys at a wallet address, or a failure of its whole host. */
export interface Entry {
  readonly keys: KeySet
  /** When the keys were requested. */
  readonly keysAt: Instant
  /** Until when the keys are used without a request. */
  readonly freshUntil: Instant
  /** Why the latest request failed. There is no other request until `until`. */
  readonly failure?: Omit<KeySetFailure, 'ok'> & { readonly until: Instant }
}

const nothingKnown: Entry = {
  keys: [],
  keysAt: Number.NEGATIVE_INFINITY,
  freshUntil: Number.NEGATIVE_INFINITY,
}

function failedEntry(known: Entry, { problem, kind }: KeySetFailure, now: Instant): Entry {
  const until = now + (kind === 'unreachable' ? hostPauseMs : pauseMs)
  return { ...known, failure: { problem, kind, until } }
}

/** The state that follows from an answer about a client that is not proved. */
export function entryOf(answer: KeyAnswer, now: Instant): Entry {
  if (!answer.ok) return failedEntry(nothingKnown, answer, now)
  const { value: keys, askedAt: keysAt } = answer
  return { keys, keysAt, freshUntil: keysAt + pauseMs }
}

export function isFresh({ freshUntil }: Entry, now: Instant): boolean {
  return now < freshUntil
}

/** Whether the key set may be requested for a key that cannot be taken from the entry. */
export function mayAsk(entry: Entry, isProved: boolean, now: Instant): boolean {
  const { keys, keysAt, failure } = entry
  if (failure !== undefined && now < failure.until) return false
  const missingMs = keys.length > 0 || isProved ? missingKidPauseMs : pauseMs
  return !isFresh(entry, now) || now - keysAt >= missingMs
}

/** Puts URLs that failed behind names that are new, so that the failures of a host delay each other first. */
export function rankOf(entry: Entry): Rank {
  if (entry === nothingKnown) return 1
  return entry.keys.length > 0 ? 0 : 2
}

const MiB = 2 ** 20
/** The limit for the key sets of proved clients. */
const provedBytesMax = 16 * MiB
/**
 * The limit for entries that anybody can cause: key sets of clients that are not proved, missing key sets, and
 * failures.
 */
const recentBytesMax = 2 * MiB

/** The key sets of clients. Requests of strangers cannot evict the key sets of proved clients. */
export function createKeyCache() {
  const proved = boundedCache<Entry>(provedBytesMax)
  const recent = boundedCache<Entry>(recentBytesMax)

  /** Keeps a key set that a client with a grant uses. */
  function keepProved(walletAddress: string, keys: KeySet, keysAt: Instant): Entry {
    recent.delete(walletAddress)
    const entry = { keys, keysAt, freshUntil: keysAt + freshMs }
    return keep(proved, walletAddress, walletAddress, entry)
  }

  function recordProved(walletAddress: string, answer: KeyAnswer, now: Instant): Entry {
    const known = proved.get(walletAddress) ?? nothingKnown
    // A slower response must not bring back a key that a later one has withdrawn, or hide one that it has found.
    if (answer.askedAt < known.keysAt) return known
    if (!answer.ok) {
      const failed = failedEntry(known, answer, now)
      if (answer.kind === 'busy') return failed
      recent.delete(walletAddress)
      return keep(proved, walletAddress, walletAddress, failed)
    }
    return keepProved(walletAddress, answer.value, answer.askedAt)
  }

  function recordRecent(walletAddress: string, answer: KeyAnswer, now: Instant): Entry {
    const entry = entryOf(answer, now)
    if (answer.ok) return keep(recent, walletAddress, walletAddress, entry)
    if (answer.kind === 'busy') return entry
    recent.delete(walletAddress)
    const key = answer.kind === 'unreachable' ? new URL(walletAddress).host : walletAddress
    return keep(recent, key, walletAddress, entry)
  }

  return {
    /**
     * Whether the client at this wallet address has used a grant. A signature with its key was then verified when it
     * requested the grant.
     */
    isProved: (walletAddress: string) => proved.get(walletAddress) !== undefined,
    find({ walletAddress, mayBeNew }: ClientKeyQuery, now: Instant): Entry {
      const known = proved.get(walletAddress)
      if (known !== undefined) return known
      const entry = recent.get(walletAddress)
      if (mayBeNew) return entry ?? recent.get(new URL(walletAddress).host) ?? nothingKnown
      if (entry === undefined || !isFresh(entry, now)) return nothingKnown
      return keepProved(walletAddress, entry.keys, entry.keysAt)
    },
    /** Records the answer to a request, and returns what is known now. */
    record: ({ walletAddress, mayBeNew }: ClientKeyQuery, answer: KeyAnswer, now: Instant) =>
      !mayBeNew || proved.get(walletAddress) !== undefined
        ? recordProved(walletAddress, answer, now)
        : recordRecent(walletAddress, answer, now),
    forget(walletAddress: string): void {
      proved.delete(walletAddress)
      recent.delete(walletAddress)
      recent.delete(new URL(walletAddress).host)
    },
  }
}

/** Sizes in memory, measured on Node and rounded up: of an entry in its cache, and of a key in addition. */
const entryBytes = 1_000
const keyBytes = 150
const characterBytes = 2

/** Stores an entry on behalf of its site. */
function keep(cache: BoundedCache<Entry>, key: string, walletAddress: string, value: Entry): Entry {
  const { keys, failure } = value
  const texts = [key, failure?.problem ?? '', ...keys.flatMap((key) => Object.values(key))]
  const characters = texts.reduce((sum, { length }) => sum + length, 0)
  const bytes = entryBytes + keys.length * keyBytes + characters * characterBytes
  cache.set(key, { value, owner: siteOf(new URL(walletAddress).hostname), bytes })
  return value
}
