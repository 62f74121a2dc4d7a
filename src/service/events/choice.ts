import type { Instant } from '../../core/instant.js'
import { storeBounds } from '../../ports/store.js'
import {
  type EventRecord,
  isInDelivery,
  isPending,
  placeOf,
  predecessorOf,
} from '../event-record.js'

export type Run = readonly EventRecord[]

/** The state of a consumer when it chooses events. */
export interface Occupation {
  readonly streams: ReadonlySet<string>
  /** Whether it delivers other events of the slice. */
  readonly isBusy: boolean
  /** How many events it can take, and how many of them of one record. */
  readonly room: number
  readonly runMax: number
}

/**
 * Chooses the events to deliver next among the due ones: of each stream the first, and those that follow it without a
 * gap. An event whose last delivery may have ended its process is delivered alone, so that another such end counts as
 * an attempt of no other event.
 */
export function chooseRuns(due: readonly EventRecord[], occupation: Occupation): readonly Run[] {
  const { streams: busy, isBusy, room, runMax } = occupation
  const streams = new Map<string, EventRecord[]>()
  for (const record of due) {
    const { stream } = placeOf(record.id)
    if (busy.has(stream)) continue
    const found = streams.get(stream)
    if (found === undefined) streams.set(stream, [record])
    else found.push(record)
  }
  const runs = Array.from(streams.values(), firstRun)
  const suspect = runs.flatMap(([first]) => (first && isInDelivery(first) ? first : []))[0]
  if (suspect !== undefined) return isBusy ? [] : [[suspect]]
  const chosen: Run[] = []
  let [events, keys] = [0, 0]
  for (const run of runs) {
    const most = Math.min(runMax, room - events, storeBounds.loadKeys - keys - 1)
    const taken = run.slice(0, Math.max(most, 0))
    if (taken.length === 0) break
    chosen.push(taken)
    events += taken.length
    keys += taken.length + 1
  }
  return chosen
}

/** The number of events of one record that a consumer takes at a time. */
export const runMax = 20

/** Returns the first of these events of a stream, and those that follow it without a gap. */
function firstRun(records: readonly EventRecord[]): Run {
  const inOrder = records.toSorted((a, b) => placeOf(a.id).place - placeOf(b.id).place)
  const end = inOrder.findIndex(
    (record, i) => i > 0 && predecessorOf(record) !== inOrder[i - 1]?.id,
  )
  return end === -1 ? inOrder : inOrder.slice(0, end)
}

/** Returns the ids of all records that decide whether the events of these runs may be delivered. */
export function decisiveIds(runs: readonly Run[]): readonly string[] {
  return runs.flatMap((run) => {
    const before = run[0] && predecessorOf(run[0])
    const ids = run.map(({ id }) => id)
    return before === undefined ? ids : [before, ...ids]
  })
}

/** How long an event waits before it is looked up again, if the previous one is in delivery, in milliseconds. */
const inDeliveryMs = 1_000

export interface Ready {
  /** The events that may be delivered now, one after another. */
  readonly run: Run
  /** The events that must wait for another one, and until when at least. */
  readonly behind: readonly { readonly record: EventRecord; readonly until: Instant }[]
}

/**
 * Decides which events of a run may be delivered, by what was loaded after the slice was claimed: what `due` has found
 * may be outdated.
 */
export function decideReady(
  run: Run,
  due: Run,
  current: ReadonlyMap<string, EventRecord>,
  now: Instant,
): Ready {
  const pending = run.flatMap(({ id }) => current.get(id) ?? []).filter(isPending)
  const before = run[0] && predecessorOf(run[0])
  const blocking = before === undefined ? undefined : current.get(before)
  const isBlocked = blocking !== undefined && isPending(blocking)
  const end = isBlocked ? 0 : pending.findIndex((record) => mustWait(record, now))
  if (end === -1) return { run: pending, behind: [] }
  const head = isBlocked ? blocking : pending[end]
  const waiting = isBlocked ? pending : pending.slice(end + 1)
  return { run: pending.slice(0, end), behind: head ? behind(head, waiting, run, due, now) : [] }
}

/**
 * Whether an event is too early, has a lease, or waits after a failure. Another new event waits only for older ones.
 */
function mustWait({ attempts, dueAt = 0, notBefore = 0 }: EventRecord, now: Instant): boolean {
  return notBefore > now || (attempts > 0 && dueAt > now)
}

/**
 * Determines until when events wait behind another one, including due events that were not chosen. Otherwise they would
 * fill every look-up, and delay the events of other records. The end of a delivery is not known, so that those behind
 * it are looked up again soon.
 */
function behind(
  head: EventRecord,
  waiting: Run,
  run: Run,
  due: Run,
  now: Instant,
): Ready['behind'] {
  const { dueAt = now, notBefore = 0 } = head
  const until = isInDelivery(head) ? now + inDeliveryMs : Math.max(dueAt, notBefore)
  const { stream } = placeOf(head.id)
  const chosen = new Set(run.map(({ id }) => id))
  const others = due.filter(({ id }) => placeOf(id).stream === stream && !chosen.has(id))
  return [...waiting, ...others].map((record) => ({ record, until }))
}

/** Determines until when events wait for earlier ones whose delivery by this consumer takes long. */
export function behindOwn(
  due: Run,
  inDelivery: ReadonlyMap<string, { readonly isLeased: boolean }>,
  now: Instant,
): Ready['behind'] {
  const slow = new Set<string>()
  for (const [id, { isLeased }] of inDelivery) if (isLeased) slow.add(placeOf(id).stream)
  return due
    .filter(({ id }) => slow.has(placeOf(id).stream) && !inDelivery.has(id))
    .map((record) => ({ record, until: now + inDeliveryMs }))
}
