import type { HostResult } from '../../core/decision.js'
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
import {
  backoffMaxMs,
  deliveredEvent,
  drainSettings,
  eventLimit,
  type ServerEvents,
  type SetAsideEvent,
} from './delivery.js'
import { drain } from './drain.js'
import { createDueRanges } from './due-range.js'
import { setAsideList } from './outcomes.js'

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
