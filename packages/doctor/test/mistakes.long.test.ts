import { describe, expect, test } from 'vitest'
import { findsOnly, mistakes } from './support/mistakes.js'

describe('the doctor finds one mistake', () => {
  test.each(mistakes)('$name', findsOnly)

  test('in each of at least forty', () => {
    expect(new Set(mistakes.map(({ name }) => name)).size).toBeGreaterThanOrEqual(40)
  })
})
