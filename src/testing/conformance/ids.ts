import type { RecordKind } from 'open-payments-server'
import {
  type CaseDefinition,
  change,
  demand,
  demandSame,
  guard,
  kinds,
  mustCommit,
  mustPut,
  mustRemove,
  record,
  show,
  type Trial,
  versionOf,
} from './trial.js'

export const idCases: readonly CaseDefinition[] = [
  {
    name: 'ids that differ in one byte are different records',
    rule: 'ids',
    check: differsByByte,
  },
  {
    name: 'kind and id together identify a record',
    rule: 'ids',
    check: knowsKindAndId,
  },
  {
    name: 'an id of 128 characters is stored in full',
    rule: 'ids',
    needs: { lists: 1 },
    check: keepsLongIds,
  },
  {
    name: 'an id of 8 characters is valid',
    rule: 'ids',
    check: keepsShortIds,
  },
]

async function differsByByte({ store, namespace }: Trial): Promise<void> {
  const endings = [
    'a',
    'A',
    'a.',
    'a..',
    '.a',
    'a-',
    'a_',
    'a0',
    '0a',
    'a00',
    'aa',
    '',
    '.',
    '-',
    '_',
  ]
  endings.push('__proto__', 'constructor', 'toString', 'null', 'NULL', 'I', 'i', '1e3', '1000')
  const records = endings.map((ending) => record(`${namespace}${ending}`))
  const unwritten = ['b', 'B', 'Aa', 'aA', 'hasOwnProperty'].map(
    (ending) => `${namespace}${ending}`,
  )
  const unwrittenToo = [...unwritten, `${namespace.slice(0, -1)}`]
  await Promise.all(records.map((next) => mustPut(store, next)))
  await Promise.all(
    records.map(async (next) => {
      const found = await store.load(store.kind, next.id)
      demandSame(found, next, `the record with the id ${show(next.id)}`)
    }),
  )
  await Promise.all(
    unwrittenToo.map(async (id) => {
      const found = await store.load(store.kind, id)
      demand(
        found === undefined,
        `load returned ${show(found)} for the id ${show(id)}, which was never written; compare ids byte for byte`,
      )
    }),
  )
  await Promise.all(records.map(({ id }) => mustPut(store, record(id, 2))))
  await Promise.all(
    records.map(async ({ id }) => {
      await mustRemove(store, id, 2)
      demand((await versionOf(store, id)) === 0, `${show(id)} still exists after its removal`)
    }),
  )
}

async function knowsKindAndId({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-same`
  const others = kinds.filter((kind) => kind !== store.kind)
  const at = (kind: RecordKind, version: number) =>
    record(id, version, { commandId: `${kind} ${version}` })
  await mustCommit(
    store,
    others.map((kind) => change(at(kind, 1), kind)),
  )
  const absent = await store.load(store.kind, id)
  demand(
    absent === undefined,
    `a ${store.kind} exists although only records of other kinds with its id were written`,
  )
  await mustCommit(store, [change(at(store.kind, 1))])
  await mustCommit(store, [change(at(store.kind, 2))])
  const demandAll = (own: unknown, when: string) =>
    Promise.all(
      kinds.map(async (kind) => {
        const expected = kind === store.kind ? own : at(kind, 1)
        demandSame(
          { record: await store.load(kind, id) },
          { record: expected },
          `the ${kind} ${when}`,
        )
      }),
    )
  await demandAll(at(store.kind, 2), 'of eight records with the same id')
  const guards = others.map((kind) => guard(id, 1, kind))
  await mustCommit(store, [], [...guards, guard(id, 2)])
  await mustRemove(store, id, 2)
  await demandAll(undefined, `after the ${store.kind} with the same id was removed`)
}

async function keepsLongIds({ store, namespace }: Trial): Promise<void> {
  const start = `${namespace}${'-_.Za0'.repeat(20)}`.slice(0, 127)
  const wanted = `${namespace} list`
  const records = ['a', 'b', 'A'].map((ending) =>
    record(`${start}${ending}`, 1, { lists: [{ list: wanted, at: 1 }] }),
  )
  for (const next of records) await mustPut(store, next)
  for (const next of records) {
    demandSame(await store.load(store.kind, next.id), next, 'a record with an id of 128 characters')
  }
  const cut = await store.load(store.kind, start)
  demand(cut === undefined, `the first 127 characters of an id of 128 found a record: ${show(cut)}`)
  const [a, b, upper] = records
  const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 10 })
  demandSame(
    page.records,
    [upper, a, b],
    'a list of ids of 128 characters that differ in the last one',
  )
}

/** The shortest id is the namespace of its server. */
async function keepsShortIds({ store, namespace }: Trial): Promise<void> {
  const written = record(namespace)
  await mustPut(store, written, record(`${namespace}.`))
  demandSame(
    await store.load(store.kind, namespace),
    written,
    'a record with an id of 8 characters',
  )
  await mustRemove(store, namespace, 1)
  demand((await versionOf(store, namespace)) === 0, 'a record still exists after its removal')
  demand((await versionOf(store, `${namespace}.`)) === 1, 'the record with a longer id is gone')
}
