import { type RecordKind, type Stored, storeBounds } from 'open-payments-server/adapter'
import { demand, demandFalse, demandSame, show } from './expectations.js'
import { cases, change, guard, kinds, record, type TestChange, type Trial } from './trial.js'

const atomic = { rule: 1 } as const
const placed = { rule: 1, needs: { lists: 1, due: true } } as const
const guarded = { rule: 2 } as const
const traceless = { rule: 2, needs: { lists: 1, due: true } } as const
const repeated = { rule: 5 } as const

const single = cases(atomic, {
  async 'a commit creates a record that does not exist exactly once'(t) {
    const first = record(t.id('a'))
    const absent = await t.find(t.kind, first.id)
    demand(absent === undefined, `load returned ${show(absent)} for a record that does not exist`)
    await t.mustPut(first)
    const again = await t.put(record(first.id, 1, { commandId: 'another' }))
    demandFalse(again, 'creating an existing record')
    await t.finds(first, 'the record after an attempt to create it again')
  },

  async 'a commit replaces only the version that it expects'(t) {
    const id = t.id('a')
    await t.mustPut(record(id))
    for (const version of [3, 1_000_000]) {
      const ahead = await t.put(record(id, version))
      demandFalse(ahead, `a commit that expected version ${version - 1} of a record at version 1`)
    }
    await t.mustPut(record(id, 2))
    const behind = await t.put(record(id, 2, { commandId: 'another' }))
    demandFalse(behind, 'a commit that expected version 1 of a record at version 2')
    await t.finds(record(id, 2), 'the record after failed commits')
  },

  async 'a commit that replaces a record that does not exist fails and creates nothing'(t) {
    const id = t.id('a')
    demandFalse(await t.put(record(id, 2)), 'replacing version 1 of a record that does not exist')
    demandSame(await t.version(id), 0, 'the version of the record (0: it does not exist)')
  },

  async 'a commit that replaces a removed record fails and does not restore it'(t) {
    const id = t.id('a')
    await t.mustPut(record(id))
    await t.mustPut(record(id, 2))
    await t.mustRemove(id, 2)
    for (const version of [2, 3]) {
      const what = `replacing version ${version - 1} of a record that was removed meanwhile`
      demandFalse(await t.put(record(id, version)), what)
      demandSame(await t.version(id), 0, 'the version of a removed record (0: it does not exist)')
    }
  },

  async 'a removed record can be created again and behaves like a new one'(t) {
    const id = t.id('a')
    await t.mustPut(record(id, 1, { commandId: 'first life' }))
    await t.mustPut(record(id, 2, { commandId: 'first life' }))
    await t.mustRemove(id, 2)
    const second = record(id, 1, { commandId: 'second life' })
    await t.mustPut(second)
    await t.finds(second, 'a record created again after its removal')
    const early = await t.put(record(id, 3, { commandId: 'first life' }))
    demandFalse(early, 'replacing version 2 of a record that was removed and created again')
    await t.mustPut(record(id, 2, { commandId: 'second life' }))
  },

  async 'an empty commit succeeds'(t) {
    demand(await t.write([]), 'an empty commit returned false instead of true')
  },
})

const whole = cases(placed, {
  async 'a commit replaces the whole record, including members that the next version lacks'(t) {
    const [id, list] = [t.id('a'), t.listName()]
    const first = record(id, 1, { dueAt: 5, retainUntil: 9, lists: [{ list, at: 1 }] })
    await t.mustPut(first)
    await t.finds(first, 'a record with all members')
    await t.mustPut(record(id, 2))
    await t.finds(record(id, 2), 'its next version, which has fewer members')
    await t.lists(list, [], 'the list that the next version is no longer in')
  },
})

const several = cases(atomic, {
  async 'a commit writes records of every kind together'(t) {
    for (const version of [1, 2]) {
      const written = kinds.flatMap((kind) =>
        [0, 1, 2].map((i) => change(record(t.id(i), version), kind)),
      )
      await t.mustWrite(written)
      await findsAll(t, written)
    }
  },

  'a commit with one creation that fails writes nothing, wherever the creation stands': (t) =>
    losesAll(t, 'creation'),

  'a commit with one replacement that fails writes nothing, wherever the replacement stands': (t) =>
    losesAll(t, 'replacement'),

  async 'a commit of the maximum number of changes writes each of them'(t) {
    for (const version of [1, 2]) {
      const { changes } = greatest(t, [], (i) => change(record(t.id(i), version)))
      await t.mustWrite(changes)
      await findsAll(t, changes)
    }
  },

  async 'a commit of the maximum size writes changes of several kinds, with lists and guards'(t) {
    for (const guards of [0, 30]) {
      const commit = await mixedCommit(t, `${guards}`, guards)
      await t.mustWrite(commit.changes, commit.guards)
      await findsAll(t, commit.changes)
      for (const kind of new Set(commit.changes.map((each) => each.kind ?? t.kind))) {
        const own = commit.changes.filter((each) => (each.kind ?? t.kind) === kind)
        const listed = own.map(({ next }) => next).filter(({ lists = [] }) => lists.length > 0)
        await t.lists(commit.list, listed, `the list of each ${kind} in the commit`, { kind })
      }
    }
  },

  async 'a commit of the maximum size writes nothing if its last change or guard fails'(t) {
    const { changes, guards } = await mixedCommit(t, 'lost', 30)
    const before = await storedVersions(t, changes)
    const [taken, wrong] = [record(t.id('taken')), guard(t.id('taken'), 2)]
    await t.mustPut(taken)
    // A creation has a size of at most 4: itself and three lists.
    const others = changes.slice(0, -4)
    const losing = [
      { changes: [...others, change(taken)], guards },
      { changes: others, guards: [...guards, wrong] },
    ]
    for (const each of losing) {
      const committed = await t.write(each.changes, each.guards)
      demandSame(
        { committed, stored: await storedVersions(t, changes) },
        { committed: false, stored: before },
        'a commit of the maximum size whose last change, or guard, fails, and the versions of its records',
      )
    }
    await t.finds(taken, 'the record that the failed commit tried to create again')
  },
})

const repeats = cases(repeated, {
  async 'a commit that is repeated after it succeeded fails and changes nothing'(t) {
    for (const version of [1, 2]) {
      const [a, b] = [record(t.id('a'), version), record(t.id('b'), version)]
      const changes = [change(a), change(b, t.other)]
      await t.mustWrite(changes)
      demandFalse(await t.write(changes), 'a commit that succeeded before, repeated,')
      await findsAll(t, changes)
    }
  },
})

const guards = cases(guarded, {
  async 'a guard holds while its record is at its version, and fails the commit at any other'(t) {
    const id = t.id('guarded')
    await t.mustPut(record(id))
    await t.mustPut(record(id, 2))
    for (const version of [1, 3]) {
      const created = t.id(version)
      const committed = await t.write([change(record(created))], [guard(id, version)])
      demandFalse(committed, `a commit with a guard at version ${version} of a record at version 2`)
      demandSame(await t.version(created), 0, 'the version that it created (0: none)')
    }
    await t.mustWrite([change(record(t.id(2)))], [guard(id, 2)])
    demandSame(await t.version(t.id(2)), 1, 'the version that a commit created whose guard held')
  },

  async 'a guard on a record that does not exist or was removed fails the commit'(t) {
    const [absent, removed, created] = [t.id('absent'), t.id('removed'), t.id('new')]
    await t.mustPut(record(removed))
    await t.mustRemove(removed, 1)
    for (const id of [absent, removed]) {
      const committed = await t.write([change(record(created))], [guard(id, 1)])
      const fate = id === absent ? 'does not exist' : 'was removed'
      demandFalse(committed, `a commit with a guard on a record that ${fate}`)
      const versions = await t.versions([created, id])
      demandSame(versions, [0, 0], 'versions of the new and the guarded record after that commit')
    }
  },

  async 'a guard identifies its record by kind and id'(t) {
    const id = t.id('same')
    await t.mustPut(record(id))
    await t.mustWrite([change(record(id), t.other)])
    await t.mustWrite([change(record(id, 2), t.other)])
    const foreign = await t.write([change(record(`${id}-1`))], [guard(id, 1, t.other)])
    const beside = `beside a ${t.kind} at version 1 with the same id`
    demandFalse(foreign, `a guard at version 1 of a ${t.other} at version 2, ${beside},`)
    await t.mustWrite([change(record(`${id}-2`))], [guard(id, 2, t.other), guard(id, 1)])
  },

  async 'one guard of several that does not hold fails the commit, wherever it stands'(t) {
    const ids = ['a', 'b', 'c'].map(t.id)
    await t.mustPut(...ids.map((id) => record(id)))
    for (const [position, place] of ['first', 'second', 'third'].entries()) {
      const some = ids.map((id, i) => guard(id, i === position ? 2 : 1))
      const created = t.id(`new-${position}`)
      const committed = await t.write([change(record(created))], some)
      demandSame(
        { committed, version: await t.version(created) },
        { committed: false, version: 0 },
        `a commit with three guards of which the ${place} does not hold`,
      )
    }
    const holding = ids.map((id) => guard(id, 1))
    await t.mustWrite([change(record(t.id('new')))], holding)
  },

  async 'a guard writes nothing'(t) {
    const kept = record(t.id('guarded'))
    await t.mustPut(kept)
    for (let i = 0; i < 3; i++) {
      await t.mustWrite([change(record(t.id(i)))], [guard(kept.id, 1)])
    }
    await t.finds(kept, 'a record after it was guarded')
    await t.mustPut(record(kept.id, 2))
  },

  async 'a commit of guards alone reports whether they hold'(t) {
    const [a, b] = [t.id('a'), t.id('b')]
    await t.mustPut(record(a), record(b))
    await t.mustPut(record(b, 2))
    await t.mustWrite([], [guard(a, 1), guard(b, 2)])
    const outdated = await t.write([], [guard(a, 1), guard(b, 1)])
    demandFalse(outdated, 'a commit of two guards, of which one does not hold,')
  },
})

const traces = cases(traceless, {
  'a commit with a creation that fails changes no list and no due time': (t) =>
    losesWithoutTrace(t, 'creation'),
  'a commit with a replacement that fails changes no list and no due time': (t) =>
    losesWithoutTrace(t, 'replacement'),
  'a commit with a guard that fails changes no list and no due time': (t) =>
    losesWithoutTrace(t, 'guard'),
})

export const commitCases = [single, whole, several, repeats, guards, traces].flat()

/** Fails unless `load` returns each record of a commit. */
async function findsAll(t: Trial, changes: readonly TestChange[]): Promise<void> {
  const what = `one of ${changes.length} records in a commit`
  await Promise.all(changes.map(({ kind, next }) => t.finds(next, `${next.id}, ${what}`, kind)))
}

function storedVersions(t: Trial, changes: readonly TestChange[]): Promise<number[]> {
  return Promise.all(changes.map(({ kind, next }) => t.version(next.id, kind)))
}

async function losesAll(t: Trial, lost: 'creation' | 'replacement'): Promise<void> {
  const tries = ['first', 'second', 'third', 'last'].map(async (place, position) => {
    const id = (name: string) => t.id(`${position}-${name}`)
    await t.mustPut(record(id('taken')), record(id('old')))
    await t.mustPut(record(id('taken'), 2))
    const losing = record(id('taken'), lost === 'creation' ? 1 : 2, { commandId: 'loser' })
    const changes = [
      change(record(id('new'))),
      change(record(id('old'), 2)),
      change(record(id('new')), t.other),
    ]
    changes.splice(position, 0, change(losing))
    const committed = await t.write(changes)
    const stored = await t.versions(['new', 'old', 'taken'].map(id))
    stored.push(await t.version(id('new'), t.other))
    demandSame(
      { committed, stored },
      { committed: false, stored: [0, 1, 2, 0] },
      `a commit of four changes of which the ${place}, a ${lost}, cannot apply ` +
        '(versions of: a new record, an existing one, the one in conflict, a new one of another kind)',
    )
  })
  await Promise.all(tries)
}

/** Makes changes one after the other, as many as a commit with these guards may have. */
function greatest(
  t: Trial,
  guards: readonly ReturnType<typeof guard>[],
  make: (index: number) => TestChange,
) {
  const changes: TestChange[] = []
  let size = guards.length
  for (let next = make(0); ; next = make(changes.length)) {
    size += t.sizeOf([next])
    if (size > storeBounds.commitSize) return { changes, guards }
    changes.push(next)
  }
}

/** Prepares a commit of the maximum size that creates and replaces records of all kinds, most of them in one list. */
async function mixedCommit(t: Trial, name: string, guardCount: number) {
  const list = t.listName(name)
  const kindOf = (i: number): RecordKind => {
    return i % 2 === 0 ? t.kind : (t.others[(i >> 1) % t.others.length] ?? t.kind)
  }
  const id = (i: number) => t.id(`${name}-${100 + i}`)
  const old = Array.from({ length: 30 }, (_, i) => change(record(id(3 * i)), kindOf(3 * i)))
  const guardedId = (i: number) => t.id(`${name}-guarded-${i}`)
  const some = Array.from({ length: guardCount }, (_, i) => guard(guardedId(i), 1, kindOf(i)))
  const setUp = [...old, ...some.map(({ id: own, kind }) => change(record(own), kind))]
  for (let from = 0; from < setUp.length; from += 12)
    await t.mustWrite(setUp.slice(from, from + 12))
  const commit = greatest(t, some, (i) => {
    const lists = t.writes({ lists: 1 }, kindOf(i)) ? { lists: [{ list, at: i }] } : {}
    return change(record(id(i), i % 3 === 0 ? 2 : 1, lists), kindOf(i))
  })
  return { ...commit, list }
}

/** Loses commits that would move records in lists and in time, leave them where they are, or take them out. */
async function losesWithoutTrace(
  t: Trial,
  lost: 'creation' | 'replacement' | 'guard',
): Promise<void> {
  const [here, there] = [t.listName('here'), t.listName('there')]
  const at = (list: string, place: number) => ({ lists: [{ list, at: place }], dueAt: place })
  const [old, taken] = [record(t.id('old'), 1, at(here, 5)), record(t.id('taken'), 2, at(here, 6))]
  const fresh = t.id('new')
  const kept: Stored[] = [old, taken]
  await t.mustPut(old, record(taken.id, 1, at(here, 6)))
  await t.mustPut(taken)

  async function demandNoTrace(when: string) {
    await t.lists(here, kept, `a list ${when}`)
    await t.lists(there, [], `a list that only failed commits name, ${when}`)
    await t.lists(there, [], `the same list of another kind, ${when}`, { kind: t.other })
    await t.dues(kept, { before: 100 })
    await t.dues([], { before: 100, kind: t.other })
  }

  const moves = [[at(there, 1), at(there, 2)] as const, [at(here, 5), at(here, 6)] as const]
  for (const [first, second] of [...moves, [{}, {}] as const]) {
    const changes = [
      change(record(old.id, 2, first)),
      change(record(fresh, 1, at(there, 3))),
      change(record(fresh, 1, at(there, 4)), t.other),
    ]
    const losing = record(taken.id, lost === 'creation' ? 1 : 2, { commandId: 'loser', ...second })
    if (lost !== 'guard') changes.push(change(losing))
    const committed = await t.write(changes, lost === 'guard' ? [guard(taken.id, 1)] : [])
    demandFalse(committed, `a commit with a ${lost} that fails`)
    await demandNoTrace(`after a commit failed because of a ${lost}`)
  }
  await t.mustWrite([change(record(fresh)), change(record(fresh), t.other)])
  await demandNoTrace('after the record of a failed commit was created without lists')
}
