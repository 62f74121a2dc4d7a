import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'

/** Compares like `toStrictEqual`, but faster: `expect` costs more than most of the code under test. */
export function same(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected)
}
