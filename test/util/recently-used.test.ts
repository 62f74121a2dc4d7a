import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recentlyUsed } from '../../src/util/recently-used.js'
import { runs } from '../support/runs.js'

test('a bounded map has at most its maximum of entries, and all of the half that was used last', () => {
  const key = fc.integer({ min: 0, max: 12 }).map(String)
  const command = fc.oneof(
    fc.record({ type: fc.constant('set' as const), key }),
    fc.record({ type: fc.constant('get' as const), key }),
    fc.record({ type: fc.constant('delete' as const), key }),
  )
  const property = fc.property(
    fc.integer({ min: 1, max: 10 }),
    fc.array(command, { maxLength: 60 }),
    (max, commands) => {
      const entries = recentlyUsed<string>(max)
      /** All values that were set, or `undefined` once they are deleted, the most recently used last. */
      const model = new Map<string, string | undefined>()
      for (const [turn, { type, key }] of commands.entries()) {
        const value =
          type === 'set' ? `${key} at ${turn}` : type === 'get' ? model.get(key) : undefined
        if (type === 'set') entries.set(key, `${key} at ${turn}`)
        else if (type === 'delete') entries.delete(key)
        else {
          const found = entries.get(key)
          const lastUsed = [...model.keys()].slice(-Math.floor((max + 1) / 2))
          if (found !== undefined || lastUsed.includes(key)) expect(found).toBe(value)
          if (found === undefined) continue
        }
        model.delete(key)
        model.set(key, value)
      }
      const kept = [...model.keys()].filter((each) => entries.get(each) !== undefined)
      expect(kept.length).toBeLessThanOrEqual(max)
    },
  )
  fc.assert(property, { numRuns: runs(2_000) })
})
