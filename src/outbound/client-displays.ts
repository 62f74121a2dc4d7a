import type { Instant } from '../core/instant.js'
import {
  boundedCache,
  createGate,
  type DocumentFetch,
  type FetchedDocument,
  isGateFull,
  siteOf,
} from '../network/index.js'
import type { Clock } from '../ports/host.js'
import { displayName } from '../protocol/display-name.js'
import { isObject, jsonBasedType, parseJson } from '../protocol/json.js'

/** How long a name is used before its document is fetched again. */
const freshMs = 300_000
/** How long a document without a usable name, and a failure, are remembered. */
const pauseMs = 30_000
const cacheBytesMax = 2 * 2 ** 20
/** Sizes in memory: of an entry in the cache, rounded up, and of a character. */
const entryBytes = 1_000
const characterBytes = 2

interface Entry {
  readonly name: string | undefined
  readonly until: Instant
}

interface DisplaysOptions {
  readonly fetch: DocumentFetch
  readonly requestMs: number
  readonly clock: Clock
}

/**
 * Creates the look-up of the names that clients publish in their wallet address documents. Its requests have slots of
 * their own, with the bounds of those for the keys of clients that are not proved, because a page for a person must not
 * delay a grant request.
 */
export function createDisplays({ fetch, requestMs, clock }: DisplaysOptions) {
  const cache = boundedCache<Entry>(cacheBytesMax)
  const request = createGate({ send, requestMs, firstPerHost: 1 })

  async function send(url: URL, signal: AbortSignal) {
    try {
      return { responded: true, document: await fetch(url, { signal }) } as const
    } catch {
      return { responded: false, document: undefined } as const
    }
  }

  async function nameOf(walletAddress: string): Promise<string | undefined> {
    const known = cache.get(walletAddress)
    if (known !== undefined && clock.now() < known.until) return known.name
    const rank = known === undefined ? 1 : known.name === undefined ? 2 : 0
    try {
      const { document } = await request(new URL(walletAddress), rank)
      return remember(walletAddress, document && readName(document, walletAddress))
    } catch (error) {
      // A request that was not sent says nothing about the client.
      return isGateFull(error) ? undefined : remember(walletAddress, undefined)
    }
  }

  function remember(walletAddress: string, name: string | undefined): string | undefined {
    const until = clock.now() + (name === undefined ? pauseMs : freshMs)
    const characters = walletAddress.length + (name?.length ?? 0)
    const bytes = entryBytes + characters * characterBytes
    const owner = siteOf(new URL(walletAddress).hostname)
    // A part of a string can keep the whole string in memory; a parsed one is a copy.
    const copy = name && JSON.parse(JSON.stringify(name))
    cache.set(walletAddress, { value: { name: copy, until }, owner, bytes })
    return name
  }

  return {
    async displayOf(walletAddress: string): Promise<{ readonly name: string } | undefined> {
      const name = await nameOf(walletAddress)
      return name === undefined ? undefined : { name }
    },
    forget: cache.delete,
  }
}

/** Returns the name in a wallet address document, or `undefined` if it is the document of another wallet address. */
function readName(
  { status, contentType, body }: FetchedDocument,
  walletAddress: string,
): string | undefined {
  if (status !== 200 || !jsonBasedType.test(contentType)) return undefined
  const document = parseJson(body)
  if (!isObject(document) || document['id'] !== walletAddress) return undefined
  return displayName(document['publicName'])
}
