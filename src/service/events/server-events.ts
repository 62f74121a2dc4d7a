import type { HostResult } from '../../core/decision.js'
import type { Instant } from '../../core/instant.js'
import { storeBounds } from '../../ports/store.js'
import { callback, positiveInteger, readInput, text } from '../../util/input.js'
import type { ServiceContext } from '../context.js'
import {
  dueAtOnce,
  type EventRecord,
  eventRecordId,
  isPending,
  sliceCount,
  sliceNamespace,
} from '../event-record.js'
import { iterateList, sourceOf } from '../lists.js'
import { loadOne } from '../load.js'
import { changeEvents } from './changes.js'
import { createClaims } from './claims.js'
import { drain } from './drain.js'
import { backoffMaxMs, type DrainOptions, drainSettings, eventLimit } from './drain-options.js'
import { createDueRanges } from './due-range.js'
import { type DeliveredEvent, deliveredEvent, type EventHandler } from './handler.js'
import { setAsideList } from './outcomes.js'

/** An event whose deliveries all failed: a dead letter. */
export interface SetAsideEvent {
  readonly event: DeliveredEvent
  /** How many deliveries failed. */
  readonly attempts: number
  /** When the last of them failed. */
  readonly setAsideAt: Instant
}

/** The undelivered events of a server. */
export interface ServerEvents {
  /**
   * Delivers due events at least once, and the events of each record in order, until none is due, including events that
   * become due in the meantime. Any number of processes may call it concurrently. A failing event delays only the later
   * events of its own record. A call waits up to 15 s to find out whether a consumer that has claimed events is still
   * alive.
   *
   * @returns how many events this call delivered, and how many deliveries failed. One that its handler postponed is
   *   neither: its event is not done, and a caller that looks for progress must not take it for some.
   * @throws the store's error, once the handlers have ended; the events that were in delivery may be delivered again.
   * @throws {InvalidInputError} for an invalid option or handler.
   */
  drain(
    handler: EventHandler,
    options?: DrainOptions,
  ): Promise<{ readonly delivered: number; readonly failed: number }>
  /**
   * Resolves to the oldest events that were set aside, at most `limit` (default 100). Later events of the same
   * record proceed.
   *
   * @throws {InvalidInputError} for an invalid limit.
   */
  listSetAside(limit?: number): Promise<readonly SetAsideEvent[]>
  /**
   * Returns all events that were set aside, oldest first, for a `for await` loop. The library reads them in
   * pages of 100 as the loop proceeds. The loop may call `retry` and `discard`.
   */
  iterateSetAside(): AsyncIterable<SetAsideEvent>
  /**
   * Measures the undelivered events: how many wait, including those in delivery and those that failed and are due
   * within an hour; the age of the oldest of them in milliseconds, 0 if none waits; and how many were set aside. It
   * counts to at most `limit` (default 1,000, maximum 10,000), and reads what it counts.
   *
   * @throws {InvalidInputError} for an invalid limit.
   */
  backlog(
    limit?: number,
  ): Promise<{ readonly waiting: number; readonly oldestAgeMs: number; readonly setAside: number }>
  /** Schedules an event that was set aside for delivery. */
  retry(eventId: string): Promise<HostResult<object, 'event_unknown'>>
  /** Removes an event that was set aside. */
  discard(eventId: string): Promise<HostResult<object, 'event_unknown'>>
}

export function createServerEvents(context: ServiceContext): ServerEvents {
  const claims = createClaims(context)
  const ranges = createDueRanges(context.pacing)
  return {
    async drain(handler, options = {}) {
      readInput('handler', callback(), handler)
      return drain(context, { claims, ranges }, handler, readInput('', drainSettings, options))
    },
    listSetAside: (limit = eventLimit) => listSetAside(context, limit),
    iterateSetAside: () => iterateSetAside(context),
    backlog: (limit = 1_000) => backlog(context, limit),
    retry: (eventId) => retrySetAside(context, eventId),
    discard: (eventId) => discardSetAside(context, eventId),
  }
}

async function listSetAside(
  context: ServiceContext,
  limit: number,
): Promise<readonly SetAsideEvent[]> {
  readInput('limit', positiveInteger, limit)
  const events: SetAsideEvent[] = []
  for await (const event of iterateSetAside(context)) {
    events.push(event)
    if (events.length === limit) break
  }
  return events
}

async function backlog(context: ServiceContext, limit: number) {
  readInput('limit', positiveInteger, limit)
  const atMost = Math.min(limit, storeBounds.dueLimit)
  const { store, clock } = context
  const now = clock.now()
  // An event in delivery, or one that failed, is due later.
  const before = now + backoffMaxMs
  const waiting: EventRecord[] = []
  for (let slice = 0; slice < sliceCount; slice++) {
    const namespace = sliceNamespace(await context.namespace(), slice)
    // The oldest event may be in the last slice.
    const most = Math.max(1, atMost - waiting.length)
    const due = (await store.due('event', namespace, before, most)) as readonly EventRecord[]
    waiting.push(...due.filter(isPending))
  }
  const oldest = waiting.reduce((at, { event }) => Math.min(at, event.at), now)
  const setAside = await listSetAside(context, atMost)
  const count = Math.min(waiting.length, atMost)
  return { waiting: count, oldestAgeMs: now - oldest, setAside: setAside.length }
}

async function* iterateSetAside(context: ServiceContext): AsyncGenerator<SetAsideEvent> {
  const namespace = await context.namespace()
  const list = { kind: 'event', list: await setAsideList(context) } as const
  const listed = async () => sourceOf<EventRecord>(context.store, list)
  yield* iterateList(listed, (record) => ({
    event: deliveredEvent(context, namespace, record),
    attempts: record.attempts,
    setAsideAt: record.setAsideAt ?? 0,
  }))
}

type SetAsideResult = HostResult<object, 'event_unknown'>

const unknownEvent: SetAsideResult = {
  ok: false,
  refusal: 'event_unknown',
  reason: 'no event with this id is set aside',
}

async function retrySetAside(context: ServiceContext, eventId: string): Promise<SetAsideResult> {
  const record = await loadSetAside(context, eventId)
  if (record === undefined) return unknownEvent
  const { setAsideAt: _setAsideAt, lists: _lists, failedAt: _failedAt, ...rest } = record
  const next = { ...rest, attempts: 0, dueAt: dueAtOnce(context.clock.now()) }
  const changed = await changeEvents(context, [{ before: record, next }])
  return { ok: true, changed: changed.size > 0 }
}

async function discardSetAside(context: ServiceContext, eventId: string): Promise<SetAsideResult> {
  const record = await loadSetAside(context, eventId)
  if (record === undefined) return unknownEvent
  const [changed = false] = await context.store.remove([
    { kind: 'event', id: record.id, version: record.version },
  ])
  return { ok: true, changed }
}

const idPattern = /^[A-Za-z0-9._-]{8,128}$/

async function loadSetAside(
  { store, namespace }: ServiceContext,
  eventId: string,
): Promise<EventRecord | undefined> {
  readInput('eventId', text, eventId)
  if (!eventId.startsWith(await namespace()) || !idPattern.test(eventId)) return undefined
  const id = eventRecordId(eventId)
  const record = await loadOne<EventRecord>(store, { kind: 'event', id })
  return record === undefined || isPending(record) ? undefined : record
}
