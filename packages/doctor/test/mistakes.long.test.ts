import { describe, expect, test } from 'vitest'
import { findsOnly, mistakes } from './support/mistakes.js'

describe('the doctor finds one mistake', () => {
  test.each(mistakes.map((one) => [one.name, one] as const))('%s', (_, one) => findsOnly(one))

  test('in each of at least forty', () => {
    expect(new Set(mistakes.map(({ name }) => name)).size).toBeGreaterThanOrEqual(40)
  })
})
