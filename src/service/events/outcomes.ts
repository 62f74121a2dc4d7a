import type { Instant } from '../../core/instant.js'
import { callHook } from '../../util/errors.js'
import { newCall, type ServiceContext } from '../context.js'
import type { EventRecord } from '../event-record.js'
import { changeEvents, removeEvents } from './changes.js'
import type { DrainSettings } from './drain-options.js'
import { deliveredEvent } from './handler.js'
import type { Delivery } from './state.js'

/**
 * Records the outcomes of deliveries: removes the delivered events, reschedules those that were postponed or failed,
 * and sets those aside whose attempts are used up.
 */
export async function acknowledge(
  context: ServiceContext,
  settings: DrainSettings,
  ended: readonly Delivery[],
): Promise<void> {
  const done = ended.filter(({ end }) => end?.handled.type === 'done')
  await removeEvents(
    context,
    done.map(({ record }) => record),
  )
  if (done.length < ended.length) await reschedule(context, settings, ended)
}

async function reschedule(
  context: ServiceContext,
  settings: DrainSettings,
  ended: readonly Delivery[],
): Promise<void> {
  const { now } = newCall(context)
  const list = await setAsideList(context)
  const namespace = await context.namespace()
  const changes = ended.flatMap(({ record, attempt, end }) => {
    if (end?.handled.type === 'failed') {
      return { before: record, next: failedRecord(record, attempt, settings, list, now) }
    }
    if (end?.handled.type !== 'postponed') return []
    const { retryAt } = end.handled
    return { before: record, next: postponedRecord(record, attempt, settings, retryAt, now) }
  })
  const changed = await changeEvents(context, changes)
  for (const { record, attempt, end } of ended) {
    if (end?.handled.type !== 'failed') continue
    const { error } = end.handled
    const event = deliveredEvent(context, namespace, record)
    // If another consumer has taken the event, it may be delivered at any time.
    const { dueAt: retryAt } = changed.get(record.id) ?? { dueAt: now }
    const failure = { event, attempt, error, ...(retryAt !== undefined && { retryAt }) }
    // Its error is not one of the store, and must not end the other deliveries.
    void callHook(() => settings.onFailure?.(failure))
  }
}

/**
 * Gives deliveries leases of their own: no other consumer delivers these events until the lease ends. Resolves to the
 * new records, without those that another writer has changed.
 */
export async function leaseEvents(
  context: ServiceContext,
  settings: DrainSettings,
  deliveries: readonly Delivery[],
): Promise<ReadonlyMap<string, EventRecord>> {
  const now = context.clock.now()
  const changes = deliveries.map(({ record, attempt }) => {
    return { before: record, next: leasedRecord(record, attempt, settings, now) }
  })
  return changeEvents(context, changes)
}

/** Counts an attempt of each event that a dead consumer may have begun to deliver, and postpones it. */
export async function suspectEvents(
  context: ServiceContext,
  settings: DrainSettings,
  records: Iterable<EventRecord>,
): Promise<void> {
  const now = context.clock.now()
  const changes = Array.from(records, (before) => {
    return { before, next: suspectRecord(before, settings, now) }
  })
  await changeEvents(context, changes)
}

/** Returns an event after a failed delivery: due again after a pause, or set aside. */
export function failedRecord(
  record: EventRecord,
  attempts: number,
  settings: Pick<DrainSettings, 'attemptsMax' | 'backoffMs' | 'backoffMaxMs'>,
  list: string,
  now: Instant,
): EventRecord {
  const { dueAt: _dueAt, ...rest } = record
  if (attempts >= settings.attemptsMax) {
    return { ...rest, attempts, setAsideAt: now, lists: [{ list, at: now }] }
  }
  return { ...rest, attempts, dueAt: now + backoffMs(settings, attempts), failedAt: now }
}

/** Returns an event that its handler wants again at an instant. The delivery counts as no attempt. */
export function postponedRecord(
  record: EventRecord,
  attempt: number,
  { backoffMs }: Pick<DrainSettings, 'backoffMs'>,
  retryAt: Instant,
  now: Instant,
): EventRecord {
  // A lease has counted it.
  const attempts = attempt - 1
  const at = Math.max(retryAt, now + backoffMs)
  const { failedAt = now, ...rest } = record
  // Without the instant, the outcome of an earlier attempt would not be known.
  return { ...rest, attempts, dueAt: at, notBefore: at, ...(attempts > 0 && { failedAt }) }
}

export function leasedRecord(
  record: EventRecord,
  attempts: number,
  { leaseMs, skewMaxMs }: Pick<DrainSettings, 'leaseMs' | 'skewMaxMs'>,
  now: Instant,
): EventRecord {
  const { failedAt: _failedAt, ...rest } = record
  // A consumer whose clock is ahead must not see the end of the lease before the handler is stopped.
  return { ...rest, attempts, dueAt: now + leaseMs + skewMaxMs }
}

/** Returns an event whose delivery may have ended its process. */
export function suspectRecord(
  record: EventRecord,
  settings: Pick<DrainSettings, 'backoffMs' | 'backoffMaxMs'>,
  now: Instant,
): EventRecord {
  const { failedAt: _failedAt, ...rest } = record
  const attempts = record.attempts + 1
  return { ...rest, attempts, dueAt: now + backoffMs(settings, attempts) }
}

function backoffMs(
  { backoffMs, backoffMaxMs }: Pick<DrainSettings, 'backoffMs' | 'backoffMaxMs'>,
  attempt: number,
): number {
  return Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 1))
}

export async function setAsideList({ namespace }: ServiceContext): Promise<string> {
  return `${await namespace()}.set-aside`
}
