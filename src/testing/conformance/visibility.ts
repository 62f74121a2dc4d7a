import type { Store } from 'open-payments-server'
import { checkedStore } from './checked-store.js'
import {
  atOnce,
  type CaseDefinition,
  demand,
  demandSame,
  idsOf,
  mustPut,
  record,
  type Trial,
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
    stores: 2,
    check: async (trial) => listSees(trial, await trial.another()),
  },
  {
    name: 'the methods of a store work without their object',
    rule: 1,
    check: takenApart,
  },
]

async function loadSees({ store, namespace }: Trial, reader: Store): Promise<void> {
  const ids = ['a', 'b', 'c'].map((name) => `${namespace}-${name}`)
  for (let version = 1; version <= 20; version++) {
    await mustPut(store, ...ids.map((id) => record(id, version)))
    const seen = await atOnce(
      6,
      async (i) => (await reader.load('grant', ids[i % 3] ?? ''))?.version,
    )
    demandSame(
      seen,
      seen.map(() => version),
      'versions that six concurrent loads return right after a commit returned true',
    )
  }
}

async function listSees({ store, namespace }: Trial, reader: Store): Promise<void> {
  const wanted = `${namespace} list`
  const expected: string[] = []
  for (let i = 0; i < 16; i++) {
    const id = `${namespace}-${i}`
    await mustPut(store, record(id, 1, { lists: [{ list: wanted, at: -i }] }))
    expected.unshift(id)
    const page = await reader.list({ kind: 'grant', list: wanted, forward: true, limit: 50 })
    demandSame(idsOf(page.records), expected, 'ids in a list right after a commit returned true')
  }
  for (const id of [...expected]) {
    await mustPut(store, record(id, 2))
    expected.shift()
    const page = await reader.list({ kind: 'grant', list: wanted, forward: true, limit: 50 })
    demandSame(
      idsOf(page.records),
      expected,
      'ids in a list right after a record was taken out of it',
    )
  }
}

async function takenApart({ given, namespace }: Trial): Promise<void> {
  const { load, commit, list, due, remove } = given
  const store = checkedStore({
    load: (kind, id) => load(kind, id),
    commit: (all) => commit(all),
    list: (query) => list(query),
    due: (kind, own, before, limit) => due(kind, own, before, limit),
    remove: (kind, id, version) => remove(kind, id, version),
  })
  const wanted = `${namespace} list`
  const written = record(`${namespace}-a`, 1, { dueAt: 1, lists: [{ list: wanted, at: 1 }] })
  await mustPut(store, written)
  demandSame(
    await store.load('grant', written.id),
    written,
    'the record from load, called without its object',
  )
  const page = await store.list({ kind: 'grant', list: wanted, forward: true, limit: 5 })
  demandSame(
    page,
    { records: [written], more: false },
    'the page from list, called without its object',
  )
  await store.due('grant', namespace, 1, 5)
  demand(
    await store.remove('grant', written.id, 1),
    'remove, called without its object, did not return true',
  )
}
