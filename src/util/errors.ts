/** Receives an error that cannot change a response. */
export type OnError = ((error: unknown) => unknown) | undefined

/** The default of `onError`: an error that nobody receives would be lost. */
export function printError(error: unknown): void {
  console.error(error)
}

/**
 * Calls a hook of the host. Passes its error, thrown or rejected, to `onError`, and ignores an error of `onError`. The
 * promise never rejects; a response must not wait for it.
 */
export async function callHook(hook: () => unknown, onError?: OnError): Promise<void> {
  try {
    await hook()
  } catch (error) {
    if (onError !== undefined) await callHook(() => onError(error))
  }
}

/** Whether an error of any class has this `code`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/**
 * The error for an answer of the host's code that breaks the contract of a port or of a policy. The client receives
 * 500, and `onError` receives this error. Its message names what is wrong, and contains no value.
 *
 * @example
 * ```ts
 * import { HostAnswerError } from 'open-payments-server'
 *
 * // The option `onError` of the servers:
 * function onError(error: unknown): void {
 *   console.error(error instanceof HostAnswerError ? `fix our code: ${error.message}` : error)
 * }
 * ```
 */
export class HostAnswerError extends TypeError {
  readonly code = 'ERR_HOST_ANSWER'

  /** `source` is the function of the host, such as `walletAddresses.find`. */
  constructor(source: string, problem: string) {
    super(`the answer of ${source} is wrong: ${problem.trim()}`)
  }
}

/**
 * A function of the host that did not answer in time, by `hostTimeoutMs`, or of `mayPay` by `decideMs`. The client
 * receives 503, and `onError` this error. A later answer changes nothing.
 *
 * @example
 * ```ts
 * import { HostTimeoutError } from 'open-payments-server'
 *
 * // The option `onError` of the servers:
 * function onError(error: unknown): void {
 *   console.error(error instanceof HostTimeoutError ? `too slow: ${error.message}` : error)
 * }
 * ```
 */
export class HostTimeoutError extends Error {
  readonly code = 'ERR_HOST_TIMEOUT'

  /** `source` is the function of the host, such as `walletAddresses.find`. */
  constructor(source: string, timeoutMs: number) {
    super(`${source} did not answer within ${timeoutMs} ms`)
  }
}

/** Whether an answer of the host was wrong, which is not an outage. */
export function isWrongAnswer(error: unknown): boolean {
  return hasCode(error, 'ERR_HOST_ANSWER')
}
