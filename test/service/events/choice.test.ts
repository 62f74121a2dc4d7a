import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type EventRecord,
  isInDelivery,
  isPending,
  placeOf,
  predecessorOf,
} from '../../../src/service/event-record.js'
import {
  behindOwn,
  chooseRuns,
  decideReady,
  decisiveIds,
} from '../../../src/service/events/choice.js'
import { startOfTests as now } from '../../support/clock.js'
import { runs } from '../../support/runs.js'

const streams = ['a', 'b', 'c']
const streamOf = (name: string) => `names000${name}.quote`
const markOf = (place: number) => `${String(place).padStart(4, '0')}.command.sum`
const idOf = (name: string, place: number) => `${streamOf(name)}.${markOf(place)}`
const ids = (events: readonly EventRecord[]) => events.map(({ id }) => id)

/** How an event is stored. */
type Condition = Partial<
  Pick<EventRecord, 'attempts' | 'failedAt' | 'dueAt' | 'notBefore' | 'setAsideAt'>
>

function eventOf(name: string, place: number, condition: Condition = {}): EventRecord {
  const after = place === 1 ? {} : { after: markOf(place - 1) }
  const base = { version: 1, commandId: 'command', attempts: 0, dueAt: now - 1_000, ...after }
  return { id: idOf(name, place), ...base, ...condition } as unknown as EventRecord
}

const condition: fc.Arbitrary<Condition> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  fc.constant({ attempts: 1, failedAt: now - 500 }),
  fc.constant({ attempts: 1, failedAt: now - 500, dueAt: now + 500 }),
  fc.constant({ attempts: 1, dueAt: now - 1 }),
  fc.constant({ attempts: 1, dueAt: now }),
  fc.constant({ attempts: 1, dueAt: now + 60_000 }),
  fc.constant({ dueAt: now, notBefore: now }),
  fc.constant({ dueAt: now + 700, notBefore: now + 700 }),
  fc.constant({ setAsideAt: now - 1, attempts: 9 }),
)

/** Some events of some records, in any order. */
const events = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom(...streams),
      place: fc.integer({ min: 1, max: 6 }),
      condition,
    }),
    { selector: ({ name, place }) => idOf(name, place), maxLength: 14 },
  )
  .map((some) => some.map(({ name, place, condition }) => eventOf(name, place, condition)))

const occupation = fc.record({
  streams: fc.subarray(streams).map((some) => new Set(some.map(streamOf))),
  isBusy: fc.boolean(),
  room: fc.integer({ min: 0, max: 10 }),
  runMax: fc.integer({ min: 1, max: 4 }),
})

const all = { numRuns: runs(5_000) }

describe('the chosen events', () => {
  test('of each record that has none in delivery are its first, without a gap', () => {
    fc.assert(
      fc.property(events, occupation, (due, given) => {
        for (const run of chooseRuns(due, given)) {
          const [first] = run as [EventRecord]
          const { stream } = placeOf(first.id)
          const own = due.filter(({ id }) => placeOf(id).stream === stream)
          expect(given.streams).not.toContain(stream)
          expect(placeOf(first.id).place).toBe(Math.min(...own.map(({ id }) => placeOf(id).place)))
          for (const [i, record] of run.slice(1).entries()) {
            expect(predecessorOf(record)).toBe(run[i]?.id)
          }
        }
      }),
      all,
    )
  })

  test('are as many as may be taken, and one alone if it may have ended a process', () => {
    fc.assert(
      fc.property(events, occupation, (due, given) => {
        const free = due.filter(({ id }) => !given.streams.has(placeOf(id).stream))
        const first = (name: string) =>
          free
            .filter(({ id }) => placeOf(id).stream === name)
            .toSorted((a, b) => placeOf(a.id).place - placeOf(b.id).place)[0]
        const heads = streams.map(streamOf).flatMap((stream) => first(stream) ?? [])
        const chosen = chooseRuns(due, given)
        if (heads.some(isInDelivery)) {
          expect(chosen.flat()).toHaveLength(given.isBusy ? 0 : 1)
          expect(chosen.flat().every(isInDelivery)).toBe(true)
          return
        }
        const everything = chooseRuns(due, { ...given, room: 100, runMax: 100 })
        expect(everything).toHaveLength(heads.length)
        const most = everything.flatMap((run) => run.slice(0, given.runMax))
        expect(ids(chosen.flat())).toEqual(ids(most.slice(0, given.room)))
        expect(chosen).not.toContainEqual([])
      }),
      all,
    )
  })

  test('are decided upon with the events before them', () => {
    const run = [eventOf('a', 2), eventOf('a', 3)]
    expect(decisiveIds([run, [eventOf('b', 1)]])).toEqual([
      idOf('a', 1),
      idOf('a', 2),
      idOf('a', 3),
      idOf('b', 1),
    ])
  })
})

/** A run of events of one record as they were found, what is found besides, and how all of them are stored now. */
const found = fc
  .record({
    from: fc.integer({ min: 1, max: 3 }),
    length: fc.integer({ min: 1, max: 4 }),
    stored: fc.array(fc.option(condition, { nil: undefined }), { minLength: 8, maxLength: 8 }),
    more: fc.integer({ min: 0, max: 2 }),
  })
  .map(({ from, length, stored, more }) => {
    const current = new Map<string, EventRecord>()
    for (const [i, each] of stored.entries()) {
      if (each !== undefined) current.set(idOf('a', i + 1), eventOf('a', i + 1, each))
    }
    const due = Array.from({ length: length + more }, (_, i) => eventOf('a', from + i))
    return { run: due.slice(0, length), due: [...due, eventOf('b', 1)], current }
  })

const isEarly = ({ attempts, dueAt = 0, notBefore = 0 }: EventRecord) =>
  notBefore > now || (attempts > 0 && dueAt > now)

describe('of events that were loaded', () => {
  test('the pending ones are delivered up to the first that is too early, unless one before them is pending', () => {
    fc.assert(
      fc.property(found, ({ run, due, current }) => {
        const pending = run.flatMap(({ id }) => current.get(id) ?? []).filter(isPending)
        const before = current.get(predecessorOf(run[0] as EventRecord) ?? '')
        const isBlocked = before !== undefined && isPending(before)
        const early = pending.findIndex(isEarly)
        const end = early === -1 ? pending.length : early
        const ready = decideReady(run, due, current, now)
        expect(ready.run).toEqual(isBlocked ? [] : pending.slice(0, end))
      }),
      all,
    )
  })

  test('those behind one that waits wait as long, or a second for the end of a delivery', () => {
    fc.assert(
      fc.property(found, ({ run, due, current }) => {
        const ready = decideReady(run, due, current, now)
        const pending = run.flatMap(({ id }) => current.get(id) ?? []).filter(isPending)
        const before = current.get(predecessorOf(run[0] as EventRecord) ?? '')
        const isBlocked = before !== undefined && isPending(before)
        const head = isBlocked ? before : pending[ready.run.length]
        if (head === undefined) {
          expect(ready.behind).toEqual([])
          return
        }
        const { dueAt = now, notBefore = 0 } = head
        const until = isInDelivery(head) ? now + 1_000 : Math.max(dueAt, notBefore)
        const behind = [
          ...pending.filter(({ id }) => placeOf(id).place > placeOf(head.id).place),
          ...due.slice(run.length, -1),
        ]
        expect(ready.behind).toEqual(behind.map((record) => ({ record, until })))
      }),
      all,
    )
  })
})

test('events behind a delivery that has a lease wait for a second, and no others', () => {
  const inDelivery = new Map([
    [idOf('a', 1), { isLeased: true }],
    [idOf('b', 1), { isLeased: false }],
  ])
  const due = [
    eventOf('a', 1),
    ...[2, 3].map((place) => eventOf('a', place)),
    eventOf('b', 2),
    eventOf('c', 1),
  ]
  expect(behindOwn(due, inDelivery, now)).toEqual([
    { record: due[1], until: now + 1_000 },
    { record: due[2], until: now + 1_000 },
  ])
})
