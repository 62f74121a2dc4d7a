import type { Instant } from '../../core/decision.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import {
  type DeliveredEvent,
  type DrainOptions,
  type DrainResult,
  drainDefaults,
  drainSettings,
  type EventHandler,
  type EventOutbox,
  type Settings,
} from './delivery.js'
import { type EventRecord, placeOf } from './events.js'
import { inParallel } from './parallel.js'
import { sleep } from './sleep.js'

/** The number of events of one record that are read at a time. */
const pageLimit = 20

/** The minimum number of due events to look up, because some may have to wait for others. */
const batchMin = 100

/**
 * The outcome of an event. Held: it must not be delivered now. Lost: another writer changed it. Overrun: the
 * delivery outlasted its lease, so another consumer may deliver the event too.
 */
type Outcome = 'delivered' | 'failed' | 'held' | 'lost' | 'overrun'

export function createOutbox(context: ServiceContext): EventOutbox {
  const { store, clock } = context

  async function drain(handler: EventHandler, options: DrainOptions = {}): Promise<DrainResult> {
    const settings = drainSettings(options)
    const { limit, concurrency, signal } = settings
    const lookedUp = Math.max(limit, batchMin)
    const due = await store.due('event', await context.namespace(), clock.now(), lookedUp)
    const total = { delivered: 0, failed: 0 }
    let begun = 0
    const isOver = () => signal?.aborted === true || begun >= limit

    async function deliverOne(record: EventRecord): Promise<Outcome> {
      begun += 1
      const outcome = await deliver(record, handler, settings)
      if (outcome === 'held' || outcome === 'lost') begun -= 1
      else total[outcome === 'failed' ? 'failed' : 'delivered'] += 1
      return outcome
    }

    /** Delivers events in order until none is left, one fails, or another consumer has leased the next. */
    async function deliverAll([stream, found]: Stream): Promise<void> {
      for (let again = true; again && !isOver(); ) {
        const query = { kind: 'event', list: stream, forward: true, limit: pageLimit } as const
        const { records, more } = await store.list(query)
        let last: Outcome | undefined
        let delivered = 0
        for (const record of records as readonly EventRecord[]) {
          if (isOver()) return
          last = await deliverOne(record)
          if (last === 'held') await standBehind(record, found)
          if (last !== 'delivered') break
          delivered += 1
        }
        // After successful deliveries, a lost event may only have been rescheduled by `standBehind`.
        again = delivered > 0 && (last === 'lost' || (last === 'delivered' && more))
      }
    }

    await inParallel([...streamsOf(due as readonly EventRecord[])], concurrency, deliverAll)
    return total
  }

  /** Delivers an event. It must be the oldest of its record, to preserve the order. */
  async function deliver(
    record: EventRecord,
    handler: EventHandler,
    settings: Settings,
  ): Promise<Outcome> {
    const call = newCall(context)
    if (isHeld(record, call.now)) return 'held'
    const event = deliveredEvent(record)
    if (record.attempts >= settings.attemptsMax) {
      if (!(await giveUp(record))) return 'lost'
      const error = new Error('the last delivery started but did not finish')
      settings.onFailure?.({ event, attempt: record.attempts, error })
      return 'failed'
    }
    const attempt = record.attempts + 1
    const lease = { dueAt: call.now + settings.leaseMs, attempts: attempt }
    if (!(await replace(record, lease, call))) return 'lost'
    const leased = { ...record, ...lease, version: record.version + 1 }
    try {
      await withinLease(settings.leaseMs, (signal) => handler(event, { attempt, signal }))
    } catch (error) {
      const retryAt = await postpone(leased, settings)
      const again = retryAt === undefined ? {} : { retryAt }
      settings.onFailure?.({ event, attempt, error, ...again })
      return 'failed'
    }
    return (await store.remove('event', leased.id, leased.version)) ? 'delivered' : 'overrun'
  }

  /** Resolves to the time of the next delivery, or to `undefined` if the event was set aside. */
  async function postpone(record: EventRecord, settings: Settings): Promise<Instant | undefined> {
    const call = newCall(context)
    if (record.attempts >= settings.attemptsMax) {
      return (await giveUp(record)) ? undefined : call.now
    }
    const pauseMs = settings.backoffMs * 2 ** (record.attempts - 1)
    const retryAt = call.now + Math.min(settings.backoffMaxMs, pauseMs)
    const isOurs = await replace(record, { dueAt: retryAt, failedAt: call.now }, call)
    // If the lease had ended, another consumer may have the event.
    return isOurs ? retryAt : call.now
  }

  /** Sets an event aside. Resolves to false if another writer changed it. */
  async function giveUp({ dueAt: _dueAt, ...record }: EventRecord): Promise<boolean> {
    const call = newCall(context)
    const lists = [{ list: await setAsideList(), at: call.now }] as const
    return replace(record, { setAsideAt: call.now, lists }, call)
  }

  /**
   * Reschedules the events behind a failing one to its `dueAt`. Otherwise they would fill every batch and
   * delay the events of other records. The consumer that delivers the first event continues with them.
   */
  async function standBehind(head: EventRecord, found: readonly EventRecord[]): Promise<void> {
    const { dueAt } = head
    if (dueAt === undefined || (head.failedAt === undefined && head.attempts === 1)) return
    const { commandId } = newCall(context)
    const changes = found
      .filter((record) => record.id !== head.id && (record.dueAt ?? dueAt) < dueAt)
      .map((record) => ({
        kind: 'event' as const,
        next: { ...record, dueAt, version: record.version + 1, commandId },
        expectedVersion: record.version,
      }))
    if (changes.length > 0) await store.commit({ changes, guards: [] })
  }

  function replace(
    record: EventRecord,
    changes: Partial<EventRecord>,
    { commandId }: Call,
  ): Promise<boolean> {
    const next = { ...record, ...changes, version: record.version + 1, commandId }
    const change = { kind: 'event', next, expectedVersion: record.version } as const
    return store.commit({ changes: [change], guards: [] })
  }

  async function setAsideList(): Promise<string> {
    return `${await context.namespace()}.set-aside`
  }

  async function loadSetAside(eventId: string): Promise<EventRecord | undefined> {
    if (!eventId.startsWith(await context.namespace()) || !idPattern.test(eventId)) return undefined
    const record = (await store.load('event', eventId)) as EventRecord | undefined
    return record?.setAsideAt === undefined ? undefined : record
  }

  return {
    drain,

    async listSetAside(limit = drainDefaults.limit) {
      const query = { kind: 'event', list: await setAsideList(), forward: true, limit } as const
      const { records } = await store.list(query)
      return (records as readonly EventRecord[]).map((record) => ({
        event: deliveredEvent(record),
        attempts: record.attempts,
        setAsideAt: record.setAsideAt ?? 0,
      }))
    },

    async retry(eventId) {
      const record = await loadSetAside(eventId)
      if (record === undefined) return false
      const call = newCall(context)
      const { setAsideAt: _setAsideAt, ...rest } = record
      return replace(rest, { attempts: 0, dueAt: call.now, lists: [placeOf(eventId)] }, call)
    },

    async discard(eventId) {
      const record = await loadSetAside(eventId)
      return record !== undefined && store.remove('event', eventId, record.version)
    },
  }
}

/** Waits for a handler until the lease of its event ends. */
async function withinLease(
  leaseMs: number,
  handle: (signal: AbortSignal) => ReturnType<EventHandler>,
): Promise<void> {
  const lease = new AbortController()
  const handled = new AbortController()
  async function end(): Promise<void> {
    await sleep(leaseMs, handled.signal)
    if (handled.signal.aborted) return
    lease.abort()
    throw new Error(`the handler did not finish within ${leaseMs} ms`)
  }
  try {
    await Promise.race([handle(lease.signal), end()])
  } finally {
    handled.abort()
  }
}

/** The list of a record's events, and those of them that are due. */
type Stream = readonly [commandId: string, found: readonly EventRecord[]]

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

/** Whether an event is leased, backing off or set aside. A new event waits only for older ones. */
function isHeld({ attempts, dueAt }: EventRecord, now: Instant): boolean {
  return dueAt === undefined || (attempts > 0 && dueAt > now)
}

function deliveredEvent({ id, event }: EventRecord): DeliveredEvent {
  return { ...event, id }
}

const idPattern = /^[A-Za-z0-9._-]{1,128}$/
