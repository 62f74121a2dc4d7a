import type { Instant } from '../../core/instant.js'
import { newCall, type ServiceContext } from './context.js'
import { deliveredEvent, type EventHandler, type Settings } from './delivery.js'
import { type EventRecord, replaceEvent } from './events.js'
import { setAside } from './set-aside.js'
import { sleep } from './sleep.js'

/**
 * The outcome of an event. Held: it must not be delivered now. Lost: another writer changed it. Overrun: the
 * delivery outlasted its lease, so another consumer may deliver the event too.
 */
type Outcome = 'delivered' | 'failed' | 'held' | 'lost' | 'overrun'

/** Delivers an event. It must be the oldest of its record, to preserve the order. */
export async function attemptDelivery(
  context: ServiceContext,
  record: EventRecord,
  handler: EventHandler,
  settings: Settings,
): Promise<Outcome> {
  const call = newCall(context)
  if (isHeld(record, call.now)) return 'held'
  const event = deliveredEvent(context, record)
  if (record.attempts >= settings.attemptsMax) {
    if (!(await setAside(context, record))) return 'lost'
    const error = new Error('the last delivery started but did not finish')
    settings.onFailure?.({ event, attempt: record.attempts, error })
    return 'failed'
  }
  const attempt = record.attempts + 1
  // A consumer whose clock is ahead must not see the end of the lease before the handler is stopped.
  const lease = { dueAt: call.now + settings.leaseMs + settings.skewMaxMs, attempts: attempt }
  if (!(await replaceEvent(context, record, { ...record, ...lease }, call))) return 'lost'
  const leased = { ...record, ...lease, version: record.version + 1 }
  try {
    await withinLease(settings.leaseMs, (signal) => handler(event, { attempt, signal }))
  } catch (error) {
    const retryAt = await postpone(context, leased, settings)
    const again = retryAt === undefined ? {} : { retryAt }
    settings.onFailure?.({ event, attempt, error, ...again })
    return 'failed'
  }
  const removed = await context.store.remove('event', leased.id, leased.version)
  return removed ? 'delivered' : 'overrun'
}

/** Whether an event is leased, backing off or set aside. A new event waits only for older ones. */
function isHeld({ attempts, dueAt }: EventRecord, now: Instant): boolean {
  return dueAt === undefined || (attempts > 0 && dueAt > now)
}

/** Resolves to the time of the next delivery, or to `undefined` if the event was set aside. */
async function postpone(
  context: ServiceContext,
  record: EventRecord,
  settings: Settings,
): Promise<Instant | undefined> {
  const call = newCall(context)
  if (record.attempts >= settings.attemptsMax) {
    return (await setAside(context, record)) ? undefined : call.now
  }
  const pauseMs = settings.backoffMs * 2 ** (record.attempts - 1)
  const retryAt = call.now + Math.min(settings.backoffMaxMs, pauseMs)
  const postponed = { ...record, dueAt: retryAt, failedAt: call.now }
  const isOurs = await replaceEvent(context, record, postponed, call)
  // If the lease had ended, another consumer may have the event.
  return isOurs ? retryAt : call.now
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
