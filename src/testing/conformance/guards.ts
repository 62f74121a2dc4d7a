import {
  atOnce,
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  guard,
  mustCommit,
  mustPut,
  mustRemove,
  put,
  record,
  show,
  steps,
  type Trial,
  type TrialStore,
  versionOf,
  versionsOf,
} from './trial.js'

export const guardCases: readonly CaseDefinition[] = [
  {
    name: 'a guard holds while its record is at its version and fails the commit at any other version',
    rule: 2,
    check: holdsAtItsVersion,
  },
  {
    name: 'a guard on a record that does not exist or was removed fails the commit',
    rule: 2,
    check: failsOnNothing,
  },
  {
    name: 'a guard identifies its record by kind and id',
    rule: 2,
    check: knowsKindAndId,
  },
  {
    name: 'one guard of several that does not hold fails the commit, wherever it stands',
    rule: 2,
    check: oneOfSeveral,
  },
  { name: 'a guard writes nothing', rule: 2, check: writesNothing },
  {
    name: 'a commit of guards alone reports whether they hold',
    rule: 2,
    check: guardsAlone,
  },
  {
    name: 'concurrent commits may guard the same record',
    rule: 2,
    search: true,
    check: shareOneGuard,
  },
  {
    name: 'a commit fails if its guarded record was replaced before it took effect',
    rule: 2,
    search: true,
    check: (trial) => guardIsKept(trial, trial.store, 'replaced'),
  },
  {
    name: 'a commit of a second store fails if its guarded record was replaced before it took effect',
    rule: 2,
    stores: 2,
    search: true,
    check: async (trial) => guardIsKept(trial, await trial.another(), 'replaced'),
  },
  {
    name: 'a commit fails if its guarded record was removed before it took effect',
    rule: 2,
    search: true,
    check: (trial) => guardIsKept(trial, trial.store, 'removed'),
  },
  {
    name: 'two commits that each guard the record that the other changes do not both succeed',
    rule: 2,
    search: true,
    check: (trial) => noWriteSkew(trial, trial.store),
  },
  {
    name: 'two commits of two stores that each guard the record that the other changes do not both succeed',
    rule: 2,
    stores: 2,
    search: true,
    check: async (trial) => noWriteSkew(trial, await trial.another()),
  },
]

async function holdsAtItsVersion({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-guarded`
  await mustPut(store, record(id))
  await mustPut(store, record(id, 2))
  for (const version of [1, 3]) {
    const created = `${namespace}-${version}`
    const committed = await commit(store, [change(record(created))], [guard(id, version)])
    demand(
      committed === false,
      `commit with a guard at version ${version} of a record at version 2 returned ${show(committed)}; ` +
        'expected false',
    )
    demand(
      (await versionOf(store, created)) === 0,
      'a commit whose guard failed still created its record',
    )
  }
  await mustCommit(store, [change(record(`${namespace}-2`))], [guard(id, 2)])
  const version = await versionOf(store, `${namespace}-2`)
  demand(version === 1, 'a commit whose guard held returned true but did not write its record')
}

async function failsOnNothing({ store, namespace }: Trial): Promise<void> {
  const [absent, removed, created] = ['absent', 'removed', 'new'].map(
    (name) => `${namespace}-${name}`,
  ) as [string, string, string]
  await mustPut(store, record(removed))
  await mustRemove(store, removed, 1)
  for (const id of [absent, removed]) {
    const committed = await commit(store, [change(record(created))], [guard(id, 1)])
    demand(
      committed === false,
      `commit with a guard on a record that ${id === absent ? 'does not exist' : 'was removed'} ` +
        `returned ${show(committed)}; expected false`,
    )
    const versions = await versionsOf(store, [created, id])
    demandSame(
      versions,
      [0, 0],
      'versions of the new and of the guarded record after the failed commit',
    )
  }
}

async function knowsKindAndId({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-same`
  await mustPut(store, record(id))
  await mustCommit(store, [change(record(id), store.other)])
  await mustCommit(store, [change(record(id, 2), store.other)])
  const foreign = await commit(store, [change(record(`${id}-1`))], [guard(id, 1, store.other)])
  demand(
    foreign === false,
    `a guard at version 1 of a ${store.other} at version 2 matched the ${store.kind} with the same id, ` +
      `which is at version 1: commit returned ${show(foreign)}; expected false`,
  )
  await mustCommit(store, [change(record(`${id}-2`))], [guard(id, 2, store.other), guard(id, 1)])
}

async function oneOfSeveral({ store, namespace }: Trial): Promise<void> {
  const ids = ['a', 'b', 'c'].map((name) => `${namespace}-${name}`)
  await mustPut(store, ...ids.map((id) => record(id)))
  for (const [position, place] of ['first', 'second', 'third'].entries()) {
    const guards = ids.map((id, i) => guard(id, i === position ? 2 : 1))
    const created = `${namespace}-new-${position}`
    const committed = await commit(store, [change(record(created))], guards)
    const version = await versionOf(store, created)
    demandSame(
      { committed, version },
      { committed: false, version: 0 },
      `a commit with three guards of which the ${place} does not hold`,
    )
  }
  const guards = ids.map((id) => guard(id, 1))
  await mustCommit(store, [change(record(`${namespace}-new`))], guards)
}

async function writesNothing({ store, namespace }: Trial): Promise<void> {
  const guarded = record(`${namespace}-guarded`)
  await mustPut(store, guarded)
  for (let i = 0; i < 3; i++) {
    await mustCommit(store, [change(record(`${namespace}-${i}`))], [guard(guarded.id, 1)])
  }
  demandSame(await store.load(store.kind, guarded.id), guarded, 'a record after it was guarded')
  await mustPut(store, record(guarded.id, 2))
}

async function guardsAlone({ store, namespace }: Trial): Promise<void> {
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  await mustPut(store, record(a), record(b))
  await mustPut(store, record(b, 2))
  await mustCommit(store, [], [guard(a, 1), guard(b, 2)])
  const outdated = await commit(store, [], [guard(a, 1), guard(b, 1)])
  demand(
    outdated === false,
    `a commit of two guards, of which one does not hold, returned ${show(outdated)}; expected false`,
  )
}

async function shareOneGuard({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-guarded`
  await mustPut(store, record(id))
  const outcomes = await atOnce(16, (i) =>
    commit(store, [change(record(`${namespace}-${i}`))], [guard(id, 1)]),
  )
  const failed = outcomes.filter((outcome) => outcome !== true).length
  demand(
    failed === 0,
    `16 commits guarded the same record, which no writer changed, and ${failed} of them failed; all ` +
      'must succeed, because a guard writes nothing',
  )
}

/**
 * If the guarded record was replaced or removed, and a later load does not show the commit's changes, then
 * the commit can only take effect after that, and so it must fail.
 */
async function guardIsKept(
  { store, namespace, rounds }: Trial,
  guarding: TrialStore,
  fate: 'replaced' | 'removed',
): Promise<void> {
  await rounds(4, async (round) => {
    const guarded = `${namespace}-${round}`
    await mustPut(store, record(guarded))
    const ids = Array.from({ length: 4 }, (_, i) => `${guarded}-${i}`)
    const commits = ids.map(async (id, i) => {
      await steps((round + i) % 6)
      return commit(guarding, [change(record(id))], [guard(guarded, 1)])
    })
    const end = async () => {
      await steps(round % 5)
      const ended =
        fate === 'removed'
          ? await store.remove(store.kind, guarded, 1)
          : await put(store, record(guarded, 2))
      return { ended, visible: await versionsOf(store, ids) }
    }
    const [{ ended, visible }, ...outcomes] = await Promise.all([end(), ...commits])
    demand(
      ended === true,
      `a record that other commits only guarded could not be ${fate}: the call returned ${show(ended)}; expected true`,
    )
    const late = outcomes.filter((outcome, i) => outcome === true && visible[i] === 0)
    demand(
      late.length === 0,
      `a commit that guards a version took effect after the record was ${fate}; check the guard ` +
        'atomically with the writes (in SQL: lock the guarded row)',
    )
    const stored = await versionsOf(store, ids)
    demandSame(
      stored.map((version) => version === 1),
      outcomes,
      'whether each of four new records exists (expected exactly for those whose commit returned true)',
    )
    const after = await commit(guarding, [change(record(`${guarded}-late`))], [guard(guarded, 1)])
    demand(after === false, `a guard held although its record was already ${fate}`)
  })
}

async function noWriteSkew({ store, namespace, rounds }: Trial, other: TrialStore): Promise<void> {
  await rounds(4, async (round) => {
    const [a, b] = [`${namespace}-${round}-a`, `${namespace}-${round}-b`]
    await mustPut(store, record(a), record(b))
    const outcomes = await atOnce(2, async (i) => {
      await steps(i * (round % 4))
      return i === 0
        ? commit(store, [change(record(a, 2))], [guard(b, 1)])
        : commit(other, [change(record(b, 2))], [guard(a, 1)])
    })
    demand(
      !outcomes.every(Boolean),
      'two concurrent commits, each guarding the version of the record that the other replaces, both ' +
        'returned true; the later one must fail (in SQL: lock the guarded row)',
    )
    demandSame(
      await versionsOf(store, [a, b]),
      outcomes.map((outcome) => (outcome ? 2 : 1)),
      'versions of two records (expected: replaced exactly where the commit returned true)',
    )
    if (!outcomes.some(Boolean)) {
      await mustCommit(store, [change(record(a, 2))], [guard(b, 1)])
    }
  })
}
