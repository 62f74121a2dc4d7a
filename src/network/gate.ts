import { hasCode } from '../util/errors.js'
import { withDeadline } from './deadline.js'
import { siteOf } from './site.js'

/** Requests in progress to one host that responds. */
const hostMax = 4
/** Requests in progress to the hosts of one site. */
const siteMax = 8
/** Requests in progress. A site that already has one leaves the second half to other sites. */
const runningMax = 256
const runningForAll = 128
/** Callers that wait for a response or for their turn. Each of them holds a request of a client in memory. */
const callersMax = 512
/** How long a request waits for its turn. */
const turnMs = 5_000

interface GateOptions<Answer> {
  /** Sends a request. `responded` says whether the host sent a complete response, whatever it contains. */
  readonly send: (url: URL, signal: AbortSignal) => Promise<Answer>
  /** The time after which a request counts as failed and frees its slot, even if `send` has not ended. */
  readonly requestMs: number
  /** Requests in progress to a host that has not responded yet, or not to the last request. */
  readonly firstPerHost: number
}

/** The order of requests that wait: URLs that had a usable response before, unknown URLs, URLs that had none. */
export type Rank = 0 | 1 | 2

/**
 * Requests a URL that an untrusted party named. Callers that name the same URL at the same time share a request.
 * Rejects with `ERR_GATE_FULL` if the request was not sent, which says nothing about the host.
 */
type Gate<Answer> = (url: URL, rank: Rank) => Promise<Answer>

interface Caller<Answer> {
  readonly flight: Flight<Answer>
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** One request and those who wait for its answer. */
interface Flight<Answer> {
  readonly url: URL
  readonly site: string
  readonly rank: Rank
  readonly callers: Set<Caller<Answer>>
  /** Ends the wait for a slot. Absent once the request is in progress or dropped. */
  turn?: ReturnType<typeof setTimeout> | undefined
}

/**
 * Limits requests so that hosts that do not respond, or that are asked for very many URLs, do not use up what the
 * clients of others need. Each host and each site has a few slots, a host one more with each response. Half of all
 * slots are kept for sites that have no request in progress. A slot is freed at a deadline of its own. Requests wait
 * for a slot for at most 5 s. If too many callers wait, the latest of the site that has most of them is turned away.
 */
export function createGate<Answer extends { readonly responded: boolean }>({
  send,
  requestMs,
  firstPerHost,
}: GateOptions<Answer>): Gate<Answer> {
  /** By URL, in order of arrival. */
  const flights = new Map<string, Flight<Answer>>()
  /** By site, in order of arrival. */
  const callers = new Map<string, Set<Caller<Answer>>>()
  let callerCount = 0
  const slots = createSlots(firstPerHost)

  function join(flight: Flight<Answer>, caller: Caller<Answer>): void {
    flight.callers.add(caller)
    const ofSite = callers.get(flight.site) ?? new Set()
    callers.set(flight.site, ofSite.add(caller))
    callerCount += 1
    if (callerCount <= callersMax) return
    let largest: ReadonlySet<Caller<Answer>> = ofSite
    for (const some of callers.values()) if (some.size > largest.size) largest = some
    turnAway(largest === ofSite ? caller : ([...largest].at(-1) ?? caller))
  }

  function leave(caller: Caller<Answer>): void {
    const { flight } = caller
    const ofSite = callers.get(flight.site)
    if (!ofSite?.delete(caller)) return
    callerCount -= 1
    if (ofSite.size === 0) callers.delete(flight.site)
    flight.callers.delete(caller)
    if (flight.callers.size > 0 || flight.turn === undefined) return
    clearTimeout(flight.turn)
    flight.turn = undefined
    flights.delete(flight.url.href)
  }

  function turnAway(...some: readonly Caller<Answer>[]): void {
    for (const caller of some) {
      leave(caller)
      caller.reject(gateFull('too many requests are in progress'))
    }
  }

  function queue(url: URL, rank: Rank): Flight<Answer> {
    const flight: Flight<Answer> = { url, site: siteOf(url.hostname), rank, callers: new Set() }
    flight.turn = setTimeout(() => turnAway(...flight.callers), turnMs)
    flights.set(url.href, flight)
    return flight
  }

  const mayStart = (flight: Flight<Answer>) => flight.turn !== undefined && slots.mayTake(flight)

  function start(flight: Flight<Answer>): void {
    const { url } = flight
    clearTimeout(flight.turn)
    flight.turn = undefined
    const free = slots.take(flight)
    const end = (responded: boolean, settle: (caller: Caller<Answer>) => void) => {
      flights.delete(url.href)
      for (const caller of flight.callers) {
        leave(caller)
        settle(caller)
      }
      free(responded, startWaiting)
    }
    withDeadline(requestMs, (signal) => send(url, signal)).then(
      (answer) => end(answer.responded, ({ resolve }) => resolve(answer)),
      (error) => end(false, ({ reject }) => reject(error)),
    )
  }

  function startWaiting(): void {
    for (const rank of [0, 1, 2]) {
      for (const flight of flights.values()) {
        if (flight.rank === rank && mayStart(flight)) start(flight)
      }
    }
  }

  return (url, rank) =>
    new Promise((resolve, reject) => {
      const flight = flights.get(url.href) ?? queue(url, rank)
      join(flight, { flight, resolve, reject })
      if (mayStart(flight)) start(flight)
    })
}

/** What takes a slot: a request to a host of a site. */
interface Taker {
  readonly url: URL
  readonly site: string
}

/** Counts the requests in progress: in all, by site, and by host with its present limit. */
function createSlots(firstPerHost: number) {
  let running = 0
  const sites = new Map<string, number>()
  const hosts = new Map<string, { running: number; limit: number }>()
  return {
    mayTake({ url, site }: Taker): boolean {
      const ofSite = sites.get(site) ?? 0
      if (ofSite >= siteMax || running >= (ofSite === 0 ? runningMax : runningForAll)) return false
      const host = hosts.get(url.host)
      return host === undefined || host.running < host.limit
    },
    /**
     * Takes a slot. The result frees it, says whether the host has responded, and lets others take it before the limit
     * of the host is forgotten.
     */
    take({ url, site }: Taker): (responded: boolean, letOthers: () => void) => void {
      const host = hosts.get(url.host) ?? { running: 0, limit: firstPerHost }
      hosts.set(url.host, host)
      host.running += 1
      sites.set(site, (sites.get(site) ?? 0) + 1)
      running += 1
      return (responded, letOthers) => {
        running -= 1
        const ofSite = (sites.get(site) ?? 0) - 1
        if (ofSite === 0) sites.delete(site)
        else sites.set(site, ofSite)
        host.running -= 1
        host.limit = responded ? Math.min(host.limit + 1, hostMax) : firstPerHost
        letOthers()
        if (host.running === 0) hosts.delete(url.host)
      }
    },
  }
}

function gateFull(problem: string): Error {
  return Object.assign(new Error(problem), { code: 'ERR_GATE_FULL' })
}

export function isGateFull(error: unknown): boolean {
  return hasCode(error, 'ERR_GATE_FULL')
}
