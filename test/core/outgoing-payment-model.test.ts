import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { histories } from '../support/spending-histories.js'
import { machineWallet } from '../support/spending-machines.js'
import { play } from '../support/spending-player.js'

describe('the core decisions agree with a ledger kept beside them', () => {
  test('for any grants, requests and settlements at any time', async () => {
    const met = new Map<string, number>()
    const property = fc.asyncProperty(histories(60), (history) =>
      play(machineWallet(), history, met),
    )
    await fc.assert(property, { numRuns: 1_500 })
    expect(met.get('pay: paid')).toBeGreaterThan(1_000)
    expect(met.get('settle: done')).toBeGreaterThan(500)
  }, 120_000)
})
