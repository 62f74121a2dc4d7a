import { isWrongAnswer } from '../util/errors.js'
import { isTransactionError } from './store-errors.js'

/**
 * Rejections of the store and of the ports of the host, with the name of each. The errors keep their classes, because
 * hosts catch them.
 */
const failed = new WeakMap<object, string>()

/** Marks the rejection of a store or port. The failed transaction or a wrong answer of a host is not an outage. */
export function dependencyFailure(name: string, cause: unknown): unknown {
  if (isTransactionError(cause) || isWrongAnswer(cause)) return cause
  const isObject = typeof cause === 'object' && cause !== null
  const error = isObject ? cause : new Error(`${name} failed`, { cause })
  if (!failed.has(error)) failed.set(error, name)
  return error
}

/** Returns the name of the store or port that rejected with this error, or `undefined` for a fault of the code. */
export function failedDependency(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null ? failed.get(error) : undefined
}
