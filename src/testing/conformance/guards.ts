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
  put,
  record,
  show,
  steps,
  type Trial,
  versionOf,
  versionsOf,
} from './trial.js'

export const guardCases: readonly CaseDefinition[] = [
  {
    name: 'a guard holds while its record is at its version, and fails the commit at any other',
    rule: 2,
    check: holdsAtItsVersion,
  },
  {
    name: 'a guard on a record that does not exist, or was removed, fails the commit',
    rule: 2,
    check: failsOnNothing,
  },
  {
    name: 'a guard knows a record by its kind and its id together',
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
    name: 'a commit of guards alone says whether they hold',
    rule: 2,
    check: guardsAlone,
  },
  {
    name: 'many commits may guard the same record at once',
    rule: 2,
    check: shareOneGuard,
  },
  {
    name: 'a commit whose guarded record was replaced before it took effect fails',
    rule: 2,
    check: (trial) => guardIsKept(trial, 'replaced'),
  },
  {
    name: 'a commit whose guarded record was removed before it took effect fails',
    rule: 2,
    check: (trial) => guardIsKept(trial, 'removed'),
  },
  {
    name: 'two commits that each guard what the other changes do not both take effect',
    rule: 2,
    check: noWriteSkew,
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
      `with a guard at version ${version} of a record at version 2, commit answered ${show(committed)} ` +
        'instead of false',
    )
    demand(
      (await versionOf(store, created)) === 0,
      'a commit that its guard failed has created its record all the same',
    )
  }
  await mustCommit(store, [change(record(`${namespace}-2`))], [guard(id, 2)])
  const version = await versionOf(store, `${namespace}-2`)
  demand(version === 1, 'a commit whose guard held answered true and did not write its record')
}

async function failsOnNothing({ store, namespace }: Trial): Promise<void> {
  const [absent, removed, created] = ['absent', 'removed', 'new'].map(
    (name) => `${namespace}-${name}`,
  ) as [string, string, string]
  await mustPut(store, record(removed))
  demand(
    await store.remove('grant', removed, 1),
    'remove at the stored version did not answer true',
  )
  for (const id of [absent, removed]) {
    const committed = await commit(store, [change(record(created))], [guard(id, 1)])
    demand(
      committed === false,
      `with a guard on a record that ${id === absent ? 'does not exist' : 'was removed'}, commit ` +
        `answered ${show(committed)} instead of false`,
    )
    const versions = await versionsOf(store, [created, id])
    demandSame(
      versions,
      [0, 0],
      'versions of the new and of the guarded record after the commit failed',
    )
  }
}

async function knowsKindAndId({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-same`
  await mustPut(store, record(id))
  await mustCommit(store, [change(record(id), 'event')])
  await mustCommit(store, [change(record(id, 2), 'event')])
  const foreign = await commit(store, [change(record(`${id}-1`))], [guard(id, 1, 'event')])
  demand(
    foreign === false,
    `a guard at version 1 of an event at version 2 was taken to be about the grant of the same id, ` +
      `which is at version 1: commit answered ${show(foreign)}`,
  )
  await mustCommit(store, [change(record(`${id}-2`))], [guard(id, 2, 'event'), guard(id, 1)])
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
  const guarded = record(`${namespace}-guarded`, 1, { note: 'as it was', dueAt: 7 })
  await mustPut(store, guarded)
  for (let i = 0; i < 3; i++) {
    await mustCommit(store, [change(record(`${namespace}-${i}`))], [guard(guarded.id, 1)])
  }
  demandSame(await store.load('grant', guarded.id), guarded, 'a record after it was guarded')
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
    `a commit of two guards, of which one does not hold, answered ${show(outdated)} instead of false`,
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
    `16 commits guarded the same record, which nobody changed, and ${failed} of them failed; all ` +
      'should have taken effect, since a guard writes nothing',
  )
}

/**
 * When the record of a guard has been replaced or removed, and a load after that does not show what a commit
 * would write, then that commit can only take effect later, and so must fail.
 */
async function guardIsKept(
  { store, namespace }: Trial,
  fate: 'replaced' | 'removed',
): Promise<void> {
  for (let round = 0; round < 24; round++) {
    const guarded = `${namespace}-${round}`
    await mustPut(store, record(guarded))
    const ids = Array.from({ length: 4 }, (_, i) => `${guarded}-${i}`)
    const commits = ids.map(async (id, i) => {
      await steps((round + i) % 6)
      return commit(store, [change(record(id))], [guard(guarded, 1)])
    })
    const end = async () => {
      await steps(round % 5)
      const ended =
        fate === 'removed'
          ? await store.remove('grant', guarded, 1)
          : await put(store, record(guarded, 2))
      return { ended, visible: await versionsOf(store, ids) }
    }
    const [{ ended, visible }, ...outcomes] = await Promise.all([end(), ...commits])
    demand(
      ended === true,
      `a record that others only guarded could not be ${fate}: it answered ${show(ended)}, not true`,
    )
    const late = outcomes.filter((outcome, i) => outcome === true && visible[i] === 0)
    demand(
      late.length === 0,
      `a record was ${fate}, and after that a commit took effect that guards its former version; ` +
        'the guard must be checked together with the writing (in SQL: lock the row that is guarded)',
    )
    const stored = await versionsOf(store, ids)
    demandSame(
      stored.map((version) => version === 1),
      outcomes,
      'whether each of four new records exists, if exactly those whose commit answered true should',
    )
    const after = await commit(store, [change(record(`${guarded}-late`))], [guard(guarded, 1)])
    demand(after === false, `a guard held although its record had been ${fate} before`)
  }
}

async function noWriteSkew({ store, namespace }: Trial): Promise<void> {
  for (let round = 0; round < 24; round++) {
    const [a, b] = [`${namespace}-${round}-a`, `${namespace}-${round}-b`]
    await mustPut(store, record(a), record(b))
    const outcomes = await atOnce(2, async (i) => {
      await steps(i * (round % 4))
      return i === 0
        ? commit(store, [change(record(a, 2))], [guard(b, 1)])
        : commit(store, [change(record(b, 2))], [guard(a, 1)])
    })
    demand(
      !outcomes.every(Boolean),
      'two commits at once, each guarding the version of the record that the other replaces, both ' +
        'answered true; whichever comes second should fail (in SQL: lock the row that is guarded)',
    )
    demandSame(
      await versionsOf(store, [a, b]),
      outcomes.map((outcome) => (outcome ? 2 : 1)),
      'versions of two records, if exactly those whose commit answered true are replaced',
    )
    if (!outcomes.some(Boolean)) {
      await mustCommit(store, [change(record(a, 2))], [guard(b, 1)])
    }
  }
}
