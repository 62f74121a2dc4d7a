import fc from 'fast-check'
import { attemptsConformance, attemptsProperty } from 'open-payments-server-testing'
import { custodian } from 'open-payments-test-support/custodian'
import { runs } from 'open-payments-test-support/runs'
import { describe, test } from 'vitest'

describe.each(['id', 'sum'] as const)('a custodian that is asked by %s keeps the laws', (by) => {
  for (const { name, run } of attemptsConformance(custodian(by))) test(name, run)

  test('in random histories', async () => {
    await fc.assert(attemptsProperty(fc, custodian(by)), { numRuns: runs(6_000, 150) })
  })
})
