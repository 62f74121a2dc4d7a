/**
 * The sandbox refused an option or a call. The message says why.
 *
 * @example
 * ```ts
 * import { SandboxError, startSandbox } from 'open-payments-sandbox'
 *
 * const sandbox = await startSandbox().catch((error: unknown) => {
 *   if (error instanceof SandboxError && error.code === 'ERR_PORT_IN_USE') {
 *     return startSandbox({ port: 0 })
 *   }
 *   throw error
 * })
 * ```
 */
export class SandboxError extends Error {
  /**
   * - `ERR_INVALID_OPTION`: an option, or a member of a fault, a decision or a change of the clock, is not valid.
   * - `ERR_NO_EFFECT`: an owner cannot decide this, or no longer: the URL is unknown, its time is over, or the owner
   *   has decided already.
   * - `ERR_PORT_IN_USE`: another program listens on the port.
   * - `ERR_CANNOT_LISTEN`: the sandbox cannot listen on the port for another reason, such as missing rights.
   */
  readonly code: 'ERR_INVALID_OPTION' | 'ERR_NO_EFFECT' | 'ERR_PORT_IN_USE' | 'ERR_CANNOT_LISTEN'

  constructor(code: SandboxError['code'], message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** @throws a `SandboxError` for a member that is not known. */
export function requireMember(what: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return
  throw invalidOption(`${what} has no member ${name}: it has ${known.join(', ')}`)
}

export function invalidOption(message: string): SandboxError {
  return new SandboxError('ERR_INVALID_OPTION', message)
}
