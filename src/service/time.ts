import type { Clock } from '../ports/host.js'

/**
 * How far the clock of a server may be from the true time, in milliseconds. The clocks of two servers may therefore
 * differ by twice as much.
 */
const clockErrorMaxMs = 60_000

/** How much the clocks of two servers may differ, in milliseconds. */
export const clockDifferenceMaxMs = 2 * clockErrorMaxMs

/**
 * How long after its call a commit may still take effect, even if the server no longer waits for it, in milliseconds.
 * The database must end a commit that takes longer: see docs/production.md.
 */
export const lateCommitMaxMs = 60_000

/**
 * How long the replay record of a request is kept after its signature has expired, in milliseconds. A server whose
 * clock is ahead must not remove the record while a server whose clock is behind accepts the signature, or while a
 * commit of a copy of the request can still take effect.
 */
export const replayMarginMs = clockDifferenceMaxMs + lateCommitMaxMs + 1

/**
 * The clock of this server, or of another one, is further from the true time than the library allows.
 *
 * @example
 * ```ts
 * import { ClockError } from 'open-payments-server'
 *
 * // The option `onError` of the servers:
 * function onError(error: unknown): void {
 *   console.error(error instanceof ClockError ? 'set the clock of this machine' : error)
 * }
 * ```
 */
export class ClockError extends Error {
  readonly code = 'ERR_CLOCK'
}

/**
 * Returns a clock that does not go back by up to 60 s: it stands still until the given clock has caught up, so that
 * nothing that has expired becomes valid again. A larger step back corrects a wrong clock. The returned clock follows
 * and reports it, because the server would otherwise refuse every request until the given clock had caught up.
 */
export function steadyClock(clock: Clock, report: (error: ClockError) => void): Clock {
  let latest = Number.NEGATIVE_INFINITY
  return {
    now() {
      const now = clock.now()
      const stepMs = latest - now
      if (stepMs > 0 && stepMs <= clockErrorMaxMs) return latest
      if (stepMs > 0) report(new ClockError(`the clock went back by ${stepMs} ms`))
      latest = now
      return now
    },
  }
}

/** Real time for retries. Decisions never use it; their time is an argument. */
export interface Pacing {
  elapsedMs(): number
  /** Resolves after the delay, or as soon as the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The longest delay of a timer: a longer one would fire immediately. */
export const timerMaxMs = 2 ** 31 - 1

/** Resolves after the delay, or as soon as the signal is aborted, and clears its timer. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(end, Math.min(ms, timerMaxMs))
    signal?.addEventListener('abort', end)
    function end() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
  })
}

export const realPacing: Pacing = {
  elapsedMs: () => performance.now(),
  sleep,
}
