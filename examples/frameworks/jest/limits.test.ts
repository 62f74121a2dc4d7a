import * as fc from 'fast-check'
import { memoryStore } from 'open-payments-server'
import { spendingProperty, storeConformance } from 'open-payments-server-testing'

describe('the store', () => {
  for (const { name, run, timeoutMs } of storeConformance(() => memoryStore())) {
    test(name, run, timeoutMs)
  }

  test('allows no payment beyond the limits of a grant', async () => {
    await fc.assert(spendingProperty(fc, { store: () => memoryStore() }), { numRuns: 20 })
  }, 300_000)
})
