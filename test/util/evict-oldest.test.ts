import fc from 'fast-check'
import { expect, test } from 'vitest'
import { evictOldest } from '../../src/util/evict-oldest.js'
import { runs } from '../support/runs.js'

test('the entries of a bounded map are the newest, at most its maximum and at least seven eighths of it', () => {
  const sizes = fc.record({ max: fc.integer({ min: 1, max: 40 }), inserted: fc.nat(200) })
  const property = fc.property(sizes, ({ max, inserted }) => {
    const entries = new Map<number, string>()
    for (let key = 0; key < inserted; key++) {
      entries.set(key, 'value')
      evictOldest(entries, max)
      expect(entries.size).toBeLessThanOrEqual(max)
    }
    const kept = [...entries.keys()]
    expect(kept.length).toBeGreaterThanOrEqual(Math.min(inserted, Math.floor((max * 7) / 8)))
    expect(kept).toEqual(kept.map((_, index) => inserted - kept.length + index))
  })
  fc.assert(property, { numRuns: runs(1_000) })
})
