import { newCall, type ServiceContext } from '../context.js'
import type { EventRecord } from '../event-record.js'
import { changeEvents, removeEvents } from './changes.js'
import type { DrainSettings } from './delivery.js'
import type { Delivery, Ended } from './handlers.js'

/** How many deliveries succeeded, and how many failed. */
export interface Outcomes {
  readonly delivered: number
  readonly failed: number
}

/**
 * Records the outcomes of deliveries: removes the delivered events, and postpones those that failed or sets them aside.
 */
export async function settleDeliveries(
  context: ServiceContext,
  settings: DrainSettings,
  ended: readonly Ended[],
): Promise<Outcomes> {
  const done = ended.filter(({ failure }) => failure === undefined)
  await removeEvents(
    context,
    done.map(({ delivery: { record } }) => record),
  )
  const failed = ended.filter(({ failure }) => failure !== undefined)
  await postponeFailed(context, settings, failed)
  return { delivered: done.length, failed: failed.length }
}

async function postponeFailed(
  context: ServiceContext,
  settings: DrainSettings,
  failed: readonly Ended[],
): Promise<void> {
  if (failed.length === 0) return
  const { now } = newCall(context)
  const list = await setAsideList(context)
  const changes = failed.map(({ delivery: { record, attempt } }) => {
    const { dueAt: _dueAt, ...rest } = record
    const counted = { ...rest, attempts: attempt }
    if (attempt >= settings.attemptsMax) {
      const next: EventRecord = { ...counted, setAsideAt: now, lists: [{ list, at: now }] }
      return { before: record, next }
    }
    const dueAt = now + backoffMs(settings, attempt)
    return { before: record, next: { ...counted, dueAt, failedAt: now } }
  })
  const changed = await changeEvents(context, changes)
  for (const { delivery, failure } of failed) {
    const { event, attempt, record } = delivery
    // If another consumer has taken the event, it may be delivered at any time.
    const { dueAt: retryAt } = changed.get(record.id) ?? { dueAt: now }
    const again = retryAt !== undefined && { retryAt }
    settings.onFailure?.({ event, attempt, error: failure?.error, ...again })
  }
}

/**
 * Gives deliveries leases of their own: no other consumer delivers these events until the lease ends. A delivery whose
 * event another writer has changed is lost.
 */
export async function leaseDeliveries(
  context: ServiceContext,
  { leaseMs, skewMaxMs }: DrainSettings,
  deliveries: readonly Delivery[],
): Promise<void> {
  // A consumer whose clock is ahead must not see the end of the lease before the handler is stopped.
  const dueAt = context.clock.now() + leaseMs + skewMaxMs
  const changes = deliveries.map(({ record, attempt }) => {
    const { failedAt: _failedAt, ...rest } = record
    return { before: record, next: { ...rest, attempts: attempt, dueAt } }
  })
  const leased = await changeEvents(context, changes)
  for (const delivery of deliveries) {
    const record = leased.get(delivery.record.id)
    if (record === undefined) delivery.lose(new Error('another consumer has taken the event'))
    else delivery.record = record
    delivery.isLeased = true
  }
}

/** Counts an attempt of each event that a dead consumer may have begun to deliver, and postpones it. */
export async function suspectEvents(
  context: ServiceContext,
  settings: DrainSettings,
  records: Iterable<EventRecord>,
): Promise<void> {
  const now = context.clock.now()
  const changes = Array.from(records, (record) => {
    const { failedAt: _failedAt, ...rest } = record
    const attempts = record.attempts + 1
    const next = { ...rest, attempts, dueAt: now + backoffMs(settings, attempts) }
    return { before: record, next }
  })
  await changeEvents(context, changes)
}

/** Returns the pause after an attempt. */
function backoffMs({ backoffMs, backoffMaxMs }: DrainSettings, attempt: number): number {
  return Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 1))
}

/** Resolves to the name of the list of the events that were set aside. */
export async function setAsideList({ namespace }: ServiceContext): Promise<string> {
  return `${await namespace()}.set-aside`
}
