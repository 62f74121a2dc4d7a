import { expect, test } from 'vitest'
import { memoryStore, type RecordKind, type Store, type Stored } from '../../../src/index.js'
import { clockWatch } from '../../../src/service/mechanism/clock-watch.js'
import { manualClock } from '../../support/clock.js'

const now = 1_800_000_000_000
const namespace = 'abcdefgh'

async function setUp(kind: RecordKind, more: object) {
  const clock = manualClock(now)
  const reports: unknown[] = []
  const memory = memoryStore()
  const next = {
    ...{ id: `${namespace}-1`, version: 1, commandId: 'c'.repeat(22) },
    ...{ dueAt: 1, lists: [{ list: 'one', at: 1 }], ...more },
  }
  await memory.commit({ changes: [{ kind, next, expectedVersion: 0 }], guards: [] })
  const store = clockWatch(memory, clock, (error) => reports.push(error.message))
  return { store, next, reports }
}

type Read = (store: Store, kind: RecordKind, record: Stored) => Promise<unknown>

const reads: readonly (readonly [string, Read])[] = [
  ['load', (store, kind, { id }) => store.load(kind, id)],
  ['loadAll', (store, kind, { id }) => store.loadAll?.([{ kind, id }]) ?? Promise.resolve()],
  ['list', (store, kind) => store.list({ kind, list: 'one', forward: true, limit: 1 })],
  ['due', (store, kind) => store.due(kind, namespace, 1, 1)],
]

test.each(reads)('%s of a record from the future is reported', async (_, read) => {
  const { store, next, reports } = await setUp('quote', { createdAt: now + 120_001 })
  expect(JSON.stringify(await read(store, 'quote', next))).toContain(next.id)
  expect(reports).toEqual(['a record (quote) is dated 120001 ms ahead of this clock'])
})

test.each([
  ['an event that happened then', 'event', { event: { at: now + 120_001 } }, 1],
  ['a payment that expires then', 'incoming-payment', { createdAt: now, expiresAt: now * 2 }, 0],
  ['a nonce, which has no time', 'nonce', { retainUntil: now * 2 }, 0],
] as const)(
  '%s: %s is compared by the time at which it was written',
  async (_, kind, more, count) => {
    const { store, next, reports } = await setUp(kind, more)
    await store.load(kind, next.id)
    expect(reports).toHaveLength(count)
  },
)
