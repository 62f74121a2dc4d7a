import type { EventRecord } from '../event-record.js'
import type { Pacing } from '../time.js'
import type { DeliveredEvent, DrainSettings, EventHandler } from './delivery.js'

/** An event that waits for the handler, or that the handler is processing. */
export interface Delivery {
  /** The record as the consumer knows it. It changes when the delivery gets a lease. */
  record: EventRecord
  readonly slice: number
  readonly event: DeliveredEvent
  readonly attempt: number
  /** Whether the event has a lease, so that the claim of its slice need not protect it. */
  isLeased: boolean
  /** Whether the handler may begin now. */
  readonly mayBegin: () => boolean
  /** Why another consumer may have begun the delivery too, judged by the time alone. */
  readonly overdue: () => string | undefined
  /** Ends the delivery with an error, because another consumer may begin it too. */
  lose: (error: Error) => void
}

/** A delivery whose handler has resolved, or has failed. */
export interface Ended {
  readonly delivery: Delivery
  readonly failure?: { readonly error: unknown }
}

/**
 * Lets a signal check the time whenever `aborted` is read. After a pause of the process, a handler may go on before the
 * timer that aborts the signal.
 */
function checkedWhenRead(signal: AbortSignal, check: () => void): AbortSignal {
  const isAborted = (): boolean => Reflect.get(AbortSignal.prototype, 'aborted', signal)
  return Object.defineProperties(signal, {
    aborted: {
      get() {
        if (!isAborted()) check()
        return isAborted()
      },
    },
    throwIfAborted: {
      value() {
        if (signal.aborted) throw signal.reason
      },
    },
  })
}

/** Calls the handler for events, for as many records at a time as the settings say. */
export function createHandlers(
  pacing: Pacing,
  handler: EventHandler,
  { concurrency, leaseMs }: DrainSettings,
) {
  /** The waiting deliveries, by record. */
  const queue: Delivery[][] = []
  /** The deliveries that wait for a delivery in progress of the same record. */
  const active = new Set<Delivery[]>()
  const inDelivery = new Map<string, Delivery>()
  const ended: Ended[] = []
  let taken = 0
  let notify: () => void = () => undefined
  let news = new Promise<void>((resolve) => {
    notify = resolve
  })

  function tell(): void {
    notify()
    news = new Promise<void>((resolve) => {
      notify = resolve
    })
  }

  function startMore(): void {
    while (active.size < concurrency) {
      const run = queue.shift()
      if (run === undefined) return
      active.add(run)
      void handle(run)
    }
  }

  /** Delivers the events of one record in order, until one fails. */
  async function handle(run: Delivery[]): Promise<void> {
    while (run[0]?.mayBegin()) {
      const delivery = run.shift() as Delivery
      const failure = await failureOf(delivery)
      ended.push({ delivery, ...(failure !== undefined && { failure }) })
      tell()
      if (failure) break
    }
    drop(run)
    active.delete(run)
    startMore()
    tell()
  }

  /** Takes events back that have not begun. */
  function drop(run: Delivery[]): void {
    taken -= run.length
    for (const { record } of run.splice(0)) inDelivery.delete(record.id)
  }

  /** Waits for a handler until the lease of its event ends, or is lost. */
  async function failureOf(delivery: Delivery): Promise<Ended['failure']> {
    const lease = new AbortController()
    const handled = new AbortController()
    const lost = new Promise<never>((_, reject) => {
      delivery.lose = (error) => {
        lease.abort()
        reject(error)
      }
    })
    const late = `the handler did not finish within ${leaseMs} ms`
    async function end(): Promise<void> {
      await pacing.sleep(leaseMs, handled.signal)
      if (!handled.signal.aborted) delivery.lose(new Error(late))
    }
    const begunAt = pacing.elapsedMs()
    const signal = checkedWhenRead(lease.signal, () => {
      const isLate = pacing.elapsedMs() - begunAt >= leaseMs
      const why = isLate ? late : delivery.overdue()
      if (why !== undefined) delivery.lose(new Error(why))
    })
    const { event, attempt } = delivery
    try {
      void end()
      await Promise.race([handler(event, { attempt, signal }), lost])
      return undefined
    } catch (error) {
      return { error }
    } finally {
      handled.abort()
      delivery.lose = () => undefined
    }
  }

  return {
    /** Every event that is queued or in delivery, or whose delivery has ended and is not yet settled. */
    inDelivery: inDelivery as ReadonlyMap<string, Delivery>,
    /** The number of handlers in progress. */
    running: () => active.size,
    /** The number of records whose events wait. */
    waiting: () => queue.length,
    /** The number of deliveries that have begun or wait to begin. */
    taken: () => taken,
    /** Queues the events of one record. */
    add(run: readonly Delivery[]): void {
      for (const delivery of run) inDelivery.set(delivery.record.id, delivery)
      taken += run.length
      queue.push([...run])
      startMore()
    },
    /** Takes an event whose delivery fails at once. */
    end(delivery: Delivery, error: Error): void {
      inDelivery.set(delivery.record.id, delivery)
      taken += 1
      ended.push({ delivery, failure: { error } })
      tell()
    },
    /** Drops the events that have not begun. */
    clear(): void {
      for (const run of [...queue.splice(0), ...active]) drop(run)
    },
    /** The deliveries that have ended and are to be settled. */
    ended: ended as readonly Ended[],
    /** Forgets deliveries that were settled. */
    settled(some: readonly Ended[]): void {
      ended.splice(0, some.length)
      for (const { delivery } of some) inDelivery.delete(delivery.record.id)
    },
    tell,
    /** Resolves when a delivery ends, or after a time. */
    async news(ms: number): Promise<void> {
      if (ended.length > 0) return
      const over = new AbortController()
      await Promise.race([news, pacing.sleep(ms, over.signal)])
      over.abort()
    },
  }
}
