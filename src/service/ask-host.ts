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
export async function askHost<Answer>(
  name: string,
  timeoutMs: number,
  ask: (call: HostCall) => Promise<Answer> | Answer,
): Promise<Answer> {
  const call = new LimitedCall()
  return inTime(
    name,
    timeoutMs,
    async () => ask(call),
    () => call.end(new HostTimeoutError(name, Math.round(timeoutMs))),
  )
}

/**
 * Few functions read the signal, and a controller costs more than the rest of a call. So does a getter in a literal,
 * which is defined for each call.
 */
class LimitedCall implements HostCall {
  #controller: AbortController | undefined
  #late: HostTimeoutError | undefined

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#late !== undefined) this.#controller.abort(this.#late)
    return this.#controller.signal
  }

  end(late: HostTimeoutError): HostTimeoutError {
    this.#late = late
    this.#controller?.abort(late)
    return late
  }
}
