import { type RefusedCall, refused } from './refusal.js'

/** A call of the client, with all its requests. Aborted when its time is over. */
export interface Call {
  readonly signal: AbortSignal
  /** Performance time at which the time limit ends the call, in milliseconds. */
  readonly endsAt: number
}

/** The time limit of a call. The signal of the caller may have any other reason. */
class TimeLimitError extends Error {}

/**
 * Runs work with one signal, which aborts after `limitMs` or with the signal of the caller. The work itself settles
 * then, because it waits for nothing but `waitFor`: only it knows what it has sent.
 *
 * The timer holds the controller. `AbortSignal.any` would lose a time-out in a garbage collection, on Node 20 and on
 * Node 22 before 22.16.
 */
export async function withinLimit<Value>(
  limitMs: number,
  outer: AbortSignal | undefined,
  work: (call: Call) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const follow = () => controller.abort(outer?.reason)
  if (outer?.aborted === true) follow()
  outer?.addEventListener('abort', follow, { once: true })
  const timer = setTimeout(() => controller.abort(new TimeLimitError()), limitMs)
  try {
    return await work({ signal: controller.signal, endsAt: performance.now() + limitMs })
  } finally {
    clearTimeout(timer)
    outer?.removeEventListener('abort', follow)
  }
}

/** Settles as the promise does, and rejects as soon as the call ends. A late rejection is not unhandled. */
export async function waitFor<Value>({ signal }: Call, promise: Promise<Value>): Promise<Value> {
  promise.catch(() => {})
  signal.throwIfAborted()
  let end = () => {}
  const ended = new Promise<never>((_, reject) => {
    end = () => reject(signal.reason)
    signal.addEventListener('abort', end, { once: true })
  })
  return Promise.race([promise, ended]).finally(() => signal.removeEventListener('abort', end))
}

/** Resolves after a time. Rejects if the call ends before. */
export function pause(call: Call, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return waitFor(call, over).finally(() => clearTimeout(timer))
}

/** Whether a pause of this length ends before the call. */
export function hasTimeFor({ endsAt }: Call, ms: number): boolean {
  return performance.now() + ms < endsAt
}

/** The refusal of a call that has ended. */
export function ended({ signal }: Call, during: string): RefusedCall {
  return signal.reason instanceof TimeLimitError
    ? refused('timed_out', `the time limit ended the call before ${during}`)
    : refused('aborted', `the caller ended the call before ${during}`)
}
