import fc from 'fast-check'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  endOfWindows,
  parseInterval,
  type RepeatingInterval,
  windowAt,
} from '../../src/core/interval.js'
import { made } from '../support/intervals.js'
import { runs } from '../support/runs.js'

const calendar = vi.hoisted(() => ({ questions: 0 }))

vi.mock('date-fns/addMonths', async (load) => {
  const module = await load<typeof import('date-fns/addMonths')>()
  const addMonths: typeof module.addMonths = (...parameters) => {
    calendar.questions += 1
    return module.addMonths(...parameters)
  }
  return { ...module, addMonths }
})

const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

function read(text: string): RepeatingInterval {
  const parsed = parseInterval(text)
  if (!parsed.ok) throw new Error(`${text} ${parsed.problem}`)
  return parsed.value
}

describe('the calendar', () => {
  beforeEach(() => {
    calendar.questions = 0
  })

  test.each(['R/1970-01-01T00:00:00Z/PT1S', 'R/1970-01-01T00:00:00Z/1970-01-01T00:00:00.001Z'])(
    'is not asked for a window of exact length, however distant: %s',
    (text) => {
      expect(windowAt(read(text), lastInstant)?.end).toBe(lastInstant + 1)
      expect(calendar.questions).toBe(0)
    },
  )

  test('is asked a few times for a window of months, however many have passed', () => {
    expect(windowAt(read('R/1970-01-30T23:59:00Z/P1M'), lastInstant)).toBeDefined()
    expect(calendar.questions).toBeGreaterThan(0)
    fc.assert(
      fc.property(made, fc.integer({ min: 0, max: lastInstant }), ({ text }, when) => {
        calendar.questions = 0
        windowAt(read(text), when)
        endOfWindows(read(text))
        expect(calendar.questions).toBeLessThanOrEqual(5)
      }),
      { numRuns: runs(5_000) },
    )
  })
})
