import type { HostCall } from '../ports/host.js'
import { HostTimeoutError } from '../util/errors.js'
import { inTime } from './in-time.js'

/**
 * Calls a function of the host, and waits for a limited time. Marks its error for `failedDependency`. Does not check
 * what it resolves to.
 *
 * @param name of the function, as `onError` and `onRefusal` name it.
 * @throws {HostTimeoutError} if it does not settle in time. Then the signal of the call is aborted.
 */
export function askHost<Answer>(
  name: string,
  timeoutMs: number,
  ask: (call: HostCall) => Promise<Answer> | Answer,
): Promise<Answer> {
  // Few functions read the signal, and a controller costs more than the rest of a call.
  let controller: AbortController | undefined
  let late: HostTimeoutError | undefined
  const call: HostCall = {
    get signal() {
      controller ??= new AbortController()
      if (late !== undefined) controller.abort(late)
      return controller.signal
    },
  }
  return inTime(
    name,
    timeoutMs,
    () => Promise.resolve(ask(call)),
    () => {
      late = new HostTimeoutError(name, Math.round(timeoutMs))
      controller?.abort(late)
      return late
    },
  )
}
