import { sleep } from './sleep.js'

/** Real time for retries. Decisions never use it; their time is an argument. */
export interface Pacing {
  elapsedMs(): number
  /** Resolves after the delay, or as soon as the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const realPacing: Pacing = {
  elapsedMs: () => performance.now(),
  sleep,
}
