import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/index.js'
import type { EventRecord } from '../../src/service/event-record.js'
import { runs, some } from '../../test/support/runs.js'
import { live, plans, problemsOf } from './plans.js'
import type { Mistake, Plan } from './world.js'

describe.each(Object.entries<Plan>(plans))('%s', (_name, plan) => {
  test('each event is delivered in order, to one consumer at a time, and to another only after an accident', async () => {
    for (let seed = 1; seed <= runs(24, 1); seed++) {
      expect(problemsOf(plan, await live({ ...plan, seed: `${seed}` })), `seed ${seed}`).toEqual([])
    }
  })
})

/** Processes that each break one rule which the model of the step does not know. */
const mistakes: readonly (readonly [
  fault: string,
  plan: Plan,
  mistake: Mistake,
  problem: RegExp,
])[] = [
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

test.each(some(mistakes))(
  'the laws find consumers that %s',
  async (_fault, plan, mistake, problem) => {
    const found: string[] = []
    for (let seed = 1; seed <= 40 && !found.some((each) => problem.test(each)); seed++) {
      const { problems, repeats } = await live({ ...plan, seed: `${seed}` }, mistake)
      found.push(...problems, ...(repeats > 0 ? ['repeated'] : []))
    }
    expect(found).toEqual(expect.arrayContaining([expect.stringMatching(problem)]))
  },
)
