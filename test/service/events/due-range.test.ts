import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EventRecord } from '../../../src/service/event-record.js'
import { createDueRanges } from '../../../src/service/events/due-range.js'
import { startOfTests } from '../../support/clock.js'
import { runs } from '../../support/runs.js'

const minute = 60_000

/** The ranges of a process, and the time in which it lives. */
function rangesAt(start: number) {
  let now = start
  const pacing = { elapsedMs: () => now - start, sleep: async () => undefined }
  const ranges = createDueRanges(pacing as never)
  return {
    pass(ms: number) {
      now += ms
    },
    now: () => now,
    from: () => ranges.from(0),
    /** Looks up among these due times. Returns the found ones. */
    lookUp(dues: readonly number[]): readonly number[] {
      const from = ranges.from(0)
      const found = dues
        .filter((dueAt) => dueAt <= now && dueAt >= (from ?? dueAt))
        .toSorted((a, b) => a - b)
      ranges.note(
        0,
        from,
        found.map((dueAt) => ({ dueAt }) as EventRecord),
        now,
      )
      return found
    },
  }
}

describe('the range of a look-up', () => {
  test('has no bound at first, and again every five seconds', () => {
    const { from, lookUp, pass } = rangesAt(startOfTests)
    expect(from()).toBeUndefined()
    lookUp([])
    expect(from()).toBeDefined()
    pass(4_999)
    lookUp([])
    expect(from()).toBeDefined()
    pass(1)
    expect(from()).toBeUndefined()
  })

  test('begins shortly before new events, whose due time is two minutes ago', () => {
    const { from, lookUp } = rangesAt(startOfTests)
    lookUp([])
    expect(from()).toBe(startOfTests - 2 * minute - 10_000)
  })

  test('begins at the oldest event that is still due', () => {
    const { from, lookUp } = rangesAt(startOfTests)
    lookUp([startOfTests - 60 * minute, startOfTests - minute])
    expect(from()).toBe(startOfTests - 60 * minute)
  })

  test('of one slice says nothing of another', () => {
    const ranges = createDueRanges({ elapsedMs: () => 0 } as never)
    ranges.note(1, undefined, [], startOfTests)
    expect(ranges.from(1)).toBeDefined()
    expect(ranges.from(2)).toBeUndefined()
  })
})

const step = fc.record({
  ms: fc.integer({ min: 0, max: 8_000 }),
  /** How old a new event is, by its due time, when it becomes visible. */
  ages: fc.array(fc.integer({ min: 0, max: 60 * minute }), { maxLength: 3 }),
  /** Whether what was found is then removed. */
  isDelivered: fc.boolean(),
})

test('every event is found by a look-up within five seconds, or by the first one after that', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { now, pass, lookUp } = rangesAt(startOfTests)
      let visible: { readonly dueAt: number; readonly since: number }[] = []
      for (const { ms, ages, isDelivered } of steps) {
        pass(ms)
        visible.push(...ages.map((age) => ({ dueAt: now() - age, since: now() })))
        const found = new Set(lookUp(visible.map(({ dueAt }) => dueAt)))
        for (const { dueAt, since } of visible) {
          if (now() - since >= 5_000) expect(found).toContain(dueAt)
        }
        if (isDelivered) visible = visible.filter(({ dueAt }) => !found.has(dueAt))
      }
    }),
    { numRuns: runs(5_000) },
  )
})

test('an event of the last ten seconds is found at once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { now, pass, lookUp } = rangesAt(startOfTests)
      for (const { ms, ages } of steps) {
        pass(ms)
        const fresh = ages.map((age) => now() - 2 * minute - (age % 10_000))
        expect(lookUp(fresh)).toEqual(fresh.toSorted((a, b) => a - b))
      }
    }),
    { numRuns: runs(5_000) },
  )
})
