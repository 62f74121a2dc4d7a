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
   * The names of members and the indices in arrays that lead to the invalid value:
   * `['policy', 'quotes', 'lifetimeMs']` in the options of a server. In the arguments of a call, the first name is the parameter:
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

function pathOf(text: string): (string | number)[] {
  return text.split('.').map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}

/** Checks a value that the host passes in. Throws an `InvalidInputError` with the path of an invalid part. */
export type Check = (path: string, value: unknown) => void

/** A check of a condition; `problem` completes the sentence that begins with the path. */
function checking(problem: string, isValid: (value: unknown) => boolean): Check {
  return (path, value) => {
    if (!isValid(value)) throw new InvalidInputError(path, problem)
  }
}

export const string = checking('must be a string', (value) => typeof value === 'string')

const nonEmpty = checking(
  'must be a non-empty string',
  (value) => typeof value === 'string' && value !== '',
)

const wellFormed = checking('must be well-formed Unicode', (value) => String(value).isWellFormed())

/** A check of text, such as an id: ids with lone surrogates would have one UTF-8 encoding, and so one hash. */
export const text: Check = (path, value) => {
  nonEmpty(path, value)
  wellFormed(path, value)
}

/** A check of text that has at most `lengthMax` characters. */
export function textOfAtMost(lengthMax: number): Check {
  const within = checking(
    `must have 1 to ${lengthMax} characters`,
    (value) => typeof value === 'string' && value !== '' && value.length <= lengthMax,
  )
  return (path, value) => {
    within(path, value)
    wellFormed(path, value)
  }
}

export const integer = checking('must be an integer', Number.isSafeInteger)

export const positiveInteger = checking(
  'must be a positive integer',
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
)

/** A check of an integer within bounds, which are included. */
export function integerFrom(min: number, max: number): Check {
  return checking(
    `must be an integer from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  )
}

export const callback = checking('must be a function', (value) => typeof value === 'function')

export const number = checking('must be a number', (value) => typeof value === 'number')

export const boolean = checking('must be a boolean', (value) => typeof value === 'boolean')

const object = checking(
  'must be an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)

/** A check of a name that must be one of the members of an object. */
export function oneOf(known: object): Check {
  return checking(
    `must be one of ${Object.keys(known).join(', ')}`,
    (value) => typeof value === 'string' && Object.hasOwn(known, value),
  )
}

/** Checks that the host passes in an object with these methods, such as a port or a store. */
export function requireMethods(path: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined || value === null) throw new InvalidInputError(path, 'is required')
  const given = value as Record<string, unknown>
  if (typeof given['then'] === 'function') {
    throw new InvalidInputError(path, 'is a promise: await it first')
  }
  // An array has a method `find` of its own.
  const missing = methods.find(
    (method) => typeof given[method] !== 'function' || Array.isArray(value),
  )
  if (missing !== undefined) throw new InvalidInputError(path, `must have a method ${missing}`)
}

/** A check of a value that may be absent. */
export function optional(check: Check): Check {
  return (path, value) => {
    if (value !== undefined) check(path, value)
  }
}

/** A check of an array, and of each of its items. */
export function listOf(check: Check): Check {
  return (path, value) => {
    if (!Array.isArray(value)) throw new InvalidInputError(path, 'must be an array')
    for (const [index, item] of value.entries()) check(`${path}.${index}`, item)
  }
}

/** A check of some members of an object, which may have others. */
export function having(members: Readonly<Record<string, Check>>): Check {
  return (path, value) => {
    object(path, value)
    for (const [name, check] of Object.entries(members)) {
      check(`${path}.${name}`, (value as Record<string, unknown>)[name])
    }
  }
}

/**
 * A check of all members of an object. It rejects unknown members, because a misspelled optional member would
 * otherwise be ignored.
 */
export function exactly<Type extends object>(
  members: Readonly<Record<keyof Type & string, Check>>,
): Check {
  const check = having(members)
  return (path, value) => {
    object(path, value)
    requireKnownNames(path, value as object, members, 'members')
    check(path, value)
  }
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
  requireKnownNames(path, options, known, 'options')
}

/** Throws for the first member whose name is not known. `noun` says what the members are. */
function requireKnownNames(path: string, given: object, known: object, noun: string): void {
  const name = Object.keys(given).find((each) => !Object.hasOwn(known, each))
  if (name === undefined) return
  const names = Object.keys(known).join(', ')
  throw new InvalidInputError(
    path === '' ? [name] : [...pathOf(path), name],
    `is not known: the ${noun} are ${names}`,
  )
}
