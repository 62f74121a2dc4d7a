import { expect, test } from 'vitest'
import { changed, hasChanged, refused, refusedCall, unchanged } from '../../src/core/decision.js'

test('a refusal says when the call may succeed, or has no such member', () => {
  expect(refused('too_early', 'a reason', 5)).toMatchObject({ refusal: 'too_early', retryAt: 5 })
  expect(refused('unknown', 'a reason')).not.toHaveProperty('retryAt')
})

test('a refused call of the host gets the refusal and its reason, and nothing else', () => {
  const call = refusedCall(refused('too_early', 'a reason', 5))
  expect(call).toEqual({ ok: false, refusal: 'too_early', reason: 'a reason' })
})

test('a command has changed its record if it changes it now, or is on the record', () => {
  const record = { id: 'id', version: 1, commandId: 'earlier' }
  expect(hasChanged(changed(record), 'now')).toBe(true)
  expect(hasChanged(unchanged(record), 'earlier')).toBe(true)
  expect(hasChanged(unchanged(record), 'now')).toBe(false)
})
