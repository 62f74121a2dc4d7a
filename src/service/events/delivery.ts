import type { HostResult } from '../../core/decision.js'
import type { GrantEvent } from '../../core/grant/record.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import { positiveInteger, requireKnownOptions } from '../../util/input.js'
import { newCall, type ServiceContext } from '../context.js'
import { recordsOf } from '../load.js'
import { clockDifferenceMaxMs, sleep } from '../time.js'
import type { EventRecord } from './record.js'

/** An event as passed to a handler. */
export type DeliveredEvent = (
  | GrantEvent
  | IncomingPaymentEvent
  | OutgoingPaymentEvent
  | QuoteEvent
) & {
  /** The same in every delivery of an event, so that a handler can detect repeats. */
  readonly id: string
  /** The URL of the server that recorded the event: its `grantEndpoint` or `baseUrl`, without a slash at the end. */
  readonly server: string
}

/**
 * Handles an event. The event is done when the handler resolves. If it rejects, or does not finish within the
 * lease, the event is delivered again later.
 */
export type EventHandler = (
  event: DeliveredEvent,
  delivery: {
    /** 1 for the first delivery; higher if earlier deliveries failed or did not finish in time. */
    readonly attempt: number
    /** Aborted when the lease ends. The consumer then no longer waits for the handler. */
    readonly signal: AbortSignal
  },
) => Promise<void> | void

/** A failed delivery. */
export interface FailedDelivery {
  readonly event: DeliveredEvent
  readonly attempt: number
  readonly error: unknown
  /** When the event is delivered again; absent if it was set aside. */
  readonly retryAt?: Instant
}

/** How events are delivered. Numbers must be positive integers; durations are in milliseconds. */
export interface DrainOptions {
  /** The maximum number of events that one call delivers. Default 100. */
  readonly limit?: number
  /** The number of records whose events are delivered concurrently. Default 8. */
  readonly concurrency?: number
  /** How long a handler may take before its delivery fails. Default 60,000. */
  readonly leaseMs?: number
  /**
   * By how much the clocks of two consumers may differ. If a consumer dies during a delivery, another one delivers the
   * event again when `leaseMs` and this time have passed. Default 120,000, the bound for all servers; a host with one
   * clock can set 0.
   */
  readonly skewMaxMs?: number
  /** The wait after the first failure; each further failure doubles it. Default 1,000. */
  readonly backoffMs?: number
  /** The maximum wait between two deliveries. Default 3,600,000. */
  readonly backoffMaxMs?: number
  /** The number of failed deliveries after which an event is set aside. Default 16, about 4 hours. */
  readonly attemptsMax?: number
  /** Receives each failed delivery. */
  readonly onFailure?: (failure: FailedDelivery) => void
  /** Once aborted, no further delivery starts. */
  readonly signal?: AbortSignal
}

/** An event whose deliveries all failed: a dead letter. */
export interface SetAsideEvent {
  readonly event: DeliveredEvent
  readonly attempts: number
  readonly setAsideAt: Instant
}

/** The undelivered events of a server. */
export interface ServerEvents {
  /**
   * Delivers due events at least once, and the events of each record in order. Any number of processes may
   * call it concurrently. A failing event delays only the later events of its own record.
   *
   * @returns how many events this call delivered, and how many deliveries failed.
   * @throws the store's error; events in delivery are then delivered again when their lease ends.
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
   * Measures the undelivered events: how many wait, also those in delivery and those that failed and are due within an
   * hour; the age of the oldest of them in milliseconds, 0 if none waits; and how many were set aside. It counts to at
   * most `limit` (default 1,000, maximum 10,000), and reads what it counts.
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

export const drainDefaults = {
  limit: 100,
  concurrency: 8,
  leaseMs: 60_000,
  skewMaxMs: clockDifferenceMaxMs,
  backoffMs: 1_000,
  backoffMaxMs: 3_600_000,
  attemptsMax: 16,
}

export const drainOptions: Readonly<Record<keyof DrainOptions, unknown>> = {
  ...drainDefaults,
  onFailure: true,
  signal: true,
}

/** The options of a drain with defaults. */
export type DrainSettings = DrainOptions & typeof drainDefaults

/** Validates the options, and fills in defaults. */
export function drainSettings(options: DrainOptions): DrainSettings {
  requireKnownOptions('', options, drainOptions)
  const settings = { ...options, ...drainDefaults }
  for (const name of Object.keys(drainDefaults) as (keyof typeof drainDefaults)[]) {
    settings[name] = options[name] ?? drainDefaults[name]
    if (name !== 'skewMaxMs' || settings[name] !== 0) positiveInteger(name, settings[name])
  }
  return settings
}

export function deliveredEvent(
  { serverUrl }: Pick<ServiceContext, 'serverUrl'>,
  { id, event }: EventRecord,
): DeliveredEvent {
  return { ...event, id, server: serverUrl }
}

/**
 * The outcome of an event. Held: it must not be delivered now. Lost: another writer changed it. Overrun: the
 * delivery outlasted its lease, so another consumer may deliver the event too.
 */
type DeliveryOutcome = 'delivered' | 'failed' | 'held' | 'lost' | 'overrun'

/** Delivers an event. It must be the oldest of its record, to preserve the order. */
export async function attemptDelivery(
  context: ServiceContext,
  record: EventRecord,
  handler: EventHandler,
  settings: DrainSettings,
): Promise<DeliveryOutcome> {
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
  if (!(await replaceEvent(context, record, { ...record, ...lease }, call.commandId))) return 'lost'
  const leased = { ...record, ...lease, version: record.version + 1 }
  try {
    await withinLease(settings.leaseMs, (signal) => handler(event, { attempt, signal }))
  } catch (error) {
    const retryAt = await postpone(context, leased, settings)
    const again = retryAt === undefined ? {} : { retryAt }
    settings.onFailure?.({ event, attempt, error, ...again })
    return 'failed'
  }
  const [removed] = await context.store.remove([
    { kind: 'event', id: leased.id, version: leased.version },
  ])
  return removed ? 'delivered' : 'overrun'
}

/** Whether an event is too early, leased, backing off or set aside. Another new event waits only for older ones. */
function isHeld({ attempts, dueAt, notBefore = 0 }: EventRecord, now: Instant): boolean {
  return dueAt === undefined || notBefore > now || (attempts > 0 && dueAt > now)
}

/** Resolves to the time of the next delivery, or to `undefined` if the event was set aside. */
async function postpone(
  context: ServiceContext,
  record: EventRecord,
  settings: DrainSettings,
): Promise<Instant | undefined> {
  const call = newCall(context)
  if (record.attempts >= settings.attemptsMax) {
    return (await setAside(context, record)) ? undefined : call.now
  }
  const pauseMs = settings.backoffMs * 2 ** (record.attempts - 1)
  const retryAt = call.now + Math.min(settings.backoffMaxMs, pauseMs)
  const postponed = { ...record, dueAt: retryAt, failedAt: call.now }
  const isOurs = await replaceEvent(context, record, postponed, call.commandId)
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

/** Sets an event aside. Resolves to false if another writer changed it. */
async function setAside(context: ServiceContext, record: EventRecord): Promise<boolean> {
  const call = newCall(context)
  const { dueAt: _dueAt, ...rest } = record
  const lists = [{ list: await setAsideList(context), at: call.now }] as const
  return replaceEvent(context, record, { ...rest, setAsideAt: call.now, lists }, call.commandId)
}

/** Resolves to the name of the list of the events that were set aside. */
export async function setAsideList({ namespace }: ServiceContext): Promise<string> {
  return `${await namespace()}.set-aside`
}

/** Changes an event. Resolves to false if another writer has changed it. */
export function replaceEvent(
  { run }: Pick<ServiceContext, 'run'>,
  before: EventRecord,
  changed: EventRecord,
  commandId: string,
): Promise<boolean> {
  const key = { kind: 'event', id: before.id } as const
  return run<boolean>({
    reads: [key],
    known: { records: recordsOf('event', before) },
    decide(read) {
      const found = read<EventRecord>(key)
      if (found?.commandId === commandId) return { result: true }
      if (found?.version !== before.version) return { result: false }
      const next = { ...changed, version: before.version + 1, commandId }
      return { changes: [{ kind: 'event', next }], result: true }
    },
  })
}
