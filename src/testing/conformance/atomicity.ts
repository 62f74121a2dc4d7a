import {
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  kinds,
  mustCommit,
  mustPut,
  mustRemove,
  put,
  record,
  show,
  type Trial,
  versionOf,
  versionsOf,
} from './trial.js'

export const atomicityCases: readonly CaseDefinition[] = [
  {
    name: 'a commit creates a record that does not exist exactly once',
    rule: 1,
    check: createsOnce,
  },
  {
    name: 'a commit replaces only the version that it expects',
    rule: 1,
    check: replacesExpected,
  },
  {
    name: 'a commit that replaces a record that does not exist fails and creates nothing',
    rule: 1,
    check: replacesNothing,
  },
  {
    name: 'a commit that replaces a removed record fails and does not restore it',
    rule: 1,
    check: resurrectsNothing,
  },
  {
    name: 'a removed record can be created again and behaves like a new one',
    rule: 1,
    check: createsAgain,
  },
  {
    name: 'a commit replaces the whole record, including members that the next version lacks',
    rule: 1,
    needs: { lists: 1, due: true },
    check: replacesWhole,
  },
  {
    name: 'a commit writes records of every kind together',
    rule: 1,
    check: writesEveryKind,
  },
  {
    name: 'a commit with one creation that fails writes nothing, wherever the creation stands',
    rule: 1,
    check: (trial) => losesAll(trial, 'creation'),
  },
  {
    name: 'a commit with one replacement that fails writes nothing, wherever the replacement stands',
    rule: 1,
    check: (trial) => losesAll(trial, 'replacement'),
  },
  {
    name: 'an empty commit succeeds',
    rule: 1,
    check: async ({ store }) => {
      const committed = await commit(store, [])
      demand(committed === true, `an empty commit returned ${show(committed)} instead of true`)
    },
  },
  {
    name: 'a commit that is repeated after it succeeded fails and changes nothing',
    rule: 5,
    check: failsRepeated,
  },
]

async function createsOnce({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const absent = await store.load(store.kind, id)
  demand(
    absent === undefined,
    `load returned ${show(absent)} for a record that was never committed; expected undefined`,
  )
  const first = record(id)
  await mustPut(store, first)
  const again = await put(store, record(id, 1, { commandId: 'another' }))
  demand(again === false, `creating an existing record returned ${show(again)}; expected false`)
  demandSame(
    await store.load(store.kind, id),
    first,
    'the record after an attempt to create it again',
  )
}

async function replacesExpected({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  for (const version of [3, 1_000_000]) {
    const ahead = await put(store, record(id, version))
    demand(
      ahead === false,
      `commit expected version ${version - 1} of a record at version 1 and returned ${show(ahead)}; ` +
        'expected false',
    )
  }
  await mustPut(store, record(id, 2))
  const behind = await put(store, record(id, 2, { commandId: 'another' }))
  demand(
    behind === false,
    `commit expected version 1 of a record at version 2 and returned ${show(behind)}; expected false`,
  )
  demandSame(await store.load(store.kind, id), record(id, 2), 'the record after failed commits')
}

async function replacesNothing({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const committed = await put(store, record(id, 2))
  demand(
    committed === false,
    `replacing version 1 of a record that does not exist returned ${show(committed)}; expected false`,
  )
  const version = await versionOf(store, id)
  demand(
    version === 0,
    `replacing a record that does not exist returned false and created it at version ${version}`,
  )
}

async function resurrectsNothing({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  await mustPut(store, record(id, 2))
  await mustRemove(store, id, 2)
  for (const version of [2, 3]) {
    const committed = await put(store, record(id, version))
    demand(
      committed === false,
      `replacing version ${version - 1} of a removed record returned ${show(committed)}; ` +
        'expected false: a writer that loaded the record before its removal must not restore it',
    )
    const stored = await versionOf(store, id)
    demand(stored === 0, `a removed record exists again at version ${stored}`)
  }
}

async function createsAgain({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id, 1, { commandId: 'first life' }))
  await mustPut(store, record(id, 2, { commandId: 'first life' }))
  await mustRemove(store, id, 2)
  const second = record(id, 1, { commandId: 'second life' })
  await mustPut(store, second)
  demandSame(await store.load(store.kind, id), second, 'a record created again after its removal')
  const early = await put(store, record(id, 3, { commandId: 'first life' }))
  demand(
    early === false,
    `a record was removed at version 2 and created again; replacing the old version 2 returned ` +
      `${show(early)}; expected false`,
  )
  await mustPut(store, record(id, 2, { commandId: 'second life' }))
}

async function replacesWhole({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const wanted = `${namespace} list`
  const first = record(id, 1, {
    dueAt: 5,
    retainUntil: 9,
    lists: [{ list: wanted, at: 1 }],
  })
  await mustPut(store, first)
  demandSame(await store.load(store.kind, id), first, 'a record with all members')
  await mustPut(store, record(id, 2))
  demandSame(
    await store.load(store.kind, id),
    record(id, 2),
    'its next version, which has fewer members',
  )
  const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 5 })
  demandSame(page, { records: [], more: false }, 'the list that the next version is no longer in')
}

async function writesEveryKind({ store, namespace }: Trial): Promise<void> {
  const ids = Array.from({ length: 3 }, (_, i) => `${namespace}-${i}`)
  for (const version of [1, 2]) {
    const written = kinds.flatMap((kind) =>
      ids.map((id) => ({ kind, next: record(id, version), expectedVersion: version - 1 })),
    )
    await mustCommit(store, written)
    await Promise.all(
      written.map(async ({ kind, next }) =>
        demandSame(
          await store.load(kind, next.id),
          next,
          `${kind} ${next.id}, one of ${written.length} records in a commit`,
        ),
      ),
    )
  }
}

async function losesAll(
  { store, namespace }: Trial,
  lost: 'creation' | 'replacement',
): Promise<void> {
  const places = [...['first', 'second', 'third', 'last'].entries()]
  const tries = places.map(async ([position, place]) => {
    const id = (name: string) => `${namespace}-${position}-${name}`
    await mustPut(store, record(id('taken')), record(id('old')))
    await mustPut(store, record(id('taken'), 2))
    const losing = record(id('taken'), lost === 'creation' ? 1 : 2, { commandId: 'loser' })
    const changes = [
      change(record(id('new'))),
      change(record(id('old'), 2)),
      change(record(id('new')), store.other),
    ]
    changes.splice(position, 0, change(losing))

    const committed = await commit(store, changes)
    const stored = await versionsOf(store, ['new', 'old', 'taken'].map(id))
    stored.push(await versionOf(store, id('new'), store.other))
    demandSame(
      { committed, stored },
      { committed: false, stored: [0, 1, 2, 0] },
      `a commit of four changes of which the ${place}, a ${lost}, cannot apply ` +
        '(versions of: a new record, an existing one, the one in conflict, a new one of another kind)',
    )
  })
  await Promise.all(tries)
}

async function failsRepeated({ store, namespace }: Trial): Promise<void> {
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  const both = [
    [change(record(a)), change(record(b), store.other)],
    [change(record(a, 2)), change(record(b, 2), store.other)],
  ]
  for (const changes of both) {
    await mustCommit(store, changes)
    const repeated = await commit(store, changes)
    demand(
      repeated === false,
      `the same commit returned true and then ${show(repeated)}; expected false the second time, ` +
        'because its records are past the versions that it expects',
    )
    for (const { kind = store.kind, next } of changes) {
      demandSame(await store.load(kind, next.id), next, 'a record after its commit was repeated')
    }
  }
}
