import { dependencyFailure } from './failed-dependency.js'
import { timerMaxMs } from './time.js'

/**
 * Waits for the work of the store or of a port for a limited time, and marks its rejection for `failedDependency`. What
 * it settles to later is ignored.
 *
 * @param dependency the name of the store or port.
 * @param late returns the error of work that has not settled in time.
 */
export function inTime<Value>(
  dependency: string,
  timeoutMs: number,
  work: () => Promise<Value>,
  late: () => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(late()), Math.min(timeoutMs, timerMaxMs))
    function fail(error: unknown): void {
      clearTimeout(timer)
      reject(dependencyFailure(dependency, error))
    }
    try {
      work().then((value) => {
        clearTimeout(timer)
        resolve(value)
      }, fail)
    } catch (error) {
      fail(error)
    }
  })
}
