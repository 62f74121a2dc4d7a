import fc from 'fast-check'
import { attemptsConformance, attemptsProperty } from 'open-payments-server-testing'
import { runs } from 'open-payments-test-support/runs'
import { describe, test } from 'vitest'
import { custodian } from './support/custodian.js'

describe.each(['id', 'sum'] as const)('a custodian that is asked by %s keeps the laws', (by) => {
  for (const { name, run } of attemptsConformance(custodian(by))) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, custodian(by)), { numRuns: runs(6_000, 150) })
  })
})
