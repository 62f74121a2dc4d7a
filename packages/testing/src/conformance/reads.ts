import { type RecordKey, type Stored, storeBounds } from 'open-payments-server/adapter'
import { demandSame } from './expectations.js'
import {
  atOnce,
  cases,
  guard,
  record,
  type TestRecord,
  type Trial,
  type TrialStore,
} from './trial.js'

const fresh = { rule: 3 } as const
const freshOfTwo = { rule: 3, stores: 2 } as const
const freshLists = { rule: 3, needs: { lists: 1 } } as const
const freshListsOfTwo = { rule: 3, needs: { lists: 1 }, stores: 2 } as const
const guards = { rule: 3, search: true } as const
const guardsOfTwo = { rule: 3, search: true, stores: 2 } as const
const methods = { rule: 1, needs: { lists: 1, due: true } } as const
const all = { rule: 'load' } as const
const own = { rule: 4 } as const

export const readCases = [
  cases(fresh, {
    'load sees a commit as soon as it has returned true': ofOne(loadSees),
    'load of several keys sees a commit as soon as it has returned true': ofOne(loadAllSees),
  }),
  cases(freshOfTwo, {
    'load from a second store sees a commit of the first as soon as it has returned true':
      ofTwo(loadSees),
    'load of several keys from a second store sees a commit of the first as soon as it has returned true':
      ofTwo(loadAllSees),
  }),
  cases(freshLists, {
    'list sees a commit as soon as it has returned true': ofOne(listSees),
  }),
  cases(freshListsOfTwo, {
    'list from a second store sees a commit of the first as soon as it has returned true':
      ofTwo(listSees),
  }),
  cases(guards, {
    'a guard sees a commit as soon as it has returned true': ofOne(guardSees),
  }),
  cases(guardsOfTwo, {
    'a guard of a second store sees a commit of the first as soon as it has returned true':
      ofTwo(guardSees),
  }),

  cases(methods, {
    async 'the methods of a store work without their object'(t) {
      const { load, commit, list, due, remove } = t.given
      const store = t.present({
        load: (keys) => load(keys),
        commit: (changes) => commit(changes),
        list: (query) => list(query),
        due: (kind, namespace, before, limit) => due(kind, namespace, before, limit),
        remove: (records) => remove(records),
      })
      const lists = [{ list: t.listName(), at: 1 }]
      const written = record(t.id('a'), 1, { dueAt: 1, lists })
      await store.mustPut(written)
      await store.finds(written, 'the record from load, called without its object')
      await store.lists(t.listName(), [written], 'the page from list, called without its object')
      await store.due(store.kind, t.namespace, 1, 5)
      await store.mustRemove(written.id, 1)
    },
  }),

  cases(all, {
    async 'load returns a record for each key, and undefined for none'(t) {
      const written = ['c', 'a', 'b'].map((name) => record(t.id(name)))
      await t.mustPut(...written)
      const expected: [RecordKey, Stored | undefined][] = [
        [{ kind: t.other, id: t.id('c') }, undefined],
        ...written.map((each): [RecordKey, Stored] => [keyOf(t.kind, each), each]),
        [{ kind: t.kind, id: t.id('d') }, undefined],
      ]
      await loadsAll(t, expected, 'the records of load, in the order of their keys')
      await loadsAll(t, expected.toReversed(), 'the records of load, in the reverse order')
    },

    async 'load takes the maximum number of keys, and each of them twice'(t) {
      const written = Array.from({ length: storeBounds.loadKeys / 2 }, (_, i) => record(t.id(i)))
      await t.mustPut(...written)
      const each = written.map((one) => [keyOf(t.kind, one), one] as const)
      await loadsAll(t, [...each, ...each], 'the records of load, each key twice')
      for (let count = 1; count < 12; count++) {
        await loadsAll(t, each.slice(0, count), `the records of load for ${count} keys`)
      }
    },
  }),

  cases(own, {
    async 'load of several keys returns values that share nothing with any other'(t) {
      const written = ['a', 'b'].map((name) => t.dress(record(t.id(name))))
      await t.bare.mustPut(...structuredClone(written))
      const expected = [...written, ...written]
      const keys = expected.map((each) => keyOf(t.kind, each))
      const load = async () => (await t.bare.load(keys)) as TestRecord[]
      const [mine, others] = [await load(), await load()]
      for (const each of mine.slice(0, 2)) Reflect.set(each, 'defaced', true)
      demandSame(mine.slice(2), written, 'a value from load after an equal one was changed')
      demandSame(others, expected, 'values from load after values of another call were changed')
      demandSame(await load(), expected, 'the records after values from load were changed')
    },
  }),
].flat()

type Sees = (t: Trial, reader: TrialStore) => Promise<void>

function ofOne(sees: Sees) {
  return (t: Trial) => sees(t, t)
}

function ofTwo(sees: Sees) {
  return async (t: Trial) => sees(t, await t.another())
}

async function loadSees(t: Trial, reader: TrialStore): Promise<void> {
  const ids = ['a', 'b', 'c'].map(t.id)
  for (let version = 1; version <= 4; version++) {
    await t.mustPut(...ids.map((id) => record(id, version)))
    demandSame(
      await reader.versions([...ids, ...ids]),
      [...ids, ...ids].map(() => version),
      'versions that six concurrent loads return right after a commit returned true',
    )
  }
}

async function loadAllSees(t: Trial, reader: TrialStore): Promise<void> {
  const ids = ['a', 'b', 'c'].map(t.id)
  for (let version = 1; version <= 4; version++) {
    const written = ids.map((id) => record(id, version))
    await t.mustPut(...written)
    const expected = written.map((each) => [keyOf(t.kind, each), each] as const)
    const what = 'the records of load right after a commit returned true'
    await atOnce(4, () => loadsAll(reader, expected, what))
  }
}

async function listSees(t: Trial, reader: TrialStore): Promise<void> {
  const expected: TestRecord[] = []
  for (let i = 0; i < 5; i++) {
    const next = record(t.id(i), 1, { lists: [{ list: t.listName(), at: 100 - i }] })
    await t.mustPut(next)
    expected.unshift(next)
    await reader.lists(t.listName(), expected, 'a list right after a commit returned true')
  }
  for (const { id } of [...expected]) {
    await t.mustPut(record(id, 2))
    expected.shift()
    await reader.lists(t.listName(), expected, 'a list right after a record was taken out of it')
  }
}

async function guardSees(t: Trial, reader: TrialStore): Promise<void> {
  await t.rounds(4, async (round) => {
    const id = t.id(round)
    for (const version of [1, 2, 3]) {
      await t.mustPut(record(id, version))
      const [now, before] = await Promise.all([
        reader.write([], [guard(id, version)]),
        version > 1 && reader.write([], [guard(id, version - 1)]),
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

function keyOf(kind: RecordKey['kind'], { id }: Stored): RecordKey {
  return { kind, id }
}

/** Loads and compares records; `undefined` is a record that must not exist. */
async function loadsAll(
  store: TrialStore,
  expected: readonly (readonly [RecordKey, Stored | undefined])[],
  what: string,
): Promise<void> {
  const found = await store.load(expected.map(([key]) => key))
  // A difference of JSON cannot tell undefined from a member that is absent.
  const shown = (records: readonly (Stored | undefined)[]) => records.map((each) => each ?? 'none')
  demandSame(shown(found), shown(expected.map(([, each]) => each)), what)
}
