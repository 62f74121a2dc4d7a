import type { Instant } from '../core/instant.js'
import { type Ok, ok } from '../core/result.js'
import type { Clock } from '../ports/clock.js'
import { createGate, isGateFull } from './gate.js'
import { type DocumentFetch, isFetchRefusal, isHostUnreachable } from './guarded-fetch.js'
import { type KeySet, readKeySet } from './key-set.js'
import { siteOf } from './site.js'

/** A key set and when it was requested, or why there is none. */
export type KeyAnswer = (Ok<KeySet> | KeyFailure) & { readonly askedAt: Instant }

export interface KeyFailure {
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

/** Requests that wait for a slot of their host. Further ones are rejected. */
const waitingMax = 8
/** Hosts with requests in progress. */
const hostsMax = 256
/** Limits per site, so that a domain with many subdomains cannot use up the requests of all. */
const perSite = { activeMax: 8, waitingMax: 8, keysMax: hostsMax }

/** Requests the key set of a wallet address. Never rejects. Calls for the same wallet address share one request. */
export type KeyRequests = (walletAddress: string) => Promise<KeyAnswer>

/**
 * Returns a function that sends at most `activeMax` requests at a time per host, 8 per site, and to 256 hosts in all.
 */
export function keyRequests(fetch: DocumentFetch, clock: Clock, activeMax: number): KeyRequests {
  const hosts = createGate({ activeMax, waitingMax, keysMax: hostsMax })
  const sites = createGate(perSite)
  const inFlight = new Map<string, Promise<KeyAnswer>>()

  async function request(walletAddress: string): Promise<KeyAnswer> {
    const url = new URL(`${walletAddress}/jwks.json`)
    let askedAt = clock.now()
    const send = () => {
      askedAt = clock.now()
      return fetch(url)
    }
    try {
      const document = await hosts.run(url.host, () => sites.run(siteOf(url.hostname), send))
      return { ...ok(readKeySet(document)), askedAt }
    } catch (error) {
      return { ...failureOf(error), askedAt }
    }
  }

  return (walletAddress) => {
    const shared = inFlight.get(walletAddress)
    if (shared !== undefined) return shared
    const started = request(walletAddress).finally(() => inFlight.delete(walletAddress))
    inFlight.set(walletAddress, started)
    return started
  }
}

function failureOf(error: unknown): KeyFailure {
  const problem = error instanceof Error ? error.message : 'the key set could not be fetched'
  return { ok: false, problem, kind: kindOf(error) }
}

function kindOf(error: unknown): KeyFailure['kind'] {
  if (isGateFull(error)) return 'busy'
  if (isFetchRefusal(error)) return 'refused'
  return isHostUnreachable(error) ? 'unreachable' : 'failed'
}
