import { ArgumentError } from './argument-error.js'
import { unknownName } from './known-options.js'

/** Checks a value that the host passes in. Throws an `ArgumentError` with the path of an invalid part. */
export type Check = (path: string, value: unknown) => void

/** A check of a condition; `problem` completes the sentence that begins with the path. */
function checking(problem: string, isValid: (value: unknown) => boolean): Check {
  return (path, value) => {
    if (!isValid(value)) throw new ArgumentError(path, problem)
  }
}

export const string = checking('must be a string', (value) => typeof value === 'string')

export const text = checking(
  'must be a non-empty string',
  (value) => typeof value === 'string' && value !== '',
)

export const integer = checking('must be an integer', Number.isSafeInteger)

export const positiveInteger = checking(
  'must be a positive integer',
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
)

export const callback = checking('must be a function', (value) => typeof value === 'function')

export const number = checking('must be a number', (value) => typeof value === 'number')

export const boolean = checking('must be a boolean', (value) => typeof value === 'boolean')

const object = checking(
  'must be an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)

/** A check of a value that may be absent. */
export function optional(check: Check): Check {
  return (path, value) => {
    if (value !== undefined) check(path, value)
  }
}

/** A check of an array, and of each of its items. */
export function listOf(check: Check): Check {
  return (path, value) => {
    if (!Array.isArray(value)) throw new ArgumentError(path, 'must be an array')
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
    const unknown = unknownName(value as object, members)
    if (unknown !== undefined) {
      throw new ArgumentError(`${path}.${unknown.name}`, `is not a member${unknown.hint}`)
    }
    check(path, value)
  }
}
