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

/** How many events of one record are read at a time. */
const pageLimit = 20

/** The fewest events that are looked up at a time, since some may have to wait behind others. */
const batchMin = 100

/**
 * What became of an event. Held: it is not to be delivered now. Lost: another writer has changed it.
 * Overrun: it was delivered, but took so long that another consumer has been given it as well.
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

    /** One after the other, until there is none left, one fails, or another consumer has the next. */
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
        // One that is lost after others were delivered may just have been made to stand behind them.
        again = delivered > 0 && (last === 'lost' || (last === 'delivered' && more))
      }
    }

    await inParallel([...streamsOf(due as readonly EventRecord[])], concurrency, deliverAll)
    return total
  }

  /** Only the oldest event of a record may be passed in, or it would overtake. */
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
      const error = new Error('its last delivery was begun and never finished')
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

  /** Answers when the event comes again, or `undefined` if it has been set aside. */
  async function postpone(record: EventRecord, settings: Settings): Promise<Instant | undefined> {
    const call = newCall(context)
    if (record.attempts >= settings.attemptsMax) {
      return (await giveUp(record)) ? undefined : call.now
    }
    const pauseMs = settings.backoffMs * 2 ** (record.attempts - 1)
    const retryAt = call.now + Math.min(settings.backoffMaxMs, pauseMs)
    const isOurs = await replace(record, { dueAt: retryAt, failedAt: call.now }, call)
    // Its lease had ended, and another consumer has it now.
    return isOurs ? retryAt : call.now
  }

  /** Sets an event aside; false if another writer has changed it. */
  async function giveUp({ dueAt: _dueAt, ...record }: EventRecord): Promise<boolean> {
    const call = newCall(context)
    const lists = [{ list: await setAsideList(), at: call.now }] as const
    return replace(record, { setAsideAt: call.now, lists }, call)
  }

  /**
   * Has events come up no sooner than the one before them, which is in trouble: otherwise they would fill
   * every batch, and other records' events with them would wait. Whoever delivers that one goes on to them.
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

/** Waits for a handler as long as it has its event to itself. */
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
    throw new Error(`not finished within ${leaseMs} ms`)
  }
  try {
    await Promise.race([handle(lease.signal), end()])
  } finally {
    handled.abort()
  }
}

/** The events of one record, or the place in the lists where they are, and those that have been found. */
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

/** Leased, backing off or set aside. Before its first delivery an event waits for nothing but older ones. */
function isHeld({ attempts, dueAt }: EventRecord, now: Instant): boolean {
  return dueAt === undefined || (attempts > 0 && dueAt > now)
}

function deliveredEvent({ id, event }: EventRecord): DeliveredEvent {
  return { ...event, id }
}

const idPattern = /^[A-Za-z0-9._-]{1,128}$/
