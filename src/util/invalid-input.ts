/**
 * The host passed an invalid option or argument. The call has changed nothing.
 *
 * @example
 * ```ts
 * import { createWallet, InvalidInputError } from 'open-payments-server'
 *
 * try {
 *   const baseUrl = 'wallet.example'
 *   createWallet({ baseUrl, consentUrl: baseUrl, store, walletAddresses: accounts, paymentMethods })
 * } catch (error) {
 *   if (error instanceof InvalidInputError) console.error(error.path, error.message) // ['baseUrl']
 * }
 * ```
 */
export class InvalidInputError extends TypeError {
  readonly code = 'ERR_INVALID_INPUT'
  /**
   * The names of members and the indices in arrays that lead to the invalid value: `['policy', 'quotes', 'lifetimeMs']`
   * in the options of a server. In the arguments of a call, the first name is the parameter:
   * `['approval', 'walletAddresses', 0]`.
   */
  readonly path: readonly (string | number)[]

  /**
   * @param path also as text, such as `approval.walletAddresses.0`.
   * @param problem completes the message, which begins with the path: `must be a positive integer`.
   */
  constructor(path: string | readonly (string | number)[], problem: string) {
    const keys = typeof path === 'string' ? pathOf(path) : path
    super(`${keys.join('.')} ${problem}`)
    this.path = keys
  }
}

/** The names and indices in a path as text. */
export function pathOf(text: string): (string | number)[] {
  return text.split('.').map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}

/**
 * Rejects unknown options, because a misspelled option would otherwise silently keep its default. The error message
 * lists the known ones.
 *
 * @param path the name of the options object, such as `policy`; empty for the options of a function.
 * @param known an object with a member for each option, so that the compiler reports a missing one.
 * @throws {InvalidInputError} for an unknown option, and for a value that is not an object.
 *
 * @example
 * ```ts
 * import { requireKnownOptions } from 'open-payments-server/adapter'
 *
 * export function toMyFramework(options: { readonly prefix?: string }) {
 *   requireKnownOptions('', options, { prefix: true })
 * }
 * ```
 */
export function requireKnownOptions<Options extends object>(
  path: string,
  options: Options,
  known: Readonly<Record<keyof Options, unknown>>,
): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidInputError(path || 'options', 'must be an object')
  }
  const name = unknownNameIn(options, known)
  if (name === undefined) return
  const where = path === '' ? [name] : [...pathOf(path), name]
  throw new InvalidInputError(where, unknownName('options', known))
}

export function unknownNameIn(value: object, known: object): string | undefined {
  return Object.keys(value).find((each) => !Object.hasOwn(known, each))
}

/** The message for a name that is not known. `noun` says what the members are. */
export function unknownName(noun: string, known: object): string {
  return `is not known: the ${noun} are ${Object.keys(known).join(', ')}`
}
