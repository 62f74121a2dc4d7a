import { describe, expect, test } from 'vitest'
import type { RecordChange } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import type { EventRecord } from '../../src/service/event-record.js'
import type { ClaimRecord } from '../../src/service/events/claims.js'
import { loadOne, removeOne } from '../../test/support/one-record.js'
import { runs } from '../../test/support/runs.js'
import { die, live, plans, problemsOf } from './plans.js'
import type { Mistake, Plan } from './world.js'

describe.each(Object.entries<Plan>(plans))('%s', (_name, plan) => {
  test('each event is delivered in order, to one consumer at a time, and to another only after an accident', async () => {
    for (let seed = 1; seed <= runs(24, 1); seed++) {
      expect(problemsOf(plan, await live({ ...plan, seed: `${seed}` })), `seed ${seed}`).toEqual([])
    }
  })
})

/** Changes each change of an event that a process commits. */
function changing(change: (change: RecordChange) => RecordChange): Mistake {
  const store = (given: Store): Store => ({
    ...given,
    commit: ({ changes, guards }) =>
      given.commit({
        guards,
        changes: changes.map((each) => (each.kind === 'event' ? change(each) : each)),
      }),
  })
  return { store }
}

const isLease = ({ next }: RecordChange) => {
  const { attempts = 0, failedAt, setAsideAt } = next as Partial<EventRecord>
  return attempts > 0 && failedAt === undefined && setAsideAt === undefined
}

/** Acts after a commit that took effect. */
function afterwards(act: (store: Store, change: RecordChange) => Promise<unknown>): Mistake {
  const store = (given: Store): Store => ({
    ...given,
    async commit(commit) {
      const committed = await given.commit(commit)
      for (const change of committed ? commit.changes : []) await act(given, change)
      return committed
    },
  })
  return { store }
}

/** Answers with another version of the records that it loads. */
function loading(change: (record: EventRecord & ClaimRecord) => object): Mistake {
  const store = (given: Store): Store => ({
    ...given,
    async load(keys) {
      const found = await given.load(keys)
      return found.map((record) => record && (change(record as never) as typeof record))
    },
  })
  return { store }
}

async function remove(store: Store, id: string): Promise<void> {
  const found = await loadOne(store, 'event', id)
  if (found !== undefined) await removeOne(store, 'event', id, found.version)
}

/** Consumers that each break one rule, a plan in which this matters, and what is wrong then. */
const mistakes: readonly (readonly [
  fault: string,
  plan: Plan,
  mistake: Mistake,
  problem: RegExp,
])[] = [
  [
    'take a slice that another one holds',
    plans['with some slow handlers'],
    loading((record) => {
      const { holder: _holder, ...free } = record
      return record.started === undefined ? record : free
    }),
    / beside /,
  ],
  [
    'do not wait for the event before',
    plans['with handlers that fail'],
    { store: withoutPredecessors },
    /overtook/,
  ],
  [
    'acknowledge when they claim',
    plans['with handlers that fail'],
    afterwards(async (store, { next }) => {
      for (const id of (next as Partial<ClaimRecord>).started ?? []) await remove(store, id)
    }),
    /was not delivered/,
  ],
  [
    'give a slice back without leases for what still runs',
    plans['with some slow handlers'],
    changing((change) =>
      isLease(change)
        ? { ...change, next: { ...change.next, attempts: 0, dueAt: 0 } as EventRecord }
        : change,
    ),
    / beside /,
  ],
  [
    'lease without an end',
    { ...plans['with some slow handlers'], accidents: [die], withinMs: 400_000 },
    changing((change) => {
      const { dueAt: _dueAt, ...endless } = change.next
      return isLease(change) ? { ...change, next: endless } : change
    }),
    /was not delivered/,
  ],
  [
    'forget an event whose delivery has failed',
    plans['with handlers that fail'],
    afterwards(async (store, { next }) => {
      if ('failedAt' in next) await remove(store, next.id)
    }),
    /was not delivered/,
  ],
  [
    'never take the slice of a dead one',
    plans['with a consumer that dies'],
    loading((record) => (record.holder ? { ...record, commandId: newCommandId() } : record)),
    /was not delivered/,
  ],
  [
    'believe what a lagging query has found',
    plans['with a query for due events that lags'],
    { store: believing },
    /overtook| beside /,
  ],
  [
    'never look up events that became visible late',
    plans['with events at long intervals'],
    { store: alwaysBounded },
    /was not delivered/,
  ],
  [
    'begin a delivery long after their claim',
    { ...plans['with consumers that are paused'], latencyMs: 200 },
    { isBlindToPauses: true },
    /begun late/,
  ],
]

/** Sees no event that is not due. */
function withoutPredecessors(store: Store): Store {
  const known = new Set<string>()
  return {
    ...store,
    async due(...query) {
      const found = await store.due(...query)
      for (const { id } of found) known.add(id)
      return found
    },
    async load(keys) {
      const found = await store.load(keys)
      const isSeen = (id: string) => known.delete(id)
      return found.map((record) =>
        record && 'event' in record && !isSeen(record.id) ? undefined : record,
      )
    },
  }
}

/** Bounds each look-up as the one before. */
function alwaysBounded(store: Store): Store {
  const bounds = new Map<string, number>()
  return {
    ...store,
    async due(kind, namespace, before, limit, from = bounds.get(namespace)) {
      if (from !== undefined) bounds.set(namespace, from)
      return store.due(kind, namespace, before, limit, from)
    },
  }
}

let commands = 0
const newCommandId = () => String(++commands).padStart(22, '0')

/** Takes events as `due` has found them. */
function believing(store: Store): Store {
  const known = new Map<string, EventRecord>()
  return {
    ...store,
    async due(...query) {
      const found = await store.due(...query)
      for (const record of found) known.set(record.id, record as EventRecord)
      return found
    },
    async load(keys) {
      const found = await store.load(keys)
      return found.map((record, i) => {
        const before = known.get(keys[i]?.id ?? '')
        return record && 'event' in record ? before : record
      })
    },
  }
}

test.each(mistakes)('the laws find consumers that %s', async (_fault, plan, mistake, problem) => {
  const found: string[] = []
  for (let seed = 1; seed <= 40 && !found.some((each) => problem.test(each)); seed++) {
    const { problems, repeats } = await live({ ...plan, seed: `${seed}` }, mistake)
    found.push(...problems, ...(repeats > 0 ? ['repeated'] : []))
  }
  expect(found).toEqual(expect.arrayContaining([expect.stringMatching(problem)]))
})
