import type { Instant } from '../../core/instant.js'
import { InvalidInputError } from '../../util/invalid-input.js'
import type { Pacing } from '../time.js'
import { type DeliveredEvent, type EventHandler, postponedMaxMs } from './handler.js'
import type { Handled } from './state.js'

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

export interface Handling {
  readonly event: DeliveredEvent
  readonly attempt: number
  /** How long it may take, in milliseconds. */
  readonly leaseMs: number
  /** Why another consumer may have begun the delivery too, judged by the time alone. */
  readonly overdue: () => string | undefined
  readonly now: () => Instant
  readonly ended: (handled: Handled) => void
}

/** Reads what a handler has resolved to. Any value without `retryAt` means that the event is done. */
function handledBy(result: unknown, now: Instant): Handled {
  if (typeof result !== 'object' || result === null || !('retryAt' in result)) {
    return { type: 'done' }
  }
  const { retryAt } = result
  if (!isInstant(retryAt)) {
    const problem = 'must be an instant in milliseconds since 1970'
    return { type: 'failed', error: new InvalidInputError('retryAt', problem) }
  }
  return retryAt > now + postponedMaxMs
    ? { type: 'failed', error: new InvalidInputError('retryAt', 'must be at most 30 days ahead') }
    : { type: 'postponed', retryAt }
}

function isInstant(value: unknown): value is Instant {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Calls the handler for an event, until its lease ends. Returns how to end the delivery before. */
export function handle(
  pacing: Pacing,
  handler: EventHandler,
  { event, attempt, leaseMs, overdue, now, ended }: Handling,
): (reason: string) => void {
  const lease = new AbortController()
  const handled = new AbortController()
  const late = `the handler did not finish within ${leaseMs} ms`

  function end(result: Handled): void {
    if (handled.signal.aborted) return
    // A reason, because without one `abort` makes a DOMException with a stack.
    handled.abort('handled')
    ended(result)
  }
  function stop(reason: string): void {
    if (handled.signal.aborted) return
    lease.abort()
    end({ type: 'failed', error: new Error(reason) })
  }
  async function limit(): Promise<void> {
    await pacing.sleep(leaseMs, handled.signal)
    stop(late)
  }
  async function call(): Promise<void> {
    const begunAt = pacing.elapsedMs()
    const signal = checkedWhenRead(lease.signal, () => {
      const why = pacing.elapsedMs() - begunAt >= leaseMs ? late : overdue()
      if (why !== undefined) stop(why)
    })
    try {
      end(handledBy(await handler(event, { attempt, signal }), now()))
    } catch (error) {
      end({ type: 'failed', error })
    }
  }
  void limit()
  void call()
  return stop
}
