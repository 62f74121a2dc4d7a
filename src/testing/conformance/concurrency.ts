import {
  atOnce,
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  mustPut,
  put,
  record,
  type TestRecord,
  type Trial,
  type TrialStore,
  versionOf,
} from './trial.js'
import { countOf, loadExisting, numbered, repeatedly } from './workers.js'

export const concurrencyCases: readonly CaseDefinition[] = [
  {
    name: 'exactly one of 16 concurrent writers creates a record',
    rule: 2,
    search: true,
    check: (trial) => oneWins(trial, 1),
  },
  {
    name: 'exactly one of 16 concurrent writers replaces a version',
    rule: 2,
    search: true,
    check: (trial) => oneWins(trial, 2),
  },
  {
    name: 'a writer that loses a race leaves no trace in any other record',
    rule: 2,
    search: true,
    check: losersLeaveNoTrace,
  },
  {
    name: 'concurrent increments by 12 workers on one record lose no increment and no other record',
    rule: 2,
    search: true,
    check: (trial) => nothingIsLost(trial, [trial.store]),
  },
  {
    name: 'concurrent increments by 12 workers over two stores lose no increment and no other record',
    rule: 2,
    search: true,
    stores: 2,
    check: async (trial) => nothingIsLost(trial, [trial.store, await trial.another()]),
  },
  {
    name: 'exactly one of two stores that write one record concurrently succeeds',
    rule: 2,
    search: true,
    stores: 2,
    check: twoStoresOneWinner,
  },
]

async function oneWins({ store, namespace, rounds }: Trial, version: 1 | 2): Promise<void> {
  await rounds(2, async (round) => {
    const id = `${namespace}-${round}`
    if (version === 2) await mustPut(store, record(id))
    const writers = Array.from({ length: 16 }, (_, i) =>
      record(id, version, { commandId: `writer ${i}` }),
    )
    const outcomes = await Promise.all(writers.map((next) => put(store, next)))
    const winners = writers.filter((_, i) => outcomes[i] === true)
    const did = version === 1 ? 'created one record' : 'replaced one version of a record'
    demand(
      winners.length === 1,
      `16 writers concurrently ${did} and ${winners.length} commits returned true; expected exactly one`,
    )
    demandSame(
      await store.load(store.kind, id),
      winners[0],
      'the record after 16 concurrent writes',
    )
  })
}

async function twoStoresOneWinner({ store, namespace, another, rounds }: Trial): Promise<void> {
  const stores = [store, await another()] as const
  await rounds(2, async (round) => {
    const id = `${namespace}-${round}`
    for (const version of [1, 2]) {
      const outcomes = await atOnce(8, (i) =>
        put(stores[i % 2 === 0 ? 0 : 1], record(id, version, { commandId: `writer ${i}` })),
      )
      const winners = outcomes.filter(Boolean).length
      demand(
        winners === 1,
        `8 writers concurrently wrote version ${version} of one record over two stores and ${winners} ` +
          'commits returned true; expected exactly one',
      )
    }
  })
}

/** Each writer also creates a record of its own: in each round one of another kind. */
async function losersLeaveNoTrace({ store, namespace, others, rounds }: Trial): Promise<void> {
  await rounds(Math.max(2, others.length), async (round) => {
    const other = others[round % others.length]
    const id = (name: string | number) => `${namespace}-${round}-${name}`
    await mustPut(store, record(id('wanted')))
    const outcomes = await atOnce(6, (i) => {
      const own = change(record(id(i)), other)
      const wanted = change(record(id('wanted'), 2, { commandId: `writer ${i}` }))
      return commit(store, i % 2 === 0 ? [own, wanted] : [wanted, own])
    })
    const traces = await atOnce(6, async (i) => (await versionOf(store, id(i), other)) === 1)
    demandSame(
      traces,
      outcomes,
      'whether each of 6 writers finds its own new record (expected exactly for those whose commit ' +
        'returned true)',
    )
    const winners = outcomes.filter(Boolean).length
    demand(winners === 1, `${winners} of 6 writers replaced the same version; expected exactly one`)
  })
}

async function nothingIsLost(
  { namespace, searches, store: { kind, other } }: Trial,
  stores: readonly TrialStore[],
): Promise<void> {
  const [workers, increments] = [12, searches]
  const id = `${namespace}-counter`
  const storeOf = (worker: number) => stores[worker % stores.length] as TrialStore
  await mustPut(storeOf(0), record(id, 1, { commandId: numbered(0) }))

  await atOnce(workers, async (worker) => {
    const store = storeOf(worker)
    for (let i = 0; i < increments; i++) {
      await repeatedly(async () => {
        const current = await loadExisting(store, id)
        const commandId = numbered(current.version)
        const event = change(record(`${id}.${worker}.${i}`, 1, { commandId }), other)
        const next = record(id, current.version + 1, { commandId: numbered(countOf(current) + 1) })
        return commit(store, [change(next), event])
      })
    }
  })

  const total = workers * increments
  const counter = await loadExisting(storeOf(0), id)
  demandSame(
    { version: counter.version, count: countOf(counter) },
    { version: total + 1, count: total },
    `a ${kind} that counts ${total} successful commits, each of which added 1`,
  )
  const events = await atOnce(total, async (i) => {
    const event = `${id}.${i % workers}.${Math.floor(i / workers)}`
    return (await storeOf(0).load(other, event)) as TestRecord | undefined
  })
  const counted = events
    .map((event) => (event === undefined ? 0 : countOf(event)))
    .sort((a, b) => a - b)
  demandSame(
    counted,
    Array.from({ length: total }, (_, i) => i + 1),
    `the counter versions recorded by the events of ${total} commits, one event each (0: event lost)`,
  )
}
