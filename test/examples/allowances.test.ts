import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allowanceProperty } from '../../examples/payment-limits/allowance-wallet.js'
import { fromFirstMonth, fromMonthBefore } from '../../examples/payment-limits/allowances.js'
import { runs } from '../support/runs.js'

test('the search finds nothing in a wallet that counts every month from the first', async () => {
  await fc.assert(allowanceProperty(fromFirstMonth), { numRuns: runs(400) })
})

test('the search finds that months drift if each is counted from the one before', async () => {
  const parameters = { numRuns: 2_000, endOnFailure: true, seed: 1 }
  const { failed, errorInstance } = await fc.check(allowanceProperty(fromMonthBefore), parameters)
  expect(failed).toBe(true)
  expect((errorInstance as Error).message).toMatch(/in each window of R\/2026-10-31T00:00:00Z\/P1M/)
})
