import * as v from 'valibot'
import { type Instant, wholeMilliseconds } from '../core/instant.js'
import {
  createGate,
  type DocumentFetch,
  fetchRefusal,
  type GuardedFetchOptions,
  guardedFetch,
  guardedFetchOptions,
  isFetchRefusal,
  isGateFull,
  isHostUnreachable,
} from '../network/index.js'
import type {
  ClientKeyQuery,
  ClientKeys,
  Clock,
  HostCall,
  PublicJwk,
  WalletAddresses,
} from '../ports/host.js'
import { clockOption } from '../protocol/host-options.js'
import { canonicalUrl } from '../protocol/url.js'
import { callback, type Members, optionsOf, port, readInput, string } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { createDisplays } from './client-displays.js'
import { createForgets, type Forgotten } from './forgets.js'
import {
  createKeyCache,
  type Entry,
  entryOf,
  isFresh,
  type KeyAnswer,
  mayAsk,
  rankOf,
  staleMs,
} from './key-cache.js'
import { type KeySetFailure, keyIn, readKeySet } from './key-set.js'
import { type OwnAccounts, withOwnAccounts } from './own-accounts.js'

/** How key sets of clients are fetched, and for how long they are kept. */
export interface RemoteClientKeysOptions extends GuardedFetchOptions {
  /**
   * The accounts whose keys are read with `walletAddresses.find` at each look-up, and never fetched or cached: a key
   * that the owner removes or adds is rejected or accepted at the next request. A wallet address there without an
   * account has no keys. `createWallet` does this for its own accounts. Default: all key sets are fetched.
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

/** A URL that a wallet address can have, in its canonical form. */
const accountUrl = v.pipe(
  string,
  v.transform(canonicalUrl),
  v.string('must be a URL that wallet addresses can have'),
)

const clientKeysOptions = optionsOf({
  ...guardedFetchOptions,
  ownAccounts: v.optional(
    optionsOf({
      baseUrl: accountUrl,
      walletAddresses: port<WalletAddresses>('find'),
    } satisfies Members<OwnAccounts>),
  ),
  fetch: v.optional(callback<DocumentFetch>()),
  clock: clockOption,
} satisfies Members<RemoteClientKeysOptions>)

/** `guardedFetch` ends within `timeoutMs` with a precise error. Its slot is freed soon after in any case. */
const graceMs = 500

/** The keys and names that clients publish. The servers pass each call; your own code need not. */
export interface RemoteClientKeys extends ClientKeys {
  find(query: ClientKeyQuery, call?: HostCall): Promise<PublicJwk | undefined>
  displayOf(walletAddress: string, call?: HostCall): Promise<{ readonly name?: string } | undefined>
  /**
   * Removes the name, the key set and failures of a wallet address, in any spelling, and the failures of its host, in
   * this process. The next look-up fetches the key set, even if a request for it is in progress.
   *
   * @throws {InvalidInputError} for an invalid wallet address.
   */
  forget(walletAddress: string): void
}

/**
 * Finds the keys of clients in the key sets that they publish at `{walletAddress}/jwks.json`.
 *
 * - The key set of a client that has used a grant, and so has proved its key, is used for 300 s, and for up to 900 s
 *   while it cannot be fetched. The key set of any other client is used for 30 s. For a `kid` that a key set lacks it
 *   is fetched again, at most every 5 s.
 * - A key has been withdrawn if the response is 404 or 410, or a valid key set without its `kid`. Any other response is
 *   a failure, and so are redirects.
 * - Requests and caches are bounded for each host, each domain and in all, so that strangers who name many URLs do not
 *   delay clients or evict their keys. docs/client-keys.md has the numbers.
 *
 * `displayOf` resolves to the `publicName` in the document at a wallet address, if its `id` is exactly this wallet
 * address. It does not reject.
 *
 * @throws {InvalidInputError} for an invalid option, and on runtimes other than Node without `fetch`.
 *
 * @example
 * ```ts
 * import { createAuthorizationServer, remoteClientKeys } from 'open-payments-server'
 *
 * const clientKeys = remoteClientKeys({ timeoutMs: 1_000 })
 * const auth = createAuthorizationServer({
 *   grantEndpoint: 'https://auth.wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   clientKeys,
 *   store,
 * })
 * clientKeys.forget('https://shop.example') // its owner reports a stolen key
 * ```
 */
export function remoteClientKeys(options: RemoteClientKeysOptions = {}): RemoteClientKeys {
  const settings = readInput('', clientKeysOptions, options)
  const { fetch: ownFetch, ownAccounts, timeoutMs } = settings
  const fetch = ownFetch ?? guardedFetch(fetchOptionsIn(options))
  if (ownFetch !== undefined) requireNone(fetchOptionsIn(options))
  const clock = wholeMilliseconds(settings.clock)
  const cache = createKeyCache()
  const forgets = createForgets()
  const requestMs = ownFetch === undefined ? timeoutMs + graceMs : timeoutMs
  const reserved = createGate({ send, requestMs, firstPerHost: 2 })
  const shared = createGate({ send, requestMs, firstPerHost: 1 })
  const displays = createDisplays({ fetch, requestMs, clock })

  /** Requests a key set. The answer says what the host asked to forget while it was in progress. */
  function send(url: URL, signal: AbortSignal) {
    return forgets.during(url, async (forgotten) => {
      const askedAt = clock.now()
      try {
        return { askedAt, forgotten, responded: true, ...readKeySet(await fetch(url, { signal })) }
      } catch (error) {
        return { askedAt, forgotten, responded: false, ...failureOf(error) }
      }
    })
  }

  /**
   * Looks up a key set. Requests that strangers can cause more often than the client itself do not use the slots for
   * proved clients: grant requests of clients that are not proved, and with unknown keys of clients that are. Only the
   * holder of a token can cause the others.
   */
  async function refresh(query: ClientKeyQuery, entry: Entry, now: Instant): Promise<Entry> {
    const { walletAddress, mayBeNew } = query
    const isOwn = !mayBeNew || (cache.isProved(walletAddress) && !isFresh(entry, now))
    const request = isOwn ? reserved : shared
    const url = new URL(`${walletAddress}/jwks.json`)
    return forgets.during(url, async (forgotten) => {
      const ask = () =>
        request(url, rankOf(entry)).catch((error) => ({
          askedAt: clock.now(),
          forgotten,
          ...failureOf(error),
        }))
      let answer = await ask()
      // The request may have begun before a `forget` that this look-up follows.
      if (isForgotten(answer)) answer = await ask()
      const at = clock.now()
      return isForgotten(answer) ? entryOf(answer, at) : cache.record(query, answer, at)
    })
  }

  const fetched: Required<ClientKeys> = {
    async find(query) {
      const { walletAddress, kid } = query
      const now = clock.now()
      const entry = cache.find(query, now)
      const key = isFresh(entry, now) ? keyIn(entry.keys, kid) : undefined
      if (key?.ok) return key.value
      const isProved = cache.isProved(walletAddress)
      const latest = mayAsk(entry, isProved, now) ? await refresh(query, entry, now) : entry
      return answerFrom(latest, query, clock.now())
    },
    displayOf: displays.displayOf,
  }
  const { find, displayOf } =
    ownAccounts === undefined ? fetched : withOwnAccounts(ownAccounts, fetched)

  return {
    find: (query, call = uncancelled()) => find(query, call),
    displayOf: (walletAddress, call = uncancelled()) => displayOf(walletAddress, call),
    forget(walletAddress) {
      const canonical = readInput('walletAddress', accountUrl, walletAddress)
      forgets.forget(new URL(`${canonical}/jwks.json`))
      cache.forget(canonical)
      displays.forget(canonical)
    },
  }
}

/** The call of nobody who stops waiting. */
function uncancelled(): HostCall {
  return { signal: new AbortController().signal }
}

function fetchOptionsIn({
  fetch: _fetch,
  clock: _clock,
  ownAccounts: _ownAccounts,
  ...options
}: RemoteClientKeysOptions): GuardedFetchOptions {
  return options
}

/** Rejects options that have no effect on the host's own `fetch`, because a host might rely on them. */
function requireNone({ timeoutMs: _timeoutMs, ...options }: GuardedFetchOptions): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined)
  if (given !== undefined) {
    throw new InvalidInputError(given[0], 'has no effect with the option fetch')
  }
}

/** Whether the host asked to forget what the answer says while it was requested. */
function isForgotten(answer: KeyAnswer & { readonly forgotten: Forgotten }): boolean {
  const { keySet, host } = answer.forgotten
  return keySet() || (!answer.ok && answer.kind === 'unreachable' && host())
}

function failureOf(error: unknown): KeySetFailure {
  const problem = error instanceof Error ? error.message : 'the key set could not be fetched'
  if (isGateFull(error)) return { ok: false, problem, kind: 'busy' }
  if (isFetchRefusal(error)) return { ok: false, problem, kind: 'refused' }
  return { ok: false, problem, kind: isHostUnreachable(error) ? 'unreachable' : 'failed' }
}

/**
 * A key set, or a key in it, that cannot be used until the client changes it. The message is one of a few constant
 * sentences, and the client receives it.
 *
 * @example
 * ```ts
 * import { ClientKeyError, type ClientKeys } from 'open-payments-server'
 *
 * const clientKeys: ClientKeys = {
 *   async find({ walletAddress, kid }) {
 *     throw new ClientKeyError('ERR_KEY_UNUSABLE', `${walletAddress} must replace its key ${kid}`)
 *   },
 * }
 * ```
 */
export class ClientKeyError extends Error {
  /** `ERR_KEY_SET` if it is not known which keys the client has. */
  readonly code: 'ERR_KEY_SET' | 'ERR_KEY_UNUSABLE'

  constructor(code: ClientKeyError['code'], problem: string) {
    super(problem)
    this.code = code
  }
}

/**
 * Returns the key, or `undefined` if it does not exist or cannot be used.
 *
 * @throws {ClientKeyError} for a key set that is invalid, and for a grant request with a key that cannot be used.
 * @throws {FetchRefusedError} for a grant request, if the fetch refuses the URL or the response.
 * @throws {Error} if the key set could not be fetched, because the key may exist.
 */
function answerFrom(
  entry: Entry,
  { kid, mayBeNew }: ClientKeyQuery,
  now: Instant,
): PublicJwk | undefined {
  const { keys, keysAt, failure } = entry
  const key = keyIn(keys, kid)
  if (key?.ok && (isFresh(entry, now) || now < keysAt + staleMs)) return key.value
  // After a failure, a missing key may have been published since.
  if (isFresh(entry, now) && failure === undefined) {
    if (mayBeNew && key?.ok === false) throw new ClientKeyError('ERR_KEY_UNUSABLE', key.problem)
    return undefined
  }
  const { kind, problem = 'the key set could not be fetched' } = failure ?? {}
  if (mayBeNew && kind === 'refused') throw fetchRefusal(problem)
  throw kind === 'invalid' ? new ClientKeyError('ERR_KEY_SET', problem) : new Error(problem)
}
