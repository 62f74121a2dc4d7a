import type { RecordKind } from 'open-payments-server'
import {
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  guard,
  kinds,
  mustCommit,
  mustPut,
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
    check: keepsLongIds,
  },
  {
    name: 'an id of one character is valid',
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
  const records = endings.map((ending) => record(`${namespace}${ending}`, 1, { ending }))
  const unwritten = ['b', 'B', 'Aa', 'aA', 'hasOwnProperty'].map(
    (ending) => `${namespace}${ending}`,
  )
  for (const next of records) await mustPut(store, next)
  for (const next of records) {
    demandSame(await store.load('grant', next.id), next, `the record with the id ${show(next.id)}`)
  }
  for (const id of [...unwritten, `${namespace.slice(0, -1)}`]) {
    const found = await store.load('grant', id)
    demand(
      found === undefined,
      `load returned ${show(found)} for the id ${show(id)}, which was never written; compare ids byte for byte`,
    )
  }
  for (const next of records) await mustPut(store, { ...next, version: 2 })
  for (const { id } of records) {
    demand(
      await store.remove('grant', id, 2),
      `remove of ${show(id)} at its version did not return true`,
    )
    demand((await versionOf(store, id)) === 0, `${show(id)} still exists after its removal`)
  }
}

async function knowsKindAndId({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-same`
  const at = (kind: RecordKind, version: number) => record(id, version, { of: kind })
  for (const kind of kinds) {
    demand(
      (await store.load(kind, id)) === undefined,
      `a record of kind ${kind} exists although only records of other kinds with its id were written`,
    )
    await mustCommit(store, [change(at(kind, 1), kind)])
  }
  for (const [i, kind] of kinds.entries()) {
    for (let version = 2; version <= i + 1; version++) {
      await mustCommit(store, [change(at(kind, version), kind)])
    }
  }
  for (const [i, kind] of kinds.entries()) {
    const found = await store.load(kind, id)
    demandSame(
      found,
      at(kind, i + 1),
      `the record of kind ${kind}, one of several with the same id`,
    )
  }
  await mustCommit(
    store,
    [],
    kinds.map((kind, i) => guard(id, i + 1, kind)),
  )
  const version = kinds.indexOf('transfer') + 1
  demand(
    await store.remove('transfer', id, version),
    'remove at the stored version did not return true',
  )
  for (const [i, kind] of kinds.entries()) {
    const expected = kind === 'transfer' ? undefined : at(kind, i + 1)
    demandSame(
      { record: await store.load(kind, id) },
      { record: expected },
      `the record of kind ${kind} after the transfer with the same id was removed`,
    )
  }
}

async function keepsLongIds({ store, namespace }: Trial): Promise<void> {
  const start = `${namespace}${'-_.Za0'.repeat(20)}`.slice(0, 127)
  const wanted = `${namespace} list`
  const records = ['a', 'b', 'A'].map((ending) =>
    record(`${start}${ending}`, 1, { lists: [{ list: wanted, at: 1 }] }),
  )
  for (const next of records) await mustPut(store, next)
  for (const next of records) {
    demandSame(await store.load('grant', next.id), next, 'a record with an id of 128 characters')
  }
  const cut = await store.load('grant', start)
  demand(cut === undefined, `the first 127 characters of an id of 128 found a record: ${show(cut)}`)
  const [a, b, upper] = records
  const page = await store.list({ kind: 'grant', list: wanted, forward: true, limit: 10 })
  demandSame(
    page.records,
    [upper, a, b],
    'a list of ids of 128 characters that differ in the last one',
  )
}

/** One-character ids have no namespace: concurrent runs of this case share them, so it retries. */
async function keepsShortIds({ store, namespace }: Trial): Promise<void> {
  for (const id of ['.', '-', '_', '0', 'Z', 'z']) {
    let problem = 'commit never returned true'
    let kept = false
    for (let attempts = 0; attempts < 50 && !kept; attempts++) {
      const version = (await versionOf(store, id, 'transfer')) + 1
      const next = record(id, version, { commandId: `${namespace} ${attempts}` })
      if ((await commit(store, [change(next, 'transfer')])) !== true) continue
      const found = await store.load('transfer', id)
      kept = found?.commandId === next.commandId
      problem = `commit returned true for ${show(next)}, and load then returned ${show(found)}`
      await store.remove('transfer', id, version)
    }
    demand(kept, `in 50 attempts the record with the id ${show(id)} was not kept: ${problem}`)
  }
}
