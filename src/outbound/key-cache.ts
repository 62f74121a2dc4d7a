import type { Instant } from '../core/instant.js'
import type { ClientKeyQuery } from '../ports/client-keys.js'
import { type BoundedCache, boundedCache } from './bounded-cache.js'
import {
  type Entry,
  failedEntry,
  isFresh,
  nothingKnown,
  provedEntry,
  recentEntry,
} from './key-entry.js'
import type { KeyAnswer } from './key-requests.js'
import { siteOf } from './site.js'

const MiB = 2 ** 20
/** For the key sets of proved clients. */
const provedBytesMax = 16 * MiB
/** For all that strangers cause: key sets of clients that are not proved, missing key sets, and failures. */
const recentBytesMax = 2 * MiB

/** Sizes in memory, measured on Node and rounded up: of an entry in its cache, and of a key in addition. */
const entryBytes = 1_000
const keyBytes = 100
const characterBytes = 2

/** The key sets of client instances, those of proved clients apart from all that strangers can cause. */
export interface KeyCache {
  /**
   * Whether the client at this wallet address has used a grant. A signature with its key was then verified when it
   * requested the grant.
   */
  isProved(walletAddress: string): boolean
  find(query: ClientKeyQuery, now: Instant): Entry
  /** Records the answer to a request, and returns what is known now. */
  record(query: ClientKeyQuery, answer: KeyAnswer, now: Instant): Entry
}

export function createKeyCache(): KeyCache {
  const proved = boundedCache<Entry>(provedBytesMax)
  const recent = boundedCache<Entry>(recentBytesMax)

  function keepProved(walletAddress: string, entry: Entry): Entry {
    recent.delete(walletAddress)
    return keep(proved, walletAddress, walletAddress, entry)
  }

  function recordProved(walletAddress: string, answer: KeyAnswer, now: Instant): Entry {
    const known = proved.get(walletAddress) ?? nothingKnown
    if (!answer.ok) {
      const failed = failedEntry(known, answer, now)
      return answer.kind === 'busy' ? failed : keepProved(walletAddress, failed)
    }
    // A slower response must not bring back a key that a later one has withdrawn.
    if (answer.askedAt < known.keysAt) return known
    return keepProved(walletAddress, provedEntry(answer.value, answer.askedAt))
  }

  function recordRecent(walletAddress: string, answer: KeyAnswer, now: Instant): Entry {
    if (answer.ok) {
      const entry = recentEntry(answer.value, answer.askedAt)
      return keep(recent, walletAddress, walletAddress, entry)
    }
    const failed = failedEntry(nothingKnown, answer, now)
    if (answer.kind === 'busy') return failed
    recent.delete(walletAddress)
    const key = answer.kind === 'unreachable' ? new URL(walletAddress).host : walletAddress
    return keep(recent, key, walletAddress, failed)
  }

  return {
    isProved: (walletAddress) => proved.get(walletAddress) !== undefined,
    find({ walletAddress, mayBeNew }, now) {
      const known = proved.get(walletAddress)
      if (known !== undefined) return known
      const entry = recent.get(walletAddress)
      if (mayBeNew) return entry ?? recent.get(new URL(walletAddress).host) ?? nothingKnown
      if (entry === undefined || !isFresh(entry, now)) return nothingKnown
      return keepProved(walletAddress, provedEntry(entry.keys, entry.keysAt))
    },
    record: ({ walletAddress, mayBeNew }, answer, now) =>
      !mayBeNew || proved.get(walletAddress) !== undefined
        ? recordProved(walletAddress, answer, now)
        : recordRecent(walletAddress, answer, now),
  }
}

/** Stores an entry on behalf of its site. */
function keep(cache: BoundedCache<Entry>, key: string, walletAddress: string, value: Entry): Entry {
  const owner = siteOf(new URL(walletAddress).hostname)
  cache.set(key, { value, owner, bytes: bytesOf(key, value) })
  return value
}

function bytesOf(key: string, { keys, failure }: Entry): number {
  const texts = [key, failure?.problem ?? '', ...keys.flatMap(({ kid, x }) => [kid, x])]
  const characters = texts.reduce((sum, { length }) => sum + length, 0)
  return entryBytes + keys.length * keyBytes + characters * characterBytes
}
