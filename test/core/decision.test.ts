import { expect, test } from 'vitest'
import { refused } from '../../src/core/decision.js'

test('a refusal says when the call may succeed, or has no such member', () => {
  expect(refused('too_early', 'a reason', 5)).toMatchObject({ refusal: 'too_early', retryAt: 5 })
  expect(refused('unknown', 'a reason')).not.toHaveProperty('retryAt')
})
