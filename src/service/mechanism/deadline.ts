import type { Store } from '../../ports/store.js'
import type { Pacing } from './pacing.js'
import type { Queues } from './queues.js'
import { storeTimeoutDefaultMs, withinTime } from './timed-store.js'

/**
 * The minimum time limit of a store call, in milliseconds: one that begins just before the deadline can still settle.
 */
const settleMinMs = 500

/** The time limit of an operation that races with others. */
export interface Deadline {
  /** The time until the deadline, in milliseconds; not positive after it. */
  leftMs(): number
  /**
   * Waits for a call of the store until the deadline.
   *
   * @throws {StoreTimeoutError} if the call does not settle. A commit may still take effect.
   */
  within<Value>(call: keyof Store, work: () => Promise<Value>): Promise<Value>
}

/**
 * Starts the deadline of an operation, which tries for as long as one call of the store may take. Inside a transaction of the host, the deadline does not limit store calls,
 * because the host waits for its own transaction.
 */
export function startDeadline({
  pacing,
  queues,
  storeTimeoutMs = storeTimeoutDefaultMs,
}: {
  readonly pacing: Pacing
  readonly storeTimeoutMs?: number | undefined
  readonly queues?: Queues | undefined
}): Deadline {
  const startedAt = pacing.elapsedMs()
  const leftMs = () => startedAt + storeTimeoutMs - pacing.elapsedMs()
  return {
    leftMs,
    within: (call, work) =>
      queues === undefined ? work() : withinTime(call, Math.max(leftMs(), settleMinMs), work),
  }
}
