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

/** How long a load may take, in milliseconds: as long as an operation tries to commit. */
const loadMaxMs = 3_000

/**
 * Returns the store with a time limit for each call, so that a frozen database does not hold requests, and with its
 * rejections marked for `failedDependency`. Requests begin with a load, which gets at most 3 s.
 */
export function timedStore(store: Store, timeoutMs: number): Store {
  const loadMs = Math.min(timeoutMs, loadMaxMs)
  return aroundStore(store, (call, _kind, work) => {
    const limitMs = call === 'load' || call === 'loadAll' ? loadMs : timeoutMs
    return ofDependency('the store', () => withinTime(call, limitMs, work))
  })
}
