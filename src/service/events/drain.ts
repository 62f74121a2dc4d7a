import { storeBounds } from '../../ports/store.js'
import { newUniqueText } from '../../protocol/credential.js'
import type { ServiceContext } from '../context.js'
import {
  type EventRecord,
  isInDelivery,
  isPending,
  placeOf,
  sliceCount,
  sliceNamespace,
} from '../event-record.js'
import { changesMax, loadEvents, postponeEvents } from './changes.js'
import { behindOwn, chooseRuns, decideReady, decisiveIds, type Run } from './choice.js'
import { beginWithinMs, type ClaimRecord, type Claims, stopAfterMs } from './claims.js'
import { type DrainSettings, deliveredEvent, type EventHandler } from './delivery.js'
import type { DueRanges } from './due-range.js'
import { createHandlers, type Delivery } from './handlers.js'
import { leaseDeliveries, type Outcomes, settleDeliveries, suspectEvents } from './outcomes.js'

const claimEnded = 'the consumer did not extend its claim in time'

/** How long a consumer takes new events of a slice before it offers it to others, in milliseconds. */
const holdMs = 1_000

/** How long it then waits for the deliveries in progress before it gives them leases, in milliseconds. */
const graceMs = 200

/** How long a lagging query may find an event that was removed, in milliseconds. */
const lagMs = 10_000

/** The most events that a consumer loads at a time. */
const batchMax = changesMax

/** How many times as many events a look-up reads after one that has found none but those behind its own deliveries. */
const wider = 4

/** A slice that a consumer holds. */
interface Held {
  readonly slice: number
  readonly since: number
  claim: ClaimRecord
  /** When the last commit of the claim was sent: by the stopwatch, and by the clock. */
  sent: { readonly elapsedMs: number; readonly now: number }
  /** When the deliveries in progress get leases; absent while new ones may begin. */
  closesAt?: number
  /** Aborted when the consumer no longer holds the slice. */
  readonly over: AbortController
}

/**
 * Delivers the events of a server until none is due. It serves one slice after another: it claims the slice, loads the
 * events that are due there, calls the handler, and removes all events whose delivery has ended at once. After about a
 * second, the deliveries that still run get leases of their own, and the slice is free for others.
 */
export async function drain(
  context: ServiceContext,
  { claims, ranges }: { readonly claims: Claims; readonly ranges: DueRanges },
  handler: EventHandler,
  settings: DrainSettings,
): Promise<Outcomes> {
  const { limit, concurrency, pollMs, signal } = settings
  const { store, clock, pacing, random } = context
  const namespace = await context.namespace()
  const handlers = createHandlers(pacing, handler, settings)
  const total = { delivered: 0, failed: 0 }
  /** The slices that the consumer holds. New deliveries begin in at most one of them. */
  const holds = new Map<number, Held>()
  /** The slices that others hold: the claim that was seen first, or nothing once it is known that the holder lives. */
  const taken = new Map<number, string | undefined>()
  /** The slices where due events wait for deliveries of this consumer, and those where one of these has ended. */
  const [behind, soon] = [new Set<number>(), new Set<number>()]
  /** How many times as many events as usual a look-up of a slice reads. */
  const widths = new Map<number, number>()
  /** The events that were removed lately, and when. */
  const removed = new Map<string, number>()
  let batch = Math.min(concurrency, batchMax)

  const isStopped = () => signal?.aborted === true
  const isFull = () => handlers.taken() >= limit
  const isDone = () => handlers.running() === 0 && handlers.ended.length === 0 && holds.size === 0
  const isWaiting = () => [...taken.values()].some((claim) => claim !== undefined)
  const settled = () => total.delivered + total.failed

  /** The deliveries that only the claim of the slice protects. */
  const unleased = (of: number) =>
    [...handlers.inDelivery.values()].filter(({ slice, isLeased }) => slice === of && !isLeased)

  /** Waits until a delivery ends or a slice is to be released, but not longer. */
  async function news(ms: number): Promise<void> {
    const ends = Array.from(holds.values(), ({ closesAt = Number.POSITIVE_INFINITY }) => closesAt)
    await handlers.news(Math.max(0, Math.min(ms, Math.min(...ends) - pacing.elapsedMs())))
  }

  /** Records the outcomes of the deliveries that have ended, and releases slices. */
  async function tend(): Promise<void> {
    const ended = [...handlers.ended]
    if (ended.length > 0) {
      const { delivered, failed } = await settleDeliveries(context, settings, ended)
      handlers.settled(ended)
      for (const { delivery } of ended) {
        removed.set(delivery.record.id, pacing.elapsedMs())
        if (behind.delete(delivery.slice)) soon.add(delivery.slice)
      }
      total.delivered += delivered
      total.failed += failed
    }
    for (const of of [...holds.values()]) {
      if (of.closesAt === undefined) continue
      if (unleased(of.slice).length === 0 || pacing.elapsedMs() >= of.closesAt) await release(of)
    }
  }

  /** Begins deliveries of due events of a slice, which it claims for that. Resolves to their number. */
  async function lookUp(slice: number): Promise<number> {
    const own = unleased(slice)
    // An event whose delivery may have ended a process is delivered alone.
    if (own.some(({ record }) => isInDelivery(record))) return 0
    const now = clock.now()
    const width = widths.get(slice) ?? 1
    const most = Math.min(storeBounds.dueLimit, width * (2 * batchMax + own.length))
    const from = ranges.from(slice)
    const found = await store.due('event', sliceNamespace(namespace, slice), now, most, from)
    const due = found as readonly EventRecord[]
    ranges.note(slice, from, due, now)
    const streams = new Set(Array.from(handlers.inDelivery.keys(), (id) => placeOf(id).stream))
    const isBusy = ({ id }: EventRecord) => streams.has(placeOf(id).stream)
    const waiting = behindOwn(due, handlers.inDelivery, now)
    if (due.some((record) => isBusy(record) && !handlers.inDelivery.has(record.id))) {
      behind.add(slice)
    }
    const isCut = found.length === most
    let moved = isCut ? await postponeEvents(context, waiting) : 0
    forgetRemoved()
    const room = Math.min(batch, limit - handlers.taken())
    const runs = chooseRuns(due, { streams, removed, isBusy: own.length > 0, room })
    if (found.length < most / (2 * wider)) widths.set(slice, Math.max(1, width / wider))
    if (runs.length === 0) {
      taken.delete(slice)
      // However many events wait behind deliveries of this consumer, they must not hide those of other records.
      const isHidden = isCut && most < storeBounds.dueLimit && due.every(isBusy)
      if (isHidden) widths.set(slice, width * wider)
      return moved > 0 || isHidden ? lookUp(slice) : 0
    }
    const started = [...own.map(({ record }) => record), ...runs.flat()].map(({ id }) => id)
    const of = await hold(slice, started)
    if (of === undefined) return 0
    const current = await loadEvents(context, decisiveIds(runs))
    const ready = runs.map((run) => decideReady(run, due, current, clock.now()))
    const isAlone = own.length === 0 && runs.length === 1
    const count = ready.reduce((sum, { run }) => sum + begin(of, run, isAlone), 0)
    moved += await postponeEvents(
      context,
      ready.flatMap((each) => each.behind),
    )
    if (count >= batch) batch = Math.min(batchMax, 2 * batch)
    // Events that have to wait must not hide others.
    return count === 0 && isCut && moved > 0 ? lookUp(slice) : count
  }

  /**
   * Claims a slice, or extends the claim, to deliver these events. Resolves to `undefined` if another consumer has it.
   */
  async function hold(slice: number, started: readonly string[]): Promise<Held | undefined> {
    const held = holds.get(slice)
    const holder = held?.claim.holder ?? newUniqueText(random)
    const sent = { elapsedMs: pacing.elapsedMs(), now: clock.now() }
    const claimed = await claims.take(slice, holder, started, held?.claim)
    const { claim } = claimed
    if (!claimed.isHeld) {
      if (held !== undefined) lose(held, 'another consumer has taken the events')
      const isKnown = taken.has(slice) && taken.get(slice) !== claim.commandId
      taken.set(slice, isKnown ? undefined : claim.commandId)
      return undefined
    }
    taken.delete(slice)
    const next = held ?? { slice, since: sent.elapsedMs, claim, sent, over: new AbortController() }
    Object.assign(next, { claim, sent })
    holds.set(slice, next)
    if (held === undefined) void watch(next)
    if (claimed.abandoned === undefined) return next
    const suspects = await loadEvents(context, claimed.abandoned)
    await suspectEvents(context, settings, [...suspects.values()].filter(isPending))
    return hold(slice, started)
  }

  /** Stops the deliveries of a slice whose claim the consumer could not extend in time. */
  async function watch(of: Held): Promise<void> {
    while (!of.over.signal.aborted) {
      const leftMs = of.sent.elapsedMs + stopAfterMs - pacing.elapsedMs()
      if (leftMs <= 0) return lose(of, claimEnded)
      await pacing.sleep(leftMs, of.over.signal)
    }
  }

  function mayBegin({ closesAt, over, sent }: Held): boolean {
    if (closesAt !== undefined || over.signal.aborted || isStopped()) return false
    return ageOf(sent) < beginWithinMs
  }

  /** How long ago a claim was extended. The stopwatch of a machine that was suspended may have stood still. */
  function ageOf(sent: Held['sent']): number {
    return Math.max(pacing.elapsedMs() - sent.elapsedMs, clock.now() - sent.now)
  }

  /** Begins the deliveries of the events of one record. Returns their number. */
  function begin(of: Held, run: Run, isAlone: boolean): number {
    const [first] = run
    if (first === undefined) return 0
    const isSuspect = isInDelivery(first)
    if (isSuspect && !isAlone) return 0
    const exhausted = run.findIndex(({ attempts }) => attempts >= settings.attemptsMax)
    if (exhausted === 0) {
      const error = new Error('the last delivery started but did not finish')
      handlers.end({ ...deliveryOf(first, of), attempt: first.attempts }, error)
      return 1
    }
    const end = isSuspect ? 1 : exhausted === -1 ? run.length : exhausted
    const deliveries = run.slice(0, end).map((record) => deliveryOf(record, of))
    handlers.add(deliveries)
    return deliveries.length
  }

  function deliveryOf(record: EventRecord, of: Held): Delivery {
    const delivery: Delivery = {
      record,
      slice: of.slice,
      event: deliveredEvent(context, namespace, record),
      attempt: record.attempts + 1,
      isLeased: false,
      mayBegin: () => mayBegin(of),
      overdue: () => (!delivery.isLeased && ageOf(of.sent) >= stopAfterMs ? claimEnded : undefined),
      lose: () => undefined,
    }
    return delivery
  }

  /** Serves a slice for a while. Resolves to the number of deliveries that it has begun. */
  async function serve(slice: number): Promise<number> {
    if (holds.has(slice)) return 0
    try {
      return await deliverFrom(slice)
    } finally {
      // Also after a failed look-up, which no delivery in progress depends on.
      const of = holds.get(slice)
      if (of !== undefined) close(of)
    }
  }

  async function deliverFrom(slice: number): Promise<number> {
    let begun = await lookUp(slice)
    let isFinding = begun > 0
    const of = holds.get(slice)
    while (of !== undefined && !of.over.signal.aborted) {
      const leftMs = of.since + holdMs - pacing.elapsedMs()
      if (isStopped() || leftMs <= 0) break
      await tend()
      if (isFinding && handlers.waiting() < concurrency && !isFull()) {
        const more = await lookUp(slice)
        begun += more
        isFinding = more > 0
      } else {
        if (handlers.waiting() === 0) break
        await news(leftMs)
      }
    }
    return begun
  }

  /** Begins no more deliveries in a slice. Those in progress have some time to end. */
  function close(of: Held): void {
    if (handlers.waiting() > 0) batch = Math.max(Math.min(concurrency, batchMax), batch >> 1)
    of.closesAt = pacing.elapsedMs() + graceMs
    handlers.clear()
  }

  /** Gives a slice back. The deliveries that still run get leases. */
  async function release(of: Held): Promise<void> {
    try {
      await leaseDeliveries(context, settings, unleased(of.slice))
      await claims.release(of.slice, of.claim)
    } catch (error) {
      lose(of, 'the store failed')
      throw error
    }
    of.over.abort()
    holds.delete(of.slice)
  }

  /** Ends the deliveries that only a claim protects, because it no longer does. */
  function lose(of: Held, reason: string): void {
    of.over.abort()
    holds.delete(of.slice)
    for (const delivery of unleased(of.slice)) delivery.lose(new Error(reason))
    claims.abandon(of.claim)
  }

  function forgetRemoved(): void {
    for (const [id, at] of removed) {
      if (pacing.elapsedMs() - at < lagMs) return
      removed.delete(id)
    }
  }

  /**
   * Waits before the next round, and serves the slices in between where an event has waited for a delivery that has
   * ended. Resolves to whether nothing is left to do.
   */
  async function rest(before: number): Promise<boolean> {
    const endsAt = pacing.elapsedMs() + (isWaiting() ? Math.min(pollMs, holdMs) : pollMs)
    for (;;) {
      await tend()
      const leftMs = endsAt - pacing.elapsedMs()
      if (isStopped() || leftMs <= 0) return false
      const [next] = soon
      if (next !== undefined && handlers.running() < concurrency) {
        soon.delete(next)
        await serve(next)
        continue
      }
      if (isDone() && !isWaiting()) return settled() === before
      await news(leftMs)
    }
  }

  /** Records what has ended, and releases all slices, if the store lets it. */
  async function finish(): Promise<void> {
    try {
      await tend()
    } catch {
      // The caller receives the first error.
    }
    for (const of of [...holds.values()]) lose(of, 'the store failed')
  }

  /** Serves all slices in turn. Resolves when a round has found nothing, and no delivery is in progress. */
  async function serveAll(): Promise<void> {
    const [byte = 0] = random.getRandomValues(new Uint8Array(1))
    let slice = byte % sliceCount
    let [idle, before] = [0, 0]
    for (;;) {
      try {
        await tend()
        const isOver = isStopped() || isFull()
        if (isOver && isDone()) return
        if (isOver || handlers.running() >= concurrency) {
          await news(pollMs)
        } else if (idle < sliceCount) {
          if (idle === 0) before = settled()
          idle = (await serve(slice)) > 0 ? 0 : idle + 1
          slice = (slice + 1) % sliceCount
        } else {
          if (await rest(before)) return
          idle = 0
        }
      } catch (error) {
        // While deliveries are in progress, the call tries again after a pause: the store may recover before they end.
        if (handlers.running() === 0) {
          await finish()
          throw error
        }
        await pacing.sleep(Math.min(pollMs, holdMs), signal)
      }
    }
  }

  signal?.addEventListener('abort', handlers.tell)
  try {
    await serveAll()
  } finally {
    signal?.removeEventListener('abort', handlers.tell)
  }
  return total
}
