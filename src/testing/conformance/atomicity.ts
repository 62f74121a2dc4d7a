import {
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  kinds,
  mustCommit,
  mustPut,
  put,
  record,
  show,
  type Trial,
  versionOf,
  versionsOf,
} from './trial.js'

export const atomicityCases: readonly CaseDefinition[] = [
  {
    name: 'a commit creates a record that does not exist, and only once',
    rule: 1,
    check: createsOnce,
  },
  {
    name: 'a commit replaces the version that it expects, and no other',
    rule: 1,
    check: replacesExpected,
  },
  {
    name: 'a commit that replaces a record which does not exist fails and creates nothing',
    rule: 1,
    check: replacesNothing,
  },
  {
    name: 'a commit that replaces a record which was removed fails and does not bring it back',
    rule: 1,
    check: resurrectsNothing,
  },
  {
    name: 'a record that was removed may be created again, and lives like a new one',
    rule: 1,
    check: createsAgain,
  },
  {
    name: 'a commit replaces the whole record: what its next version lacks is gone',
    rule: 1,
    check: replacesWhole,
  },
  {
    name: 'a commit writes records of every kind together',
    rule: 1,
    check: writesEveryKind,
  },
  {
    name: 'a commit of which one creation is lost writes nothing, wherever it stands in it',
    rule: 1,
    check: (trial) => losesAll(trial, 'creation'),
  },
  {
    name: 'a commit of which one replacement is lost writes nothing, wherever it stands in it',
    rule: 1,
    check: (trial) => losesAll(trial, 'replacement'),
  },
  {
    name: 'a commit of nothing at all takes effect',
    rule: 1,
    check: async ({ store }) => {
      const committed = await commit(store, [])
      demand(committed === true, `an empty commit answered ${show(committed)} instead of true`)
    },
  },
  {
    name: 'a commit that is repeated after it took effect fails and changes nothing',
    rule: 5,
    check: failsRepeated,
  },
]

async function createsOnce({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const absent = await store.load('grant', id)
  demand(
    absent === undefined,
    `load answered ${show(absent)} for a record that nobody wrote; it should be undefined`,
  )
  const first = record(id)
  await mustPut(store, first)
  const again = await put(store, record(id, 1, { commandId: 'another' }))
  demand(again === false, `creating a record that exists answered ${show(again)} instead of false`)
  demandSame(
    await store.load('grant', id),
    first,
    'the record after a second creation of it failed',
  )
}

async function replacesExpected({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  for (const version of [3, 1_000_000]) {
    const ahead = await put(store, record(id, version))
    demand(
      ahead === false,
      `expecting version ${version - 1} of a record at version 1, commit answered ${show(ahead)}; ` +
        'it should be false',
    )
  }
  await mustPut(store, record(id, 2))
  const behind = await put(store, record(id, 2, { commandId: 'another' }))
  demand(
    behind === false,
    `expecting version 1 of a record at version 2, commit answered ${show(behind)} instead of false`,
  )
  demandSame(await store.load('grant', id), record(id, 2), 'the record after commits that failed')
}

async function replacesNothing({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const committed = await put(store, record(id, 2))
  demand(
    committed === false,
    `replacing version 1 of a record that does not exist answered ${show(committed)} instead of false`,
  )
  const version = await versionOf(store, id)
  demand(
    version === 0,
    `replacing a record that does not exist answered false and created it at version ${version}`,
  )
}

async function resurrectsNothing({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id))
  await mustPut(store, record(id, 2))
  const removed = await store.remove('grant', id, 2)
  demand(removed === true, `remove at the stored version answered ${show(removed)}, not true`)
  for (const version of [2, 3]) {
    const committed = await put(store, record(id, version))
    demand(
      committed === false,
      `replacing version ${version - 1} of a record that was removed answered ${show(committed)}; ` +
        'it should be false: whoever loaded it before its removal must not bring it back',
    )
    const stored = await versionOf(store, id)
    demand(stored === 0, `a record that was removed came back at version ${stored}`)
  }
}

async function createsAgain({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  await mustPut(store, record(id, 1, { life: 'first' }))
  await mustPut(store, record(id, 2, { life: 'first' }))
  demand(await store.remove('grant', id, 2), 'remove at the stored version did not answer true')
  const second = record(id, 1, { life: 'second' })
  await mustPut(store, second)
  demandSame(await store.load('grant', id), second, 'a record that was created again')
  const early = await put(store, record(id, 3, { life: 'first' }))
  demand(
    early === false,
    `a record was removed at version 2 and created again; replacing its former version 2 answered ` +
      `${show(early)} instead of false`,
  )
  await mustPut(store, record(id, 2, { life: 'second' }))
}

async function replacesWhole({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const wanted = `${namespace} list`
  const first = record(id, 1, {
    dueAt: 5,
    retainUntil: 9,
    lists: [{ list: wanted, at: 1 }],
    note: 'old',
  })
  await mustPut(store, first)
  demandSame(await store.load('grant', id), first, 'a record with all of its members')
  await mustPut(store, record(id, 2))
  demandSame(await store.load('grant', id), record(id, 2), 'the version after it, which has fewer')
  const page = await store.list({ kind: 'grant', list: wanted, forward: true, limit: 5 })
  demandSame(
    page,
    { records: [], more: false },
    'the list that its next version is not in any more',
  )
}

async function writesEveryKind({ store, namespace }: Trial): Promise<void> {
  const ids = Array.from({ length: 6 }, (_, i) => `${namespace}-${i}`)
  for (const version of [1, 2, 3]) {
    const written = kinds.flatMap((kind) =>
      ids.map((id) => change(record(id, version, { of: `${kind} ${id}` }), kind)),
    )
    await mustCommit(store, written)
    for (const { kind, next } of written) {
      demandSame(await store.load(kind, next.id), next, `${kind} ${next.id}, one of 30 committed`)
    }
  }
}

async function losesAll(
  { store, namespace }: Trial,
  lost: 'creation' | 'replacement',
): Promise<void> {
  for (const [position, place] of ['first', 'second', 'third', 'last'].entries()) {
    const id = (name: string) => `${namespace}-${position}-${name}`
    await mustPut(store, record(id('taken')), record(id('old')))
    await mustPut(store, record(id('taken'), 2))
    const losing = record(id('taken'), lost === 'creation' ? 1 : 2, { commandId: 'loser' })
    const changes = [
      change(record(id('new'))),
      change(record(id('old'), 2)),
      change(record(id('new')), 'event'),
    ]
    changes.splice(position, 0, change(losing))

    const committed = await commit(store, changes)
    const stored = await versionsOf(store, ['new', 'old', 'taken'].map(id))
    stored.push(await versionOf(store, id('new'), 'event'))
    demandSame(
      { committed, stored },
      { committed: false, stored: [0, 1, 2, 0] },
      `a commit of four changes of which the ${place}, a ${lost}, could not be made ` +
        '(versions of: a new record, an old one, the one that was lost, a new event)',
    )
  }
}

async function failsRepeated({ store, namespace }: Trial): Promise<void> {
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  const both = [
    [change(record(a)), change(record(b), 'event')],
    [change(record(a, 2)), change(record(b, 2), 'event')],
  ]
  for (const changes of both) {
    await mustCommit(store, changes)
    const repeated = await commit(store, changes)
    demand(
      repeated === false,
      `the same commit answered true and then ${show(repeated)}; the second time it should be false, ` +
        'since its records are past the versions that it expects',
    )
    for (const { kind, next } of changes) {
      demandSame(await store.load(kind, next.id), next, 'a record after its commit was repeated')
    }
  }
}
