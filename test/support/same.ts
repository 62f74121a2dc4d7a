import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'

/** What `toStrictEqual` says, said fast: `expect` alone is slower than most of what is looked at with it. */
export function same(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected)
}
