import { describe, expect, test } from 'vitest'
import { type Check, exactly, having, listOf, optional, text } from '../../src/util/arguments.js'

function problemOf(check: Check, value: unknown): string | undefined {
  try {
    check('report', value)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const report = exactly<{ reason: string; notes?: readonly string[] }>({
  reason: text,
  notes: optional(listOf(text)),
})

describe('an object with exactly the given members', () => {
  test.each([{ reason: 'x' }, { reason: 'x', notes: [] }, { reason: 'x', notes: undefined }])(
    'is valid: %j',
    (value) => {
      expect(problemOf(report, value)).toBeUndefined()
    },
  )

  test.each([
    [{ raeson: 'x' }, 'report.raeson is not a member; did you mean reason?'],
    [{ reason: 'x', toString: 'x' }, 'report.toString is not a member'],
    [{ reason: 'x', other: undefined }, 'report.other is not a member'],
    [{}, 'report.reason must be a non-empty string'],
    [{ reason: '' }, 'report.reason must be a non-empty string'],
    [{ reason: 'x', notes: null }, 'report.notes must be an array'],
    [{ reason: 'x', notes: { 0: 'x' } }, 'report.notes must be an array'],
    [{ reason: 'x', notes: ['x', 7] }, 'report.notes.1 must be a non-empty string'],
    [{ reason: 'x', notes: new Array(1) }, 'report.notes.0 must be a non-empty string'],
    [[], 'report must be an object'],
    [null, 'report must be an object'],
    ['reason', 'report must be an object'],
  ])('is invalid: %j', (value, problem) => {
    expect(problemOf(report, value)).toBe(problem)
  })
})

test('an object with at least the given members may have others', () => {
  const check = having({ reason: text })
  expect(problemOf(check, { reason: 'x', other: 1 })).toBeUndefined()
  expect(problemOf(check, { other: 1 })).toBe('report.reason must be a non-empty string')
})
