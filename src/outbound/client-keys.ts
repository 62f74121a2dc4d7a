import { ok, type Result } from '../core/decision.js'
import { type Instant, wholeMilliseconds } from '../core/instant.js'
import type { Json } from '../core/stored.js'
import type {
  ClientKeyQuery,
  ClientKeys,
  Clock,
  PublicJwk,
  WalletAddress,
  WalletAddresses,
} from '../ports/host.js'
import { isSoundKey, publishedJwk, readPublicJwk } from '../protocol/http-signature/jwk.js'
import { isObject, parseJson } from '../protocol/json.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  callback,
  InvalidInputError,
  requireKnownOptions,
  requireMethods,
  string,
} from '../util/input.js'
import { createDisplays } from './client-displays.js'
import {
  type BoundedCache,
  boundedCache,
  createGate,
  isGateFull,
  type Rank,
  requireTimeout,
  siteOf,
} from './gate.js'
import {
  type DocumentFetch,
  type FetchedDocument,
  fetchRefusal,
  type GuardedFetchOptions,
  guardedFetch,
  guardedFetchOptions,
  isFetchRefusal,
  isHostUnreachable,
  jsonType,
} from './guarded-fetch.js'

/** The host's own accounts, which can be clients too. */
export interface OwnAccounts {
  /** The URL at and below which all wallet addresses are accounts of the host, such as `https://wallet.example`. */
  readonly baseUrl: string
  readonly walletAddresses: WalletAddresses
}

export interface RemoteClientKeysOptions extends GuardedFetchOptions {
  /**
   * The accounts whose keys are read with `walletAddresses.find` at each look-up, and never fetched or cached: a key
   * that the owner removes or adds is dead or usable at the next request. A wallet address there without an account has
   * no keys. `createWallet` does this for its own accounts. Default: all key sets are fetched.
   */
  readonly ownAccounts?: OwnAccounts
  /**
   * Fetches documents instead of `guardedFetch`, which requires Node. Nothing else checks the URLs, which clients
   * choose: it must require https, not follow redirects, not connect to private addresses, and end when its signal
   * aborts, after `timeoutMs`. It cannot be combined with the other options of `guardedFetch`.
   */
  readonly fetch?: DocumentFetch
  /** Clock for cache lifetimes. Default: `Date`. */
  readonly clock?: Clock
}

/** How long the key set of a proved client is used before it is fetched again. */
const freshMs = 300_000
/** How long it is used while it cannot be fetched. */
const staleMs = 900_000
/** How long any other answer is used, and the pause between requests for one key set. */
const pauseMs = 30_000
/** The pause before a fresh key set is requested again for a `kid` that it lacks. */
const missingKidPauseMs = 5_000
/** The pause between requests to a host that cannot be reached, for clients that are not proved. */
const hostPauseMs = 5_000
/** `guardedFetch` ends within `timeoutMs` with a precise error. Its slot is freed soon after in any case. */
const graceMs = 500

/**
 * Finds client keys at `{walletAddress}/jwks.json`.
 *
 * A client is proved when it uses a grant, because a signature with its key was verified when it requested the grant.
 * The key set of a proved client is used for 300 s, and for up to 900 s while it cannot be fetched. The key set of any
 * other client is used for 30 s. Only `kid` and `x` of each key are kept, in 16 MiB for proved clients and 2 MiB for
 * all others; a full cache evicts key sets of the domain that uses most of it.
 *
 * A key has been withdrawn if the response is 404 or 410, or a valid key set without its `kid`. Any other response is a
 * failure, and so are redirects. For a `kid` that the key set lacks it is fetched again, at most every 5 s; an empty key
 * set of a client that is not proved, at most every 30 s.
 *
 * Proved clients and all others have requests of their own, so that strangers who name many URLs do not delay clients.
 * In each of the two groups a host gets four requests at a time while it responds, otherwise two for proved clients and
 * one for others; the hosts of one domain get 8, and all hosts 256, half of which are kept for domains without a
 * request in progress. A request waits for at most 5 s, and ends after `timeoutMs`. At most 512 callers wait in each
 * group, because each of them holds a request of a client in memory.
 *
 * `displayOf` resolves to the `publicName` in the document at a wallet address, if its `id` is exactly this wallet
 * address. A name is used for 300 s, and the lack of one for 30 s, in 2 MiB. These requests are a third group, with the
 * bounds of the second. `displayOf` does not reject.
 *
 * @throws {InvalidInputError} for an invalid option, and on runtimes other than Node without `fetch`.
 */
export function remoteClientKeys(options: RemoteClientKeysOptions = {}): Required<ClientKeys> & {
  /**
   * Removes the name, the key set and failures of a wallet address, in any spelling, and the failures of its host, in
   * this process. The next look-up fetches the key set, even if a request for it is in progress.
   *
   * @throws {InvalidInputError} for an invalid wallet address.
   */
  forget(walletAddress: string): void
} {
  const known = { ...guardedFetchOptions, fetch: true, clock: true, ownAccounts: true }
  requireKnownOptions('', options, known)
  const { fetch: ownFetch, clock: givenClock = Date, ownAccounts, ...fetchOptions } = options
  const { timeoutMs = 2_000, ...guards } = fetchOptions
  const fetch = ownFetch === undefined ? guardedFetch(fetchOptions) : ownFetch
  callback('fetch', fetch)
  if (ownFetch !== undefined) requireNone(guards)
  requireTimeout('timeoutMs', timeoutMs)
  requireMethods('clock', givenClock, ['now'])
  const clock = wholeMilliseconds(givenClock)
  /** How often the host has called `forget`. */
  let forgets = 0

  async function send(url: URL, signal: AbortSignal): Promise<KeyAnswer> {
    const asked = { askedAt: clock.now(), forgets }
    try {
      const keys = readKeySet(await fetch(url, { signal }))
      return { ...asked, responded: true, ...keys }
    } catch (error) {
      return { ...asked, responded: false, ...failureOf(error) }
    }
  }

  const cache = createKeyCache()
  const requestMs = ownFetch === undefined ? timeoutMs + graceMs : timeoutMs
  const reserved = createGate({ send, requestMs, firstPerHost: 2 })
  const shared = createGate({ send, requestMs, firstPerHost: 1 })
  const displays = createDisplays({ fetch, requestMs, clock })

  /**
   * Requests a key set. Requests that strangers can cause more often than the client itself do not use the slots for
   * proved clients: grant requests of clients that are not proved, and with unknown keys of clients that are. Only the
   * holder of a token can cause the others.
   */
  async function refresh(query: ClientKeyQuery, entry: Entry, now: Instant): Promise<Entry> {
    const { walletAddress, mayBeNew } = query
    const isOwn = !mayBeNew || (cache.isProved(walletAddress) && !isFresh(entry, now))
    const request = isOwn ? reserved : shared
    const url = new URL(`${walletAddress}/jwks.json`)
    const asked = { askedAt: now, forgets }
    const answer = await request(url, rankOf(entry)).catch(
      (error): KeyAnswer => ({ ...asked, responded: false, ...failureOf(error) }),
    )
    // The request began before the host called `forget`, so its answer can be what the host wants to be forgotten.
    if (answer.forgets < forgets) return refresh(query, entry, clock.now())
    return cache.record(query, answer, clock.now())
  }

  const fetched: Required<ClientKeys> = {
    async find(query) {
      const now = clock.now()
      const entry = cache.find(query, now)
      const key = isFresh(entry, now) ? keyOf(entry.keys, query.kid) : undefined
      if (key !== undefined) return key
      const isProved = cache.isProved(query.walletAddress)
      const latest = mayAsk(entry, isProved, now) ? await refresh(query, entry, now) : entry
      return answerFrom(latest, query, clock.now())
    },
    displayOf: displays.displayOf,
  }
  const { find, displayOf } =
    ownAccounts === undefined ? fetched : withOwnAccounts(readOwnAccounts(ownAccounts), fetched)

  return {
    find,
    displayOf,
    forget(walletAddress) {
      const canonical = canonicalFrom('walletAddress', walletAddress)
      forgets += 1
      cache.forget(canonical)
      displays.forget(canonical)
    },
  }
}

function readOwnAccounts(given: OwnAccounts): OwnAccounts {
  requireKnownOptions('ownAccounts', given, { baseUrl: true, walletAddresses: true })
  const { baseUrl, walletAddresses } = given
  requireMethods('ownAccounts.walletAddresses', walletAddresses, ['find'])
  return { baseUrl: canonicalFrom('ownAccounts.baseUrl', baseUrl), walletAddresses }
}

function canonicalFrom(path: string, url: string): string {
  string(path, url)
  const canonical = canonicalUrl(url)
  if (canonical !== undefined) return canonical
  throw new InvalidInputError(path, 'must be a URL that wallet addresses can have')
}

/**
 * Finds the keys and names of the host's own accounts with `walletAddresses.find`, at each look-up, and those of other
 * clients with `others`. Keys of own accounts are screened as fetched ones are.
 *
 * @param own has a canonical `baseUrl`.
 */
export function withOwnAccounts(own: OwnAccounts, others: ClientKeys): Required<ClientKeys> {
  const { baseUrl, walletAddresses } = own
  const isOwn = (walletAddress: string) => `${walletAddress}/`.startsWith(`${baseUrl}/`)
  return {
    async find(query) {
      const { walletAddress, kid } = query
      if (!isOwn(walletAddress)) return others.find(query)
      const keys = await keysOf(walletAddress)
      if (!keys.ok) throw new Error(`the keys of an own account cannot be read: ${keys.problem}`)
      return keyOf(keys.value, kid)
    },
    async displayOf(walletAddress) {
      if (!isOwn(walletAddress)) return others.displayOf?.(walletAddress)
      const { publicName } = (await accountAt(walletAddress)) ?? {}
      return publicName === undefined ? undefined : { name: publicName }
    },
  }

  async function accountAt(walletAddress: string): Promise<WalletAddress | undefined> {
    const account = await walletAddresses.find(walletAddress)
    // A table that ignores case finds the account of another wallet address.
    return account?.url === walletAddress ? account : undefined
  }

  async function keysOf(walletAddress: string): Promise<Result<KeySet, KeyFailure>> {
    try {
      const account = await accountAt(walletAddress)
      return readKeys((account?.keys ?? []).map(publishedJwk))
    } catch (error) {
      // Only the message: the code of an error of the host could mean a refused fetch here.
      return failed(error instanceof Error ? error.message : 'walletAddresses.find failed')
    }
  }
}

/** Rejects options that have no effect on the host's own `fetch`, because a host might rely on them. */
function requireNone(options: GuardedFetchOptions): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined)
  if (given !== undefined) {
    throw new InvalidInputError(given[0], 'has no effect with the option fetch')
  }
}

/** The usable keys that a client instance publishes: at most 20, and of each only `kid` and `x`. */
type KeySet = readonly PublicJwk[]

const keysMax = 20

interface KeyFailure {
  readonly ok: false
  readonly problem: string
  /**
   * - `busy`: the request was not sent, because too many are in progress.
   * - `refused`: the URL or the response breaks a rule of the fetch.
   * - `unreachable`: no URL of this host can be read.
   * - `failed`: this URL cannot be read.
   */
  readonly kind: 'busy' | 'refused' | 'unreachable' | 'failed'
}

/** A key set and when it was requested, or why there is none. */
type KeyAnswer = Result<KeySet, KeyFailure> & {
  readonly askedAt: Instant
  /** How often the host had called `forget` by then. */
  readonly forgets: number
  /** Whether the host sent a complete response. */
  readonly responded: boolean
}

/**
 * Reads the response from `{walletAddress}/jwks.json`. With 404 or 410 the key set is empty. Any other status and an
 * invalid document say nothing about the keys: a proxy, an expired login or a maintenance page can produce them.
 */
function readKeySet({ status, contentType, body }: FetchedDocument): Result<KeySet, KeyFailure> {
  if (status === 404 || status === 410) return ok([])
  if (status !== 200) return failed(`the response for the key set has status ${status}`)
  if (!jsonType.test(contentType)) return failed('the key set is not JSON')
  const document = parseJson(body)
  return readKeys(isObject(document) ? document['keys'] : undefined)
}

function readKeys(keys: Json | undefined): Result<KeySet, KeyFailure> {
  if (!Array.isArray(keys)) return failed('the key set has no keys')
  if (keys.length > keysMax) return failed(`the key set has more than ${keysMax} keys`)
  return ok(usableKeys(keys))
}

/** Omits keys that share their `kid` with another key, because the `kid` is ambiguous. */
function usableKeys(keys: readonly Json[]): KeySet {
  const kids = keys.map((key) => (isObject(key) ? key['kid'] : undefined))
  return keys.flatMap((key) => {
    const read = readPublicJwk(key)
    if (!read.ok) return []
    return kids.filter((kid) => kid === read.value.kid).length === 1 ? [read.value] : []
  })
}

function failed(problem: string): KeyFailure {
  return { ok: false, problem, kind: 'failed' }
}

function failureOf(error: unknown): KeyFailure {
  const problem = error instanceof Error ? error.message : 'the key set could not be fetched'
  if (isGateFull(error)) return { ok: false, problem, kind: 'busy' }
  if (isFetchRefusal(error)) return { ok: false, problem, kind: 'refused' }
  return { ok: false, problem, kind: isHostUnreachable(error) ? 'unreachable' : 'failed' }
}

/** What is known of the keys at a wallet address, or a failure of its whole host. */
interface Entry {
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

const nothingKnown: Entry = {
  keys: [],
  keysAt: Number.NEGATIVE_INFINITY,
  freshUntil: Number.NEGATIVE_INFINITY,
}

/** What is known after a request failed. */
function failedEntry(known: Entry, { problem, kind }: KeyFailure, now: Instant): Entry {
  const until = now + (kind === 'unreachable' ? hostPauseMs : pauseMs)
  return { ...known, failure: { problem, refused: kind === 'refused', until } }
}

function isFresh({ freshUntil }: Entry, now: Instant): boolean {
  return now < freshUntil
}

/** Whether the key set may be requested for a key that cannot be taken from the entry. */
function mayAsk(entry: Entry, isProved: boolean, now: Instant): boolean {
  const { keys, keysAt, failure } = entry
  if (failure !== undefined && now < failure.until) return false
  const missingMs = keys.length > 0 || isProved ? missingKidPauseMs : pauseMs
  return !isFresh(entry, now) || now - keysAt >= missingMs
}

/** Puts URLs that failed behind names that are new, so that the failures of a host delay each other first. */
function rankOf(entry: Entry): Rank {
  if (entry === nothingKnown) return 1
  return entry.keys.length > 0 ? 0 : 2
}

/** Finds a key by its `kid`. Only this key is screened completely, so a large set costs no more than a small one. */
function keyOf(keys: KeySet, kid: string): PublicJwk | undefined {
  const key = keys.find((candidate) => candidate.kid === kid)
  return key !== undefined && isSoundKey(key) ? key : undefined
}

/**
 * Returns the key, or `undefined` if it does not exist.
 *
 * @throws {FetchRefusedError} for a grant request, if the fetch refuses the URL or the response.
 * @throws {Error} if the key set could not be fetched, because the key may exist.
 */
function answerFrom(
  entry: Entry,
  { kid, mayBeNew }: ClientKeyQuery,
  now: Instant,
): PublicJwk | undefined {
  const { keys, keysAt, failure } = entry
  const key = keyOf(keys, kid)
  if (key !== undefined && (isFresh(entry, now) || now < keysAt + staleMs)) return key
  // After a failure, a missing key may have been published since.
  if (isFresh(entry, now) && failure === undefined) return undefined
  if (mayBeNew && failure?.refused) throw fetchRefusal(failure.problem)
  throw new Error(failure?.problem ?? 'the key set could not be fetched')
}

const MiB = 2 ** 20
/** For the key sets of proved clients. */
const provedBytesMax = 16 * MiB
/** For all that strangers cause: key sets of clients that are not proved, missing key sets, and failures. */
const recentBytesMax = 2 * MiB

/** The key sets of clients. Requests of strangers cannot evict the key sets of proved clients. */
function createKeyCache() {
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
    if (answer.ok) {
      const { value: keys, askedAt: keysAt } = answer
      return keep(recent, walletAddress, walletAddress, {
        keys,
        keysAt,
        freshUntil: keysAt + pauseMs,
      })
    }
    const failed = failedEntry(nothingKnown, answer, now)
    if (answer.kind === 'busy') return failed
    recent.delete(walletAddress)
    const key = answer.kind === 'unreachable' ? new URL(walletAddress).host : walletAddress
    return keep(recent, key, walletAddress, failed)
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
const keyBytes = 130
const characterBytes = 2

/** Stores an entry on behalf of its site. */
function keep(cache: BoundedCache<Entry>, key: string, walletAddress: string, value: Entry): Entry {
  const { keys, failure } = value
  const texts = [key, failure?.problem ?? '', ...keys.flatMap(({ kid, x }) => [kid, x])]
  const characters = texts.reduce((sum, { length }) => sum + length, 0)
  const bytes = entryBytes + keys.length * keyBytes + characters * characterBytes
  cache.set(key, { value, owner: siteOf(new URL(walletAddress).hostname), bytes })
  return value
}
