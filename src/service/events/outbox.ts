import type { HostResult } from '../../core/decision.js'
import { storeBounds } from '../../ports/store.js'
import { callback, positiveInteger, text } from '../../util/input.js'
import { newCall, type ServiceContext } from '../context.js'
import { iterateList } from '../lists.js'
import { loadOne, recordsOf } from '../load.js'
import { inParallel } from '../parallel.js'
import {
  attemptDelivery,
  type DrainSettings,
  deliveredEvent,
  drainDefaults,
  drainSettings,
  type EventHandler,
  replaceEvent,
  type ServerEvents,
  type SetAsideEvent,
  setAsideList,
} from './delivery.js'
import { dueAtOnce, type EventRecord, placeOf } from './record.js'

/** The number of events of one record that are read at a time. */
const pageLimit = 20

/** The minimum number of due events to look up, because some may have to wait for others. */
const batchMin = 100

/** Creates the operations of the host on the undelivered events of a server. */
export function createServerEvents(context: ServiceContext): ServerEvents {
  return {
    drain: async (handler, options = {}) => drain(context, handler, drainSettings(options)),
    listSetAside: (limit = drainDefaults.limit) => listSetAside(context, limit),
    iterateSetAside: () => iterateSetAside(context),
    backlog: (limit = 1_000) => backlog(context, limit),
    retry: (eventId) => retrySetAside(context, eventId),
    discard: (eventId) => discardSetAside(context, eventId),
  }
}

/** A call of `drain`, and what it has done so far. */
interface Progress {
  readonly handler: EventHandler
  readonly settings: DrainSettings
  readonly total: { delivered: number; failed: number }
  /** The deliveries that count towards the limit, including those in progress. */
  begun: number
}

async function drain(context: ServiceContext, handler: EventHandler, settings: DrainSettings) {
  callback('handler', handler)
  const { store, clock } = context
  const lookedUp = Math.min(Math.max(settings.limit, batchMin), storeBounds.dueLimit)
  const due = await store.due('event', await context.namespace(), clock.now(), lookedUp)
  const progress = { handler, settings, total: { delivered: 0, failed: 0 }, begun: 0 }
  const streams = streamsOf(due as readonly EventRecord[])
  await inParallel([...streams], settings.concurrency, async (stream) => {
    for (let more = true; more && !isOver(progress); ) {
      more = await deliverPage(context, progress, stream)
    }
  })
  return progress.total
}

function isOver({ settings: { limit, signal }, begun }: Progress): boolean {
  return signal?.aborted === true || begun >= limit
}

/**
 * Delivers the oldest events of a record in order, until one fails or another consumer has leased the next.
 *
 * @returns whether there may be more events to deliver.
 */
async function deliverPage(
  context: ServiceContext,
  progress: Progress,
  [list, found]: Stream,
): Promise<boolean> {
  const query = { kind: 'event', list, forward: true, limit: pageLimit } as const
  const { records, more } = await context.store.list(query)
  let delivered = 0
  for (const record of records as readonly EventRecord[]) {
    if (isOver(progress)) return false
    const outcome = await deliver(context, progress, record)
    if (outcome === 'held') await standBehind(context, record, found)
    // After successful deliveries, a lost event may merely have been rescheduled by `standBehind`.
    if (outcome !== 'delivered') return delivered > 0 && outcome === 'lost'
    delivered += 1
  }
  return delivered > 0 && more
}

async function deliver(context: ServiceContext, progress: Progress, record: EventRecord) {
  const { handler, settings, total } = progress
  progress.begun += 1
  const outcome = await attemptDelivery(context, record, handler, settings)
  if (outcome === 'held' || outcome === 'lost') progress.begun -= 1
  else total[outcome === 'failed' ? 'failed' : 'delivered'] += 1
  return outcome
}

/**
 * Reschedules the events behind a failing one to its `dueAt`. Otherwise they would fill every batch and delay
 * the events of other records. The consumer that delivers the first event continues with them.
 */
async function standBehind(
  context: ServiceContext,
  head: EventRecord,
  found: readonly EventRecord[],
): Promise<void> {
  const { dueAt } = head
  if (dueAt === undefined || (head.failedAt === undefined && head.attempts === 1)) return
  const behind = found.filter(({ id, dueAt: at = dueAt }) => id !== head.id && at < dueAt)
  const { commandId } = newCall(context)
  for (let first = 0; first < behind.length; first += storeBounds.loadKeys) {
    const some = behind.slice(first, first + storeBounds.loadKeys)
    await context.run<void>({
      reads: some.map(({ id }) => ({ kind: 'event', id })),
      known: { records: recordsOf('event', ...some) },
      decide(read) {
        const current = some.filter(
          ({ id, version }) => read({ kind: 'event', id })?.version === version,
        )
        const changes = current.map((record) => {
          return {
            kind: 'event',
            next: { ...record, dueAt, version: record.version + 1, commandId },
          } as const
        })
        return { changes, result: undefined }
      },
    })
  }
}

/** The list of a record's events, and its due events. */
type Stream = readonly [list: string, found: readonly EventRecord[]]

function streamsOf(records: readonly EventRecord[]): ReadonlyMap<string, readonly EventRecord[]> {
  const streams = new Map<string, EventRecord[]>()
  for (const record of records) {
    const { list: wanted } = record.lists[0]
    const found = streams.get(wanted)
    if (found === undefined) streams.set(wanted, [record])
    else found.push(record)
  }
  return streams
}

async function listSetAside(
  context: ServiceContext,
  limit: number,
): Promise<readonly SetAsideEvent[]> {
  positiveInteger('limit', limit)
  const events: SetAsideEvent[] = []
  for await (const event of iterateSetAside(context)) {
    events.push(event)
    if (events.length === limit) break
  }
  return events
}

async function backlog(context: ServiceContext, limit: number) {
  positiveInteger('limit', limit)
  const atMost = Math.min(limit, storeBounds.dueLimit)
  const { store, clock } = context
  const now = clock.now()
  // An event in delivery, or one that failed, is due later.
  const before = now + drainDefaults.backoffMaxMs
  const due = await store.due('event', await context.namespace(), before, atMost)
  const waiting = (due as readonly EventRecord[]).filter(({ setAsideAt }) => !setAsideAt)
  const oldest = waiting.reduce((at, { event }) => Math.min(at, event.at), now)
  const setAside = await listSetAside(context, atMost)
  return { waiting: waiting.length, oldestAgeMs: now - oldest, setAside: setAside.length }
}

function iterateSetAside(context: ServiceContext): AsyncIterable<SetAsideEvent> {
  const listed = async () => ({ kind: 'event', list: await setAsideList(context) }) as const
  return iterateList(context.store, listed, (record: EventRecord) => setAsideEvent(context, record))
}

function setAsideEvent(context: ServiceContext, record: EventRecord): SetAsideEvent {
  return {
    event: deliveredEvent(context, record),
    attempts: record.attempts,
    setAsideAt: record.setAsideAt ?? 0,
  }
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
  const call = newCall(context)
  const { setAsideAt: _setAsideAt, ...rest } = record
  const lists = [placeOf(eventId)] as const
  const next = { ...rest, attempts: 0, dueAt: dueAtOnce(call.now), lists }
  return { ok: true, changed: await replaceEvent(context, record, next, call.commandId) }
}

async function discardSetAside(context: ServiceContext, eventId: string): Promise<SetAsideResult> {
  const record = await loadSetAside(context, eventId)
  if (record === undefined) return unknownEvent
  const [changed = false] = await context.store.remove([
    { kind: 'event', id: eventId, version: record.version },
  ])
  return { ok: true, changed }
}

const idPattern = /^[A-Za-z0-9._-]{8,128}$/

async function loadSetAside(
  { store, namespace }: ServiceContext,
  eventId: string,
): Promise<EventRecord | undefined> {
  text('eventId', eventId)
  if (!eventId.startsWith(await namespace()) || !idPattern.test(eventId)) return undefined
  const record = await loadOne<EventRecord>(store, { kind: 'event', id: eventId })
  return record?.setAsideAt === undefined ? undefined : record
}
