import type { Store } from '../../ports/store.js'
import { aroundStore } from './around-store.js'
import { ofDependency } from './dependency-failure.js'

/** A call of the store that did not settle in time. A commit may still take effect. */
export class StoreTimeoutError extends Error {
  readonly code = 'ERR_STORE_TIMEOUT'

  constructor(call: keyof Store, timeoutMs: number) {
    super(`${call} of the store did not settle within ${timeoutMs} ms`)
  }
}

/**
 * Waits for a call of the store, or for what consists of such calls, for a limited time.
 *
 * @throws {StoreTimeoutError} if it does not settle in time.
 */
export function withinTime<Value>(
  call: keyof Store,
  timeoutMs: number,
  work: () => Promise<Value>,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new StoreTimeoutError(call, Math.round(timeoutMs)))
    const timer = setTimeout(late, timeoutMs)
    // An async function also turns a thrown error into a rejection.
    const started = (async () => work())()
    started.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** How long one call of the store may take, and how long an operation tries to commit, in milliseconds. */
export const storeTimeoutDefaultMs = 3_000

/**
 * Returns the store with a time limit for each call, so that a frozen database does not hold requests, and with its
 * rejections marked for `failedDependency`.
 */
export function timedStore(store: Store, timeoutMs: number): Store {
  return aroundStore(store, (call, _kind, work) =>
    ofDependency('the store', () => withinTime(call, timeoutMs, work)),
  )
}
