import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { histories } from '../support/spending-histories.js'
import { machineWallet } from '../support/spending-machines.js'
import { play } from '../support/spending-player.js'

describe('the machines agree with a book that is kept beside them', () => {
  test('whatever is granted, asked for and sent, and whenever', async () => {
    const met = new Map<string, number>()
    const property = fc.asyncProperty(histories(60), (history) =>
      play(machineWallet(), history, met),
    )
    await fc.assert(property, { numRuns: 1_500 })
    expect(met.get('pay: paid')).toBeGreaterThan(1_000)
    expect(met.get('settle: done')).toBeGreaterThan(500)
  }, 120_000)
})
