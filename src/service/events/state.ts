import type { Instant } from '../../core/instant.js'
import { storeBounds } from '../../ports/store.js'
import { type EventRecord, sliceCount } from '../event-record.js'
import { changesMax } from './changes.js'
import { type Ready, type Run, runMax } from './choice.js'
import { beginWithinMs, type ClaimRecord, stopAfterMs } from './claims.js'
import type { DrainSettings } from './drain-options.js'

/** How long a consumer takes new events of a slice before it offers it to others, in milliseconds. */
export const holdMs = 1_000

/** Why the deliveries of a slice end whose claim was not renewed in time. */
export const claimEnded = 'the consumer did not extend its claim in time'

/** The time by the stopwatch of the process, and by its clock. */
export interface Moment {
  readonly elapsedMs: number
  readonly now: Instant
}

export type Handled =
  | { readonly type: 'done' }
  /** The handler wants the event again, not before an instant. */
  | { readonly type: 'postponed'; readonly retryAt: Instant }
  | { readonly type: 'failed'; readonly error: unknown }

/** An event that waits for the handler, that the handler is processing, or whose outcome is not yet recorded. */
export interface Delivery {
  /** The record as the consumer knows it. It changes when the delivery gets a lease. */
  readonly record: EventRecord
  readonly slice: number
  readonly stream: string
  readonly attempt: number
  readonly phase: 'waits' | 'handling' | 'ended'
  /** What became of it, and when by the stopwatch, once it has ended. */
  readonly end?: { readonly handled: Handled; readonly elapsedMs: number }
  /** Whether the event has a lease, so that the claim of its slice need not protect it. */
  readonly isLeased: boolean
}

/** A slice that the consumer holds. */
export interface Held {
  readonly slice: number
  readonly since: number
  readonly claim: ClaimRecord
  /** When the last commit of the claim was sent. */
  readonly sent: Moment
  /** When the deliveries in progress get leases; absent while new ones may begin. */
  readonly closesAt?: number
}

/** A slice that another consumer holds. */
export interface Other {
  /** The command id of its claim, until another one shows that the holder lives. */
  readonly claim?: string
  /** When the slice is looked up again. */
  readonly until: number
}

/** The slice in which new deliveries may begin. */
export interface Serving {
  readonly slice: number
  /** How many deliveries it has had. */
  readonly begun: number
  /** Whether it is served beside the round of the slices, for an event that has waited for another one. */
  readonly isExtra: boolean
  /** The due events that were found and are not taken yet, the oldest first. */
  readonly candidates: Run
  /** Whether the look-up has found as many events as it may. */
  readonly isCut: boolean
  /** Whether nothing was taken since the look-up. */
  readonly isFresh: boolean
  /** Whether more may be found. */
  readonly isFinding: boolean
}

/** Events that are to be delivered once the slice is claimed and their records are loaded. */
export interface Chosen {
  readonly slice: number
  readonly runs: readonly Run[]
  readonly sent: Moment
}

/** The call of the store that is under way. A consumer makes one at a time. */
export type Work =
  | { readonly type: 'look up'; readonly limit: number }
  | (Chosen & { readonly type: 'claim' | 'suspect' | 'load' })
  | { readonly type: 'postpone' }
  | { readonly type: 'lease' | 'release'; readonly slice: number }
  | { readonly type: 'acknowledge'; readonly ids: readonly string[] }

export type StoreAction =
  | { readonly type: 'look up'; readonly slice: number; readonly limit: number }
  | {
      readonly type: 'claim'
      readonly slice: number
      /** The events whose deliveries the claim protects. */
      readonly started: readonly string[]
      /** The claim to renew. */
      readonly held?: ClaimRecord
    }
  | { readonly type: 'suspect' | 'load'; readonly ids: readonly string[] }
  | { readonly type: 'postpone'; readonly behind: Ready['behind'] }
  | { readonly type: 'acknowledge' | 'lease'; readonly deliveries: readonly Delivery[] }
  | { readonly type: 'release'; readonly slice: number; readonly claim: ClaimRecord }

/** What a consumer does. Each action on the store is answered by one observation. */
export type Action =
  | StoreAction
  | { readonly type: 'handle'; readonly delivery: Delivery }
  /** Ends a delivery with an error, because another consumer may begin it too. */
  | { readonly type: 'stop'; readonly id: string; readonly reason: string }
  /** Leaves a slice to the other consumers of the process at once, and to others once they see that it is abandoned. */
  | { readonly type: 'abandon'; readonly slice: number; readonly claim: ClaimRecord }

export type Answer =
  | { readonly type: 'found'; readonly due: Run; readonly isCut: boolean }
  | {
      readonly type: 'claimed'
      readonly claim: ClaimRecord
      /** The events that a dead consumer may have begun to deliver. */
      readonly abandoned?: readonly string[]
    }
  | { readonly type: 'refused'; readonly claim: ClaimRecord }
  | { readonly type: 'loaded'; readonly records: ReadonlyMap<string, EventRecord> }
  | { readonly type: 'leased'; readonly records: ReadonlyMap<string, EventRecord> }
  | { readonly type: 'postponed'; readonly moved: number }
  | { readonly type: 'suspected' | 'acknowledged' | 'released' }
  | { readonly type: 'store failed'; readonly error: unknown }

/** What a consumer observes: an answer of the store, the end of a delivery, the signal, or that time has passed. */
export type Observed =
  | Answer
  | { readonly type: 'ended'; readonly id: string; readonly handled: Handled }
  | { readonly type: 'time' }
  | { readonly type: 'stopped' }

/** How many of something a consumer has to do with at a time. */
export const consumerBounds = {
  slices: sliceCount,
  /** The most events that a consumer takes at a time. */
  batchMax: changesMax,
  /** The most of them of one record. */
  runMax,
  /** The most events that a look-up reads. */
  dueLimit: storeBounds.dueLimit as number,
}

export type ConsumerBounds = Readonly<typeof consumerBounds>

export interface State {
  readonly settings: Pick<DrainSettings, 'concurrency' | 'limit' | 'pollMs' | 'attemptsMax'>
  readonly bounds: ConsumerBounds
  readonly deliveries: ReadonlyMap<string, Delivery>
  /** The slices that the consumer holds. New deliveries begin in at most one of them. */
  readonly holds: ReadonlyMap<number, Held>
  readonly others: ReadonlyMap<number, Other>
  /** The slices where due events wait for deliveries of this consumer. */
  readonly blockedSlices: ReadonlySet<number>
  /** Those where one of these deliveries has ended. */
  readonly soon: ReadonlySet<number>
  /** How many times as many events as usual a look-up of a slice reads. */
  readonly widths: ReadonlyMap<number, number>
  /** How many events the consumer takes at a time. */
  readonly batch: number
  readonly serving?: Serving
  readonly work?: Work
  /**
   * The consumer serves one slice after another: the next one, how many in a row had nothing to deliver, and what was
   * settled before the first of these.
   */
  readonly round: { readonly next: number; readonly idle: number; readonly before: number }
  /** Until when the consumer rests after a round in which it has found nothing. */
  readonly restsUntil?: number
  /** Until when it asks nothing of the store, which has failed. */
  readonly pausedUntil?: number
  readonly begun: number
  readonly delivered: number
  readonly failed: number
  readonly postponed: number
  readonly isStopped: boolean
  /** The first error of the store after which no handler ran. */
  readonly error?: { readonly error: unknown }
  readonly isOver: boolean
}

export function beginningAt(
  first: number,
  settings: State['settings'],
  bounds: ConsumerBounds = consumerBounds,
): State {
  return {
    settings,
    bounds,
    deliveries: new Map(),
    holds: new Map(),
    others: new Map(),
    blockedSlices: new Set(),
    soon: new Set(),
    widths: new Map(),
    batch: Math.min(settings.concurrency, bounds.batchMax),
    round: { next: first % bounds.slices, idle: 0, before: 0 },
    begun: 0,
    delivered: 0,
    failed: 0,
    postponed: 0,
    isStopped: false,
    isOver: false,
  }
}

export function inPhase({ deliveries }: State, phase: Delivery['phase']): readonly Delivery[] {
  return [...deliveries.values()].filter((each) => each.phase === phase)
}

/** The deliveries that only the claim of the slice protects. */
export function unleased({ deliveries }: State, of: number): readonly Delivery[] {
  return [...deliveries.values()].filter(({ slice, isLeased }) => slice === of && !isLeased)
}

/** The number of handlers in progress. */
export const handlingCount = (state: State) => inPhase(state, 'handling').length

/** The number of records whose events wait, and none of which is being handled. */
export function waitingStreams(state: State): number {
  const active = new Set(inPhase(state, 'handling').map(({ stream }) => stream))
  const streams = new Set(inPhase(state, 'waits').map(({ stream }) => stream))
  return [...streams].filter((stream) => !active.has(stream)).length
}

/** The number of deliveries that have begun or wait to begin. */
export const taken = (state: State) => state.begun + inPhase(state, 'waits').length

export const settled = ({ delivered, failed, postponed }: State) => delivered + failed + postponed

/** Whether another consumer may hold events that are due, and it is not known whether it lives. */
export const watchesOthers = ({ others }: State) =>
  [...others.values()].some(({ claim }) => claim !== undefined)

/** How long ago a claim was sent. The stopwatch of a machine that was suspended may have stood still. */
function ageOf({ sent }: Held, at: Moment): number {
  return Math.max(at.elapsedMs - sent.elapsedMs, at.now - sent.now)
}

export function mayBegin(state: State, slice: number, at: Moment): boolean {
  const held = state.holds.get(slice)
  if (held === undefined || held.closesAt !== undefined || state.isStopped) return false
  return ageOf(held, at) < beginWithinMs
}

/** Whether another consumer may have begun a delivery too, judged by the time alone. */
export function isOverdue({ deliveries, holds }: State, id: string, at: Moment): boolean {
  const delivery = deliveries.get(id)
  if (delivery === undefined || delivery.isLeased) return false
  const held = holds.get(delivery.slice)
  return held !== undefined && ageOf(held, at) >= stopAfterMs
}
