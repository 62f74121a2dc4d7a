import { addressIn } from '../protocol/ip-address.js'
import { hasCode } from '../util/errors.js'
import { integerFrom } from '../util/input.js'

/** Checks the timeout of a request, in milliseconds. */
export const requireTimeout = integerFrom(1, 60_000)

/**
 * Runs work with a signal that aborts after `ms`, or with the signal of the caller. The promise rejects at that time,
 * even if the work ignores its signal.
 *
 * The timer holds the controller. `AbortSignal.any` would lose a time-out in a garbage collection, on Node 20 and on
 * Node 22 before 22.16.
 */
export async function withDeadline<Value>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Value>,
  outer?: AbortSignal,
): Promise<Value> {
  outer?.throwIfAborted()
  const controller = new AbortController()
  const { signal } = controller
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const follow = () => controller.abort(outer?.reason)
  outer?.addEventListener('abort', follow, { once: true })
  const timer = setTimeout(() => {
    controller.abort(new DOMException('there was no response in time', 'TimeoutError'))
  }, ms)
  try {
    return await Promise.race([work(signal), aborted])
  } finally {
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
}

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
  /** When a request counts as failed and frees its slot, whatever `send` does. */
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
  /** Requests in progress: in all, by site, and by host with its present limit. */
  let running = 0
  const sites = new Map<string, number>()
  const hosts = new Map<string, { running: number; limit: number }>()

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

  function mayStart({ url, site, turn }: Flight<Answer>): boolean {
    if (turn === undefined) return false
    const ofSite = sites.get(site) ?? 0
    if (ofSite >= siteMax || running >= (ofSite === 0 ? runningMax : runningForAll)) return false
    const host = hosts.get(url.host)
    return host === undefined || host.running < host.limit
  }

  function start(flight: Flight<Answer>): void {
    const { url, site } = flight
    clearTimeout(flight.turn)
    flight.turn = undefined
    const host = hosts.get(url.host) ?? { running: 0, limit: firstPerHost }
    hosts.set(url.host, host)
    host.running += 1
    sites.set(site, (sites.get(site) ?? 0) + 1)
    running += 1
    const end = (responded: boolean, settle: (caller: Caller<Answer>) => void) => {
      flights.delete(url.href)
      for (const caller of flight.callers) {
        leave(caller)
        settle(caller)
      }
      running -= 1
      const ofSite = (sites.get(site) ?? 0) - 1
      if (ofSite === 0) sites.delete(site)
      else sites.set(site, ofSite)
      host.running -= 1
      host.limit = responded ? Math.min(host.limit + 1, hostMax) : firstPerHost
      startWaiting()
      if (host.running === 0) hosts.delete(url.host)
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

function gateFull(problem: string): Error {
  return Object.assign(new Error(problem), { code: 'ERR_GATE_FULL' })
}

export function isGateFull(error: unknown): boolean {
  return hasCode(error, 'ERR_GATE_FULL')
}

/** A value, its size in memory, and who caused it to be cached. */
interface CachedValue<Value> {
  readonly value: Value
  readonly owner: string
  readonly bytes: number
}

/**
 * A cache that holds a limited number of bytes. When it is full, it evicts the least recently used value of the owner
 * that uses most bytes. An owner can therefore not evict the values of others that use less.
 */
export interface BoundedCache<Value> {
  get(key: string): Value | undefined
  set(key: string, cached: CachedValue<Value>): void
  delete(key: string): void
  readonly bytes: number
}

interface Owner {
  bytes: number
  readonly keys: Set<string>
}

export function boundedCache<Value>(bytesMax: number): BoundedCache<Value> {
  const values = new Map<string, CachedValue<Value>>()
  /** The owners and their keys, each in order of last use: maps and sets iterate in order of insertion. */
  const owners = new Map<string, Owner>()
  let total = 0

  function add(key: string, cached: CachedValue<Value>): void {
    const owner = owners.get(cached.owner) ?? { bytes: 0, keys: new Set() }
    owners.delete(cached.owner)
    owners.set(cached.owner, owner)
    owner.keys.add(key)
    owner.bytes += cached.bytes
    values.set(key, cached)
    total += cached.bytes
  }

  function remove(key: string): void {
    const cached = values.get(key)
    const owner = cached && owners.get(cached.owner)
    if (cached === undefined || owner === undefined) return
    values.delete(key)
    total -= cached.bytes
    owner.keys.delete(key)
    owner.bytes -= cached.bytes
    if (owner.keys.size === 0) owners.delete(cached.owner)
  }

  return {
    get(key) {
      const cached = values.get(key)
      if (cached === undefined) return undefined
      remove(key)
      add(key, cached)
      return cached.value
    },
    set(key, cached) {
      remove(key)
      if (cached.bytes > bytesMax) return
      add(key, cached)
      while (total > bytesMax) remove(oldestOfLargest(owners.values()))
    },
    delete: remove,
    get bytes() {
      return total
    },
  }
}

/** Returns the least recently used key of the owner that uses most bytes. */
function oldestOfLargest(owners: Iterable<Owner>): string {
  let largest: Owner = { bytes: 0, keys: new Set() }
  for (const owner of owners) if (owner.bytes > largest.bytes) largest = owner
  const [oldest = ''] = largest.keys
  return oldest
}

/**
 * Returns the domain that was probably registered for a hostname: its last two labels, or three below a registry of a
 * country. All IP addresses are one site, because a client can name any address.
 *
 * This decides who shares limits, so that using many subdomains does not raise a limit. It is an approximation: hosts
 * of different owners below one domain, as in `alice.hosting.example`, share the limits too.
 */
export function siteOf(hostname: string): string {
  if (addressIn(hostname) !== undefined) return 'addresses'
  const labels = hostname.split('.')
  const [label = '', country = ''] = labels.slice(-2)
  const isRegistry = registries.get(label)?.has(country) || open.has(country)
  return labels.slice(isRegistry ? -3 : -2).join('.')
}

/**
 * The labels below which the registries of countries register names, as in `example.co.uk`, with these countries. They
 * are the common labels in the ICANN section of the Public Suffix List. The whole list changes every week and is larger
 * than this library. A pair that is missing here is safe, because the names below it share limits; a pair that is not
 * a registry would give its owner any number of sites.
 */
const registries = new Map(
  Object.entries({
    ac:
      'ae at bd be ci cn cr cy eg fj gn id il im in ir jp ke kr lk ls ma me mu mw mz ni nz ' +
      'pa pk pr rs rw se sz th tz ug uk vn za zm zw',
    co:
      'ae ag am ao at bb bd bi bj bw bz ci cl cm cr dm gg gl gy hu id il im in io ir it je ' +
      'jp ke kr lc ls ma me mg mu mw mz na ni nz om pn rs rw ss st sz th tj tm tt tz ug uk ' +
      'us uz ve vi za zm zw',
    com:
      'ac af ag ai al am ar au aw az ba bb bd bh bi bj bm bn bo br bs bt by bz ci cm cn co ' +
      'cu cv cw cy dm do dz ec ee eg es et fj fm fr ge gh gi gl gn gp gr gt gu gy hk hn hr ' +
      'ht im in io iq jo kg kh ki km kp kw ky kz la lb lc lk lr lv ly mg mk ml mo ms mt mu ' +
      'mv mw mx my na nf ng ni nr om pa pe pf ph pk pl pr ps pt py qa re ro sa sb sc sd sg ' +
      'sh sl sn so ss st sv sy tj tm tn to tr tt tw ua ug uy uz vc ve vi vn vu ws ye zm',
    edu:
      'ac af al ao ar au az ba bb bd bh bi bj bm bn bo br bs bt bz ci cn co cu cv cw dm do ' +
      'dz ec ee eg es et fm gd ge gh gi gl gn gp gr gt gu gy hk hn ht in io iq it jo kg kh ' +
      'ki km kn kp kw ky kz la lb lc lk lr ls lv ly me mg mk ml mn mo ms mt mv mw mx my mz ' +
      'ng ni nr om pa pe pf ph pk pl pn pr ps pt py qa rs sa sb sc sd sg sl sn so ss st sv ' +
      'sy tj tm to tr tt tw ua uy vc ve vn vu ws ye za zm',
    go: 'ci cr id it jp ke kr th tj tz ug',
    gov:
      'ac ae af al ao ar as au az ba bb bd bf bh bm bn br bs bt by bz cd cl cm cn co cx cy ' +
      'dm do dz ec ee eg et fj gd ge gh gi gn gr gu gy hk ie il in io iq ir it jo kg kh ki ' +
      'km kn kp kw kz la lb lc lk lr ls lt lv ly ma me mg mk ml mn mo mr ms mu mv mw my mz ' +
      'na ng nr om ph pk pl pn pr ps pt py qa rs rw sa sb sc sd sg sh sl so ss sx sy tj tl ' +
      'tm tn to tr tt tw ua uk vc ve vn ws ye za zm zw',
    ltd: 'cy gi lk uk',
    me: 'eg in it ke so ss tz uk us',
    ne: 'jp ke kr tz ug us',
    net:
      'ac ae af ag ai al am ar au az ba bb bd bh bj bm bn bo br bs bt bz ci cm cn co cu cv ' +
      'cw cy dm do dz ec eg et fj fm ge gg gl gn gp gr gt gu gy hk hn ht id il im in io iq ' +
      'ir je jo kg kh ki kn kw ky kz la lb lc lk lr ls lv ly ma me mk ml mo ms mt mu mv mw ' +
      'mx my mz na nf ng ni nr nz om pa pe ph pk pl pn pr ps pt py qa rw sa sb sc sd sg sh ' +
      'sl so ss st sy th tj tm tn to tr tt tw ua uk uy uz vc ve vi vn vu ws ye za zm',
    or: 'at bi ci cr id it jp ke kr mu th tz ug us',
    org:
      'ac ae af ag ai al am ao ar au az ba bb bd bh bi bj bm bn bo br bs bt bw bz ci cn co ' +
      'cu cv cw cy dm do dz ec ee eg es et fj fm ge gg gh gi gl gn gp gr gt gu gy hk hn ht ' +
      'hu il im in io iq ir je jo kg kh ki km kn kp kw ky kz la lb lc lk lr ls lv ly ma me ' +
      'mg mk ml mn mo ms mt mu mv mw mx my mz na ng ni nr nz om pa pe pf ph pk pl pn pr ps ' +
      'pt py qa ro rs rw sa sb sc sd se sg sh sl sn so ss st sv sy sz tj tm tn to tr tt tw ' +
      'ua ug uk uy uz vc ve vi vn vu ws ye za zm zw',
    plc: 'ly uk',
  }).map(([label, countries]) => [label, new Set(countries.split(' '))]),
)

/** Countries that register names below any label. */
const open = new Set(['ck', 'er', 'fk', 'jm', 'mm', 'np', 'pg'])
