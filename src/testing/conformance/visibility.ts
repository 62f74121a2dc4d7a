import {
  atOnce,
  type CaseDefinition,
  commit,
  demand,
  demandSame,
  guard,
  idsOf,
  mustPut,
  record,
  type Trial,
  type TrialStore,
} from './trial.js'

export const visibilityCases: readonly CaseDefinition[] = [
  {
    name: 'load sees a commit as soon as it has returned true',
    rule: 3,
    check: async (trial) => loadSees(trial, trial.store),
  },
  {
    name: 'list sees a commit as soon as it has returned true',
    rule: 3,
    needs: { lists: 1 },
    check: async (trial) => listSees(trial, trial.store),
  },
  {
    name: 'load from a second store sees a commit of the first as soon as it has returned true',
    rule: 3,
    stores: 2,
    check: async (trial) => loadSees(trial, await trial.another()),
  },
  {
    name: 'list from a second store sees a commit of the first as soon as it has returned true',
    rule: 3,
    needs: { lists: 1 },
    stores: 2,
    check: async (trial) => listSees(trial, await trial.another()),
  },
  {
    name: 'a guard sees a commit as soon as it has returned true',
    rule: 3,
    search: true,
    check: async (trial) => guardSees(trial, trial.store),
  },
  {
    name: 'a guard of a second store sees a commit of the first as soon as it has returned true',
    rule: 3,
    search: true,
    stores: 2,
    check: async (trial) => guardSees(trial, await trial.another()),
  },
  {
    name: 'the methods of a store work without their object',
    rule: 1,
    needs: { lists: 1, due: true },
    check: takenApart,
  },
]

async function loadSees({ store, namespace }: Trial, reader: TrialStore): Promise<void> {
  const ids = ['a', 'b', 'c'].map((name) => `${namespace}-${name}`)
  for (let version = 1; version <= 4; version++) {
    await mustPut(store, ...ids.map((id) => record(id, version)))
    const seen = await atOnce(
      6,
      async (i) => (await reader.load(reader.kind, ids[i % 3] ?? ''))?.version,
    )
    demandSame(
      seen,
      seen.map(() => version),
      'versions that six concurrent loads return right after a commit returned true',
    )
  }
}

async function listSees({ store, namespace }: Trial, reader: TrialStore): Promise<void> {
  const wanted = `${namespace} list`
  const expected: string[] = []
  for (let i = 0; i < 5; i++) {
    const id = `${namespace}-${i}`
    await mustPut(store, record(id, 1, { lists: [{ list: wanted, at: 100 - i }] }))
    expected.unshift(id)
    const page = await reader.list({ kind: store.kind, list: wanted, forward: true, limit: 50 })
    demandSame(idsOf(page.records), expected, 'ids in a list right after a commit returned true')
  }
  for (const id of [...expected]) {
    await mustPut(store, record(id, 2))
    expected.shift()
    const page = await reader.list({ kind: store.kind, list: wanted, forward: true, limit: 50 })
    demandSame(
      idsOf(page.records),
      expected,
      'ids in a list right after a record was taken out of it',
    )
  }
}

async function guardSees({ store, namespace, rounds }: Trial, reader: TrialStore): Promise<void> {
  await rounds(4, async (round) => {
    const id = `${namespace}-${round}`
    for (const version of [1, 2, 3]) {
      await mustPut(store, record(id, version))
      const [now, before] = await Promise.all([
        commit(reader, [], [guard(id, version)]),
        version === 1 ? false : commit(reader, [], [guard(id, version - 1)]),
      ])
      demandSame(
        { now, before },
        { now: true, before: false },
        `commits of one guard alone, right after a commit of version ${version} returned true (now: on this ` +
          'version; before: on the one before)',
      )
    }
  })
}

async function takenApart({ given, present, namespace }: Trial): Promise<void> {
  const { load, commit, list, due, remove, loadAll } = given
  const store = present({
    load: (kind, id) => load(kind, id),
    commit: (all) => commit(all),
    list: (query) => list(query),
    due: (kind, own, before, limit) => due(kind, own, before, limit),
    remove: (kind, id, version) => remove(kind, id, version),
    ...(loadAll && { loadAll: (keys) => loadAll(keys) }),
  })
  const wanted = `${namespace} list`
  const written = record(`${namespace}-a`, 1, { dueAt: 1, lists: [{ list: wanted, at: 1 }] })
  await mustPut(store, written)
  demandSame(
    await store.load(store.kind, written.id),
    written,
    'the record from load, called without its object',
  )
  const key = { kind: store.kind, id: written.id }
  const all = await store.loadAll?.([key, key])
  demandSame(
    all ?? [written, written],
    [written, written],
    'the records from loadAll, called without its object',
  )
  const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 5 })
  demandSame(
    page,
    { records: [written], more: false },
    'the page from list, called without its object',
  )
  await store.due(store.kind, namespace, 1, 5)
  demand(
    await store.remove(store.kind, written.id, 1),
    'remove, called without its object, did not return true',
  )
}
