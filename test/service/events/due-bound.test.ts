import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { dueAtOnce, type EventRecord } from '../../../src/service/event-record.js'
import { createDueBounds } from '../../../src/service/events/due-bound.js'

interface Waiting {
  readonly at: number
  readonly dueAt: number
  missed: number
  missedSince: number | undefined
}

const deed = fc.oneof(
  // Most commits are punctual; some are late, or of a machine whose clock is wrong.
  fc.record({
    does: fc.constant('record' as const),
    lateMs: fc.integer({ min: -60_000, max: 400_000 }),
  }),
  fc.record({ does: fc.constant('deliver' as const), which: fc.nat(5) }),
  fc.record({ does: fc.constant('postpone' as const), which: fc.nat(5), ms: fc.nat(600_000) }),
  fc.record({
    does: fc.constant('look up' as const),
    afterMs: fc.nat(20_000),
    limit: fc.integer({ min: 1, max: 5 }),
  }),
)

describe('a look-up of due events with a lower bound', () => {
  test('misses an event at most nine times and for 30 s, and never one that is at most a minute late', () => {
    fc.assert(
      fc.property(fc.array(deed, { minLength: 20, maxLength: 150 }), (deeds) => {
        let now = 10_000_000
        const bounds = createDueBounds({ elapsedMs: () => now })
        let newest = Number.NEGATIVE_INFINITY
        let waiting: Waiting[] = []
        for (const each of deeds) {
          if (each.does === 'record') {
            const at = now - each.lateMs
            waiting.push({ at, dueAt: dueAtOnce(at), missed: 0, missedSince: undefined })
          } else if (each.does === 'deliver') {
            waiting = waiting.filter((_, index) => index !== each.which)
          } else if (each.does === 'postpone') {
            waiting = waiting.map((event, index) =>
              index === each.which ? { ...event, dueAt: now + each.ms } : event,
            )
          } else {
            now += each.afterMs
            const from = bounds.begin(0)
            const due = waiting
              .filter(({ dueAt }) => dueAt <= now)
              .toSorted((a, b) => a.dueAt - b.dueAt)
            const found = due
              .filter(({ dueAt }) => from === undefined || dueAt >= from)
              .slice(0, each.limit)
            bounds.found(
              0,
              from,
              found.map(({ at, dueAt }) => ({ event: { at }, dueAt }) as EventRecord),
            )
            // Older events are found first, so only those in front of an event count.
            for (const event of due.slice(0, each.limit)) {
              if (found.includes(event)) {
                event.missed = 0
                event.missedSince = undefined
                continue
              }
              expect(event.dueAt).toBeLessThan(newest - 60_000)
              event.missed += 1
              event.missedSince ??= now
              expect(event.missed).toBeLessThan(10)
              expect(now - event.missedSince).toBeLessThan(30_000)
            }
            newest = Math.max(newest, ...found.map(({ at }) => dueAtOnce(at)))
          }
        }
      }),
    )
  })

  test('begins a minute before the newest event that was seen, once all were delivered', () => {
    const bounds = createDueBounds({ elapsedMs: () => 0 })
    const at = 1_000_000
    expect(bounds.begin(3)).toBeUndefined()
    bounds.found(3, undefined, [{ event: { at }, dueAt: dueAtOnce(at) } as EventRecord])
    bounds.found(3, bounds.begin(3), [])
    expect(bounds.begin(3)).toBe(dueAtOnce(at) - 60_000)
    expect(bounds.begin(4)).toBeUndefined()
  })
})
