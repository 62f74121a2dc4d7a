import { expect } from 'vitest'

/** Matches an `InvalidInputError` for the value at a path, such as `servers.0.keys`, and its other members. */
export function invalidInput(path: string, others: object = {}) {
  return expect.objectContaining({
    name: 'TypeError',
    code: 'ERR_INVALID_INPUT',
    path: path.split('.').map((key) => (/^\d+$/.test(key) ? Number(key) : key)),
    ...others,
  })
}
