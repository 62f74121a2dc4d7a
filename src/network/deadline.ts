import { integerFrom } from '../util/input.js'

/** The timeout of a request, in milliseconds. */
export const timeout = integerFrom(1, 60_000)

/**
 * Runs work with a signal that aborts after `ms`, or with the signal of the caller. The promise rejects at that time,
 * even if the work ignores its signal.
 *
 * The timer holds the controller. `AbortSignal.any` would lose a time-out in a garbage collection, on Node 20 and on
 * Node 22 before 22.16.
 */
export async function withDeadline<Value>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Value>,
  outer?: AbortSignal,
): Promise<Value> {
  outer?.throwIfAborted()
  const controller = new AbortController()
  const { signal } = controller
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  const follow = () => controller.abort(outer?.reason)
  outer?.addEventListener('abort', follow, { once: true })
  const timer = setTimeout(() => {
    controller.abort(new DOMException('there was no response in time', 'TimeoutError'))
  }, ms)
  try {
    return await Promise.race([work(signal), aborted])
  } finally {
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
}
