import type { Stored } from 'open-payments-server/adapter'
import { seededIndex } from '../random.js'
import { demand, demandFalse, demandSame, show } from './expectations.js'
import {
  atOnce,
  cases,
  change,
  demandOne,
  guard,
  idsOf,
  record,
  steps,
  type TestRecord,
  type Trial,
  type TrialStore,
} from './trial.js'

const atomic = { rule: 1, search: true } as const
const exclusive = { rule: 2, search: true } as const
const exclusiveInLists = { rule: 2, search: true, needs: { lists: 1, due: true } } as const
const exclusiveOverTwo = { rule: 2, search: true, stores: 2 } as const
const removal = { rule: 'remove', search: true } as const

const writers = cases(exclusive, {
  'exactly one of 16 concurrent writers creates a record': (t) => oneWins(t, 1),
  'exactly one of 16 concurrent writers replaces a version': (t) => oneWins(t, 2),

  /** Each writer also creates a record of its own: in each round one of another kind. */
  async 'a writer that loses a race leaves no trace in any other record'(t) {
    await t.rounds(Math.max(2, t.others.length), async (round) => {
      const other = t.others[round % t.others.length]
      const id = (name: string | number) => t.id(`${round}-${name}`)
      await t.mustPut(record(id('wanted')))
      const outcomes = await atOnce(6, (i) => {
        const own = change(record(id(i)), other)
        const wanted = change(record(id('wanted'), 2, { commandId: `writer ${i}` }))
        return t.write(i % 2 === 0 ? [own, wanted] : [wanted, own])
      })
      const traces = await atOnce(6, async (i) => (await t.version(id(i), other)) === 1)
      demandSame(
        traces,
        outcomes,
        'whether the record that only one writer creates exists, and its outcome',
      )
      demandOne(outcomes, '6 writers replaced the same version')
    })
  },

  'concurrent increments by 12 workers on one record lose no increment and no other record': (t) =>
    nothingIsLost(t, [t]),
})

const writersInLists = cases(exclusiveInLists, {
  async 'a writer that loses a race leaves no trace in lists and due times'(t) {
    await t.rounds(2, async (round) => {
      const id = (name: string | number) => t.id(`${round}-${name}`)
      const [wanted, shared] = [id('wanted'), t.listName(`${round} shared`)]
      await t.mustPut(record(wanted, 1, { lists: [{ list: shared, at: 1 }], dueAt: round }))
      const written = Array.from({ length: 6 }, (_, i) => {
        // Half of the writers leave the record at its place, so that one that loses could remove the winner's.
        const list = i % 2 === 0 ? shared : t.listName(`${round} ${i}`)
        const places = { lists: [{ list, at: 1 }], dueAt: round }
        const replacement = record(wanted, 2, { ...places, commandId: `writer ${i}` })
        return [replacement, record(id(i), 1, places)]
      })
      const outcomes = await Promise.all(written.map((both) => t.put(...both)))
      const winner = outcomes.indexOf(true)
      const expected = (written[winner] ?? []).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const lists = [shared, ...written.map((_, i) => t.listName(`${round} ${i}`))]
      for (const list of lists) {
        const named = expected.filter((each) => each.lists?.[0]?.list === list)
        await t.lists(list, named, 'a list after 6 writers named records in it, of which one won')
      }
      await t.mustRemove(wanted, 2)
      await t.mustRemove(id(winner), 1)
      for (const list of lists) await t.lists(list, [], 'a list whose records were removed')
    })
    await t.dues([], { before: 1_000 })
  },
})

const writersOfTwo = cases(exclusiveOverTwo, {
  'concurrent increments by 12 workers over two stores lose no increment and no other record':
    async (t) => nothingIsLost(t, [t, await t.another()]),

  async 'exactly one of two stores that write one record concurrently succeeds'(t) {
    const stores = [t, await t.another()] as const
    await t.rounds(2, async (round) => {
      for (const version of [1, 2]) {
        const outcomes = await atOnce(8, (i) =>
          stores[i % 2 === 0 ? 0 : 1].put(
            record(t.id(round), version, { commandId: `writer ${i}` }),
          ),
        )
        demandOne(outcomes, `8 commits wrote version ${version} of one record over two stores`)
      }
    })
  },
})

const sets = cases(atomic, {
  /** Each commit writes all four records: a reader that sees a version of one must find it in the next too. */
  async 'a reader never sees a part of a commit'(t) {
    const ids = ['a', 'b', 'c', 'd'].map(t.id)
    const reads = ids.map((id) => () => t.version(id))
    const write = (version: number) => t.mustPut(...ids.map((id) => record(id, version)))
    await readWhile(t, 12 * t.searches, write, () => reads)
  },

  'concurrent commits over overlapping records are each all or nothing': (t) =>
    contend(t, ['a', 'b', 'c', 'd', 'e'], [], (current, _, index) => ({
      replaced: current.slice(0, 2 + index(3)),
      guarded: [],
      created: [],
    })),

  async 'concurrent moves of units between records keep their total'(t) {
    const index = seededIndex('units are kept')
    const ids = ['a', 'b', 'c', 'd'].map(t.id)
    await t.mustPut(...ids.map((id) => record(id, 1, numbered(100))))
    const moves = Array.from({ length: 12 * t.searches }, () => {
      const [from = '', to = ''] = shuffled(ids, index)
      return { from, to, units: 1 + index(9) }
    })
    await atOnce(6, async (worker) => {
      for (const { from, to, units } of moves.filter((_, i) => i % 6 === worker)) {
        await repeatedly(async () => {
          const [source, sink] = await Promise.all([t.existing(from), t.existing(to)])
          return t.put(
            record(from, source.version + 1, numbered(countOf(source) - units)),
            record(to, sink.version + 1, numbered(countOf(sink) + units)),
          )
        })
      }
    })
    const balances = await Promise.all(ids.map(async (id) => countOf(await t.existing(id))))
    const expected = ids.map((id) =>
      moves.reduce((balance, { from, to, units }) => {
        if (from === id) return balance - units
        return to === id ? balance + units : balance
      }, 100),
    )
    const what = `four balances after ${moves.length} successful moves between two of them`
    demandSame(balances, expected, what)
  },
})

const readers = cases(atomic, {
  async 'a reader never sees a part of a commit of several kinds, by load and list'(t) {
    // Half of the others, because the trials of the other half write the same pairs; and all kinds together.
    const partners = t.others.slice(0, Math.ceil(t.others.length / 2))
    const mixtures = [...partners.map((other) => [t.kind, other]), [t.kind, ...t.others]]
    await atOnce(mixtures.length, async (i) => {
      const mixed = [...new Set(mixtures[i])]
      const keys = mixed.map((kind) => ({ kind, id: t.id(i) }))
      // Each version moves the records between two lists.
      const listOf = (version: number) => t.listName(`${i} ${version % 2}`)
      const write = (version: number) => {
        const lists = [{ list: listOf(version), at: version }]
        const changes = keys.map(({ kind, id }) =>
          change(record(id, version, t.writes({ lists: 1 }, kind) ? { lists } : {}), kind),
        )
        return t.mustWrite(changes)
      }
      const listed = keys.filter(({ kind }) => t.writes({ lists: 1 }, kind))
      const reads = [
        ...keys.map(
          ({ kind, id }) =>
            (_: number) =>
              t.version(id, kind),
        ),
        ...listed.map(({ kind, id }) => async (newest: number) => {
          const { records } = await t.page(listOf(newest), { kind })
          const found = records.find((each) => each.id === id)
          if (found !== undefined || newest === 0) return found?.version ?? 0
          // A record that is not in the list must have a later version by now.
          const version = await t.version(id, kind)
          return version > newest ? version : 0
        }),
      ]
      reads.push(async () => {
        const versions = (await t.load(keys)).map((found) => found?.version ?? 0)
        demand(
          new Set(versions).size === 1,
          () =>
            `one load returned the versions ${show(versions)} of records that are always committed together; ` +
            'expected one snapshot',
        )
        return versions[0] ?? 0
      })
      const index = seededIndex(`readers ${t.kind} ${i}`)
      await readWhile(t, 6 * t.searches, write, () => shuffled(reads, index))
    })
  },
})

const serial = cases(exclusive, {
  /** Each replaces one or two of the current records, guards one or two others, and creates up to two new ones. */
  'concurrent commits that create, replace and guard the same records are serializable': (t) =>
    contend(t, ['a', 'b', 'c', 'd'], ['x', 'y'], (current, fresh, index) => {
      const replaced = 1 + index(2)
      return {
        replaced: current.slice(0, replaced),
        guarded: current.slice(replaced, replaced + 1 + index(2)),
        created: fresh.slice(0, index(3)),
      }
    }),
})

const guards = cases(exclusive, {
  async 'concurrent commits may guard the same record'(t) {
    const id = t.id('guarded')
    await t.mustPut(record(id))
    const outcomes = await atOnce(16, (i) => t.write([change(record(t.id(i)))], [guard(id, 1)]))
    const failed = outcomes.filter((outcome) => !outcome).length
    demand(
      failed === 0,
      `16 commits guarded the same record, which no writer changed, and ${failed} of them failed; all ` +
        'must succeed, because a guard writes nothing',
    )
  },

  'a commit fails if its guarded record was replaced before it took effect': (t) =>
    guardIsKept(t, t, 'replaced'),
  'a commit fails if its guarded record was removed before it took effect': (t) =>
    guardIsKept(t, t, 'removed'),
  'two commits that each guard the record that the other changes do not both succeed': (t) =>
    noWriteSkew(t, t),
})

const guardsOfTwo = cases(exclusiveOverTwo, {
  'a commit of a second store fails if its guarded record was replaced before it took effect':
    async (t) => guardIsKept(t, await t.another(), 'replaced'),
  'two commits of two stores that each guard the record that the other changes do not both succeed':
    async (t) => noWriteSkew(t, await t.another()),
})

const removals = cases(removal, {
  async 'exactly one of 16 concurrent removals of a record succeeds'(t) {
    await t.rounds(2, async (round) => {
      const id = t.id(round)
      await t.mustPut(record(id))
      const outcomes = await atOnce(16, () => t.removeOne(t.kind, id, 1))
      demandOne(outcomes, '16 calls removed one record concurrently')
      demand((await t.version(id)) === 0, 'a record still exists after its removal')
    })
  },

  async 'a record that is removed and replaced concurrently is either gone or replaced'(t) {
    await t.rounds(6, async (round) => {
      const id = t.id(round)
      await t.mustPut(record(id))
      const [removed, replaced] = await atOnce(2, async (i) => {
        await steps(i === 0 ? round % 4 : (round >> 2) % 3)
        return i === 0 ? t.removeOne(t.kind, id, 1) : t.put(record(id, 2))
      })
      const version = await t.version(id)
      demand(
        removed !== replaced,
        `a record was removed and replaced concurrently, both from version 1: remove returned ${show(removed)} ` +
          `and commit ${show(replaced)}; expected exactly one true`,
      )
      demand(
        version === (replaced ? 2 : 0),
        `a record was ${removed ? 'removed' : 'replaced'}, and is at version ${version} (0: does not exist)`,
      )
    })
  },
})

export const raceCases = [
  [writers, writersInLists, writersOfTwo, sets, readers, serial, guards, guardsOfTwo, removals],
].flat(2)

async function oneWins(t: Trial, version: 1 | 2): Promise<void> {
  await t.rounds(2, async (round) => {
    const id = t.id(round)
    if (version === 2) await t.mustPut(record(id))
    const all = Array.from({ length: 16 }, (_, i) =>
      record(id, version, { commandId: `writer ${i}` }),
    )
    const outcomes = await Promise.all(all.map((next) => t.put(next)))
    const did = version === 1 ? 'created one record' : 'replaced one version of a record'
    demandOne(outcomes, `16 commits concurrently ${did}`)
    const winner = all[outcomes.indexOf(true)] as TestRecord
    await t.finds(winner, 'the record after 16 concurrent writes')
  })
}

async function nothingIsLost(t: Trial, stores: readonly TrialStore[]): Promise<void> {
  const [workers, increments, id] = [12, t.searches, t.id('counter')]
  await t.mustPut(record(id, 1, numbered(0)))
  await atOnce(workers, async (worker) => {
    const store = stores[worker % stores.length] as TrialStore
    for (let i = 0; i < increments; i++) {
      await repeatedly(async () => {
        const current = await store.existing(id)
        const event = record(`${id}.${worker}.${i}`, 1, numbered(current.version))
        const next = record(id, current.version + 1, numbered(countOf(current) + 1))
        return store.write([change(next), change(event, t.other)])
      })
    }
  })
  const total = workers * increments
  const counter = await t.existing(id)
  demandSame(
    { version: counter.version, count: countOf(counter) },
    { version: total + 1, count: total },
    `a ${t.kind} that counts ${total} successful commits, each of which added 1`,
  )
  const counted = await atOnce(total, async (i) => {
    const event = await t.find(t.other, `${id}.${i % workers}.${Math.floor(i / workers)}`)
    return event === undefined ? 0 : countOf(event)
  })
  demandSame(
    counted.sort((a, b) => a - b),
    Array.from({ length: total }, (_, i) => i + 1),
    `the counter versions recorded by the events of ${total} commits, one event each (0: event lost)`,
  )
}

/**
 * Four readers read all the time while a writer writes one version after the other. A read that begins after another
 * has returned a version must return this version or a later one.
 *
 * @param order Returns reads, each of which gets the greatest version read so far and returns the least that it found.
 */
async function readWhile(
  t: Trial,
  versions: number,
  write: (version: number) => Promise<void>,
  order: () => readonly ((newest: number) => Promise<number>)[],
): Promise<void> {
  await write(1)
  let writing = true
  async function writeAll(): Promise<void> {
    try {
      for (let version = 2; version <= versions; version++) await write(version)
    } finally {
      writing = false
    }
  }
  async function readAll(reader: number): Promise<void> {
    for (let round = 1; writing; round++) {
      // A store that never waits would otherwise keep the writer from running.
      if (round % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 0))
      const reads = reader % 2 === 0 ? order() : order().toReversed()
      let newest = 0
      for (const read of reads) {
        const version = await read(newest)
        demand(
          version >= newest,
          `one read returned version ${newest} of a ${t.kind}, or of a record that the same commits write, and ` +
            `the next read version ${version} of another (0: not there); a commit must become visible as a whole`,
        )
        newest = version
      }
    }
  }
  await Promise.all([writeAll(), atOnce(4, readAll)])
}

/**
 * If the guarded record was replaced or removed, and a later load does not show the commit's changes, then
 * the commit can only take effect after that, and so it must fail.
 */
async function guardIsKept(
  t: Trial,
  guarding: TrialStore,
  fate: 'replaced' | 'removed',
): Promise<void> {
  await t.rounds(4, async (round) => {
    const guarded = t.id(round)
    await t.mustPut(record(guarded))
    const ids = Array.from({ length: 4 }, (_, i) => `${guarded}-${i}`)
    const commits = ids.map(async (id, i) => {
      await steps((round + i) % 6)
      return guarding.write([change(record(id))], [guard(guarded, 1)])
    })
    const end = async () => {
      await steps(round % 5)
      const ended = await (fate === 'removed'
        ? t.removeOne(t.kind, guarded, 1)
        : t.put(record(guarded, 2)))
      return { ended, visible: await t.versions(ids) }
    }
    const [{ ended, visible }, ...outcomes] = await Promise.all([end(), ...commits])
    demand(
      ended,
      `a record that other commits only guarded could not be ${fate}: the call returned false; expected true`,
    )
    demand(
      !outcomes.some((outcome, i) => outcome && visible[i] === 0),
      `a commit that guards a version took effect after the record was ${fate}; check the guard ` +
        'atomically with the writes (in SQL: lock the guarded row)',
    )
    demandSame(
      (await t.versions(ids)).map((version) => version === 1),
      outcomes,
      'whether each of four new records exists (expected exactly for those whose commit returned true)',
    )
    const after = await guarding.write([change(record(`${guarded}-late`))], [guard(guarded, 1)])
    demandFalse(after, `a commit with a guard on a record that was already ${fate}`)
  })
}

async function noWriteSkew(t: Trial, other: TrialStore): Promise<void> {
  await t.rounds(4, async (round) => {
    const [a, b] = [t.id(`${round}-a`), t.id(`${round}-b`)]
    await t.mustPut(record(a), record(b))
    const outcomes = await atOnce(2, async (i) => {
      await steps(i * (round % 4))
      return i === 0
        ? t.write([change(record(a, 2))], [guard(b, 1)])
        : other.write([change(record(b, 2))], [guard(a, 1)])
    })
    demand(
      !outcomes.every(Boolean),
      'two concurrent commits, each guarding the version of the record that the other replaces, both ' +
        'returned true; the later one must fail (in SQL: lock the guarded row)',
    )
    demandSame(
      await t.versions([a, b]),
      outcomes.map((outcome) => (outcome ? 2 : 1)),
      'versions of two records (expected: replaced exactly where the commit returned true)',
    )
    if (!outcomes.some(Boolean)) await t.mustWrite([change(record(a, 2))], [guard(b, 1)])
  })
}

/** Repeats an attempt until it succeeds. Every lost race has a winner, so this ends. */
async function repeatedly(attempt: () => Promise<boolean>): Promise<void> {
  // Far more attempts than a writer of one record can lose in this suite.
  for (let attempts = 0; attempts < 500; attempts++) {
    if (await attempt()) return
  }
  throw new Error(
    '500 commits in a row returned false, each over records loaded right before it; one of the racing commits ' +
      'must succeed each time',
  )
}

/** A number as the command id of a record, and back. */
const numbered = (count: number) => ({ commandId: `number-${count}.` })
const countOf = ({ commandId }: Stored) => Number(/^number-(-?\d+)-/.exec(commandId)?.[1])

/** Returns the same items in another order. */
function shuffled<Item>(items: readonly Item[], index: (bound: number) => number): Item[] {
  const left = [...items]
  return items.flatMap(() => left.splice(index(left.length), 1))
}

/** Records of one commit among several: those that it replaces and guards, as they are, and those that it creates. */
interface Part {
  readonly replaced: readonly Stored[]
  readonly guarded: readonly Stored[]
  readonly created: readonly Stored[]
}

/**
 * Runs ten commits over the same records concurrently, several times. The records must then be as the commits that
 * returned `true` leave them, in some order.
 *
 * @param pick Chooses records of a commit from the current and the new ones, which are in a random order.
 */
async function contend(
  t: Trial,
  names: readonly string[],
  newNames: readonly string[],
  pick: (current: Stored[], fresh: Stored[], index: (bound: number) => number) => Part,
): Promise<void> {
  const index = seededIndex(`contend ${t.kind} ${newNames.length}`)
  let current: Stored[] = names.map((name) => record(t.id(name)))
  await t.mustPut(...current)
  for (let round = 0; round < 3 * t.searches; round++) {
    const fresh = newNames.map((name) => record(t.id(`${round}-${name}`), 0))
    const commits = Array.from({ length: 10 }, (_, writer) => {
      const { replaced, guarded, created } = pick(
        shuffled(current, index),
        shuffled(fresh, index),
        index,
      )
      const commandId = `round ${round} w${writer}`
      const next = [...replaced, ...created].map(({ id, version }) =>
        record(id, version + 1, { commandId }),
      )
      return { next: shuffled(next, index), guarded }
    })
    const outcomes = await Promise.all(
      commits.map(async ({ next, guarded }, i) => {
        await steps(i % 3)
        const guards = guarded.map(({ id, version }) => guard(id, version))
        return t.write(
          next.map((each) => change(each)),
          guards,
        )
      }),
    )
    const winners = commits.filter((_, i) => outcomes[i] === true)
    demandSerial(winners)
    const written = winners.flatMap(({ next }) => next)
    const expected = [...current, ...fresh].map(
      (old) => written.find(({ id }) => id === old.id) ?? (old.version > 0 ? old : null),
    )
    demandSame(
      await Promise.all(
        [...current, ...fresh].map(async ({ id }) => (await t.find(t.kind, id)) ?? null),
      ),
      expected,
      'the records after 10 commits that create, replace and guard some of them (commits that returned true must ' +
        'write all of their records, the others none)',
    )
    current = expected.slice(0, current.length) as Stored[]
  }
}

/** Fails unless commits from the same versions, which all succeeded, are possible one after the other. */
function demandSerial(
  winners: readonly { readonly next: readonly Stored[]; readonly guarded: readonly Stored[] }[],
): void {
  demand(
    winners.length > 0,
    '10 commits from the same versions all returned false; one of them must succeed, because there was no ' +
      'other writer',
  )
  // A commit that guards a version must precede the commit that replaces it.
  for (let left = [...winners]; left.length > 0; ) {
    const later = left.filter(({ next }) =>
      left.some((other) => other.guarded.some(({ id }) => next.some((each) => each.id === id))),
    )
    demand(
      later.length < left.length,
      'several concurrent commits returned true that no serial order explains: each guards a version ' +
        'that another of them replaced (in SQL: lock the guarded rows)',
    )
    left = later
  }
  const ids = winners.flatMap(({ next }) => idsOf(next))
  demand(
    new Set(ids).size === ids.length,
    'two commits returned true that write the same record from the same version',
  )
}
