import { type RecordKey, type Stored, storeBounds } from 'open-payments-server'
import {
  atOnce,
  type CaseDefinition,
  demandSame,
  mustPut,
  record,
  type TestRecord,
  type Trial,
  type TrialStore,
} from './trial.js'

/** The cases of the optional method. They pass on a store without it. */
export const loadAllCases: readonly CaseDefinition[] = [
  {
    name: 'loadAll, if there is one, returns a record for each key, and undefined for one that does not exist',
    rule: 'loadAll',
    check: answersEachKey,
  },
  {
    name: 'loadAll, if there is one, takes the greatest number of keys, and each of them more than once',
    rule: 'loadAll',
    check: takesManyKeys,
  },
  {
    name: 'loadAll, if there is one, sees a commit as soon as it has returned true',
    rule: 3,
    check: (trial) => seesCommits(trial, trial.store),
  },
  {
    name: 'loadAll of a second store, if there is one, sees a commit of the first as soon as it has returned true',
    rule: 3,
    stores: 2,
    check: async (trial) => seesCommits(trial, await trial.another()),
  },
  {
    name: 'loadAll, if there is one, returns values that share nothing with the store or each other',
    rule: 4,
    check: sharesNothing,
  },
]

/** Loads and compares records of one kind, if the store can; `undefined` is a record that must not exist. */
async function demandAll(
  store: TrialStore,
  expected: readonly (readonly [RecordKey, Stored | undefined])[],
  what: string,
): Promise<void> {
  const found = await store.loadAll?.(expected.map(([key]) => key))
  if (found === undefined) return
  // A difference of JSON cannot tell undefined from a member that is absent.
  const shown = (records: readonly (Stored | undefined)[]) => records.map((each) => each ?? 'none')
  demandSame(shown(found), shown(expected.map(([, each]) => each)), what)
}

function keyOf(kind: RecordKey['kind'], { id }: Pick<Stored, 'id'>): RecordKey {
  return { kind, id }
}

async function answersEachKey({ store, namespace }: Trial): Promise<void> {
  const { kind, other } = store
  const written = ['c', 'a', 'b'].map((name) => record(`${namespace}-${name}`))
  await mustPut(store, ...written)
  const present = written.map((each) => [keyOf(kind, each), each] as const)
  const expected = [
    [keyOf(other, { id: `${namespace}-c` }), undefined] as const,
    ...present,
    [keyOf(kind, { id: `${namespace}-d` }), undefined] as const,
  ]
  await demandAll(store, expected, 'the records of loadAll, in the order of their keys')
  await demandAll(store, expected.toReversed(), 'the records of loadAll, in the reverse order')
}

async function takesManyKeys({ store, namespace }: Trial): Promise<void> {
  const written = Array.from({ length: storeBounds.loadAllKeys / 2 }, (_, i) =>
    record(`${namespace}-${i}`),
  )
  const half = Math.ceil(written.length / 2)
  await mustPut(store, ...written.slice(0, half))
  await mustPut(store, ...written.slice(half))
  const each = written.map((one) => [keyOf(store.kind, one), one] as const)
  await demandAll(store, [...each, ...each], 'the records of loadAll, each key twice')
  for (let count = 2; count < 12; count++) {
    await demandAll(store, each.slice(0, count), `the records of loadAll for ${count} keys`)
  }
}

async function seesCommits({ store, namespace }: Trial, reader: TrialStore): Promise<void> {
  const ids = ['a', 'b', 'c'].map((name) => `${namespace}-${name}`)
  for (let version = 1; version <= 4; version++) {
    const written = ids.map((id) => record(id, version))
    await mustPut(store, ...written)
    const expected = written.map((each) => [keyOf(reader.kind, each), each] as const)
    await atOnce(4, () =>
      demandAll(reader, expected, 'the records of loadAll right after a commit returned true'),
    )
  }
}

async function sharesNothing({ bare: store, dress, namespace }: Trial): Promise<void> {
  const written = ['a', 'b'].map((name) => dress(record(`${namespace}-${name}`)))
  await mustPut(store, ...structuredClone(written))
  const keys = [...written, ...written].map((each) => keyOf(store.kind, each))
  const load = async () => (await store.loadAll?.(keys)) as TestRecord[] | undefined
  const [mine, others] = [await load(), await load()]
  if (mine === undefined) return
  for (const each of mine.slice(0, 2)) Reflect.set(each, 'defaced', true)
  const expected = [...written, ...written]
  demandSame(mine.slice(2), written, 'a value from loadAll after an equal one was changed')
  demandSame(others, expected, 'values from loadAll after those of another call were changed')
  demandSame(await load(), expected, 'the records after values from loadAll were changed')
}
