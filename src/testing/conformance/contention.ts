import { seededIndex } from '../random.js'
import {
  atOnce,
  type CaseDefinition,
  change,
  commit,
  demand,
  demandSame,
  guard,
  mustPut,
  put,
  record,
  steps,
  type TestRecord,
  type Trial,
  versionOf,
} from './trial.js'
import { countOf, loadExisting, numbered, repeatedly, shuffled } from './workers.js'

export const contentionCases: readonly CaseDefinition[] = [
  {
    name: 'a reader never sees a part of a commit',
    rule: 1,
    search: true,
    check: readersSeeWhole,
  },
  {
    name: 'concurrent commits over overlapping records are each all or nothing',
    rule: 1,
    search: true,
    check: overlappingSets,
  },
  {
    name: 'concurrent moves of units between records keep their total',
    rule: 1,
    search: true,
    check: unitsAreKept,
  },
  {
    name: 'concurrent commits that create, replace and guard the same records are serializable',
    rule: 2,
    search: true,
    check: mixedCommits,
  },
]

const noneWon =
  '10 commits from the same versions all returned false; one of them must succeed, ' +
  'because there was no other writer'

async function overlappingSets({ store, namespace, searches }: Trial): Promise<void> {
  const index = seededIndex('overlapping sets')
  const ids = ['a', 'b', 'c', 'd', 'e'].map((name) => `${namespace}-${name}`)
  let current = ids.map((id) => record(id))
  await mustPut(store, ...current)

  for (let round = 0; round < 3 * searches; round++) {
    const commits = Array.from({ length: 10 }, (_, writer) => {
      const commandId = `round ${round} w${writer}`
      return shuffled(current, index)
        .slice(0, 2 + index(3))
        .map(({ id, version }) => record(id, version + 1, { commandId }))
    })
    const outcomes = await Promise.all(
      commits.map(async (next, i) => {
        await steps(i % 4)
        return put(store, ...next)
      }),
    )
    const written = commits.filter((_, i) => outcomes[i] === true).flat()
    demand(written.length > 0, noneWon)
    const expected = current.map((old) => {
      const winners = written.filter(({ id }) => id === old.id)
      demand(
        winners.length <= 1,
        `${winners.length} commits returned true for version ${old.version + 1} of one record`,
      )
      return winners[0] ?? old
    })
    const stored = await Promise.all(ids.map((id) => store.load(store.kind, id)))
    demandSame(
      stored,
      expected,
      'five records after 10 commits of two to four of them each (commits that returned true must write ' +
        'all of their records, the others none)',
    )
    current = expected
  }
}

async function unitsAreKept({ store, namespace, searches }: Trial): Promise<void> {
  const index = seededIndex('units are kept')
  const ids = ['a', 'b', 'c', 'd'].map((name) => `${namespace}-${name}`)
  await mustPut(store, ...ids.map((id) => record(id, 1, { commandId: numbered(100) })))
  const moves = Array.from({ length: 12 * searches }, () => {
    const [from = '', to = ''] = shuffled(ids, index)
    return { from, to, units: 1 + index(9) }
  })

  await atOnce(6, async (worker) => {
    for (const { from, to, units } of moves.filter((_, i) => i % 6 === worker)) {
      await repeatedly(async () => {
        const [source, sink] = await Promise.all([
          loadExisting(store, from),
          loadExisting(store, to),
        ])
        return put(
          store,
          record(from, source.version + 1, { commandId: numbered(countOf(source) - units) }),
          record(to, sink.version + 1, { commandId: numbered(countOf(sink) + units) }),
        )
      })
    }
  })

  const balances = await Promise.all(ids.map(async (id) => countOf(await loadExisting(store, id))))
  const expected = ids.map((id) =>
    moves.reduce((balance, { from, to, units }) => {
      if (from === id) return balance - units
      return to === id ? balance + units : balance
    }, 100),
  )
  demandSame(
    balances,
    expected,
    `four balances after ${moves.length} successful moves between two of them`,
  )
}

/** Each commit writes all four records: a reader that sees a version of one must find it in the next too. */
async function readersSeeWhole({ store, namespace, searches }: Trial): Promise<void> {
  const versions = 12 * searches
  const ids = ['a', 'b', 'c', 'd'].map((name) => `${namespace}-${name}`)
  const write = (version: number) => mustPut(store, ...ids.map((id) => record(id, version)))
  await write(1)
  let writing = true

  async function read(order: readonly string[]): Promise<void> {
    for (let round = 1; writing; round++) {
      // A store that never waits would otherwise keep the writer from running.
      if (round % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 0))
      let newest = 0
      for (const id of order) {
        const version = await versionOf(store, id)
        demand(
          version >= newest,
          `load returned version ${newest} of one record, and the next load version ${version} of another ` +
            'record that the same commits write; a commit must become visible as a whole',
        )
        newest = version
      }
    }
  }

  async function writeAll(): Promise<void> {
    try {
      for (let version = 2; version <= versions; version++) await write(version)
    } finally {
      writing = false
    }
  }

  const turned = [...ids].reverse()
  await Promise.all([writeAll(), read(ids), read(turned), read(ids), read(turned)])
}

interface MixedCommit {
  readonly replaced: readonly TestRecord[]
  readonly created: readonly TestRecord[]
  readonly guarded: readonly TestRecord[]
}

async function mixedCommits({ store, namespace, searches }: Trial): Promise<void> {
  const index = seededIndex('mixed commits')
  let current = ['a', 'b', 'c', 'd'].map((name) => record(`${namespace}-${name}`))
  await mustPut(store, ...current)

  for (let round = 0; round < 3 * searches; round++) {
    const fresh = ['x', 'y'].map((name) => `${namespace}-${round}-${name}`)
    const commits = Array.from({ length: 10 }, (_, writer) =>
      mixedCommit(current, fresh, `round ${round} w${writer}`, index),
    )
    const outcomes = await Promise.all(
      commits.map(async ({ replaced, created, guarded }, i) => {
        await steps(i % 3)
        const changes = shuffled([...replaced, ...created], index).map((next) => change(next))
        const guards = guarded.map(({ id, version }) => guard(id, version))
        return commit(store, changes, guards)
      }),
    )
    const written = writtenBy(commits.filter((_, i) => outcomes[i] === true))
    const expected = [...current, ...fresh.map((id) => ({ id }))].map(
      (old) => written.find(({ id }) => id === old.id) ?? ('version' in old ? old : undefined),
    )
    const ids = [...current.map(({ id }) => id), ...fresh]
    const stored = await Promise.all(ids.map((id) => store.load(store.kind, id)))
    demandSame(
      stored.map((each) => each ?? null),
      expected.map((each) => each ?? null),
      'six records after 10 commits that create, replace and guard some of them (commits that returned ' +
        'true must write all of their records, the others none)',
    )
    current = expected.slice(0, current.length) as TestRecord[]
  }
}

/** Replaces one or two of the current records, guards one or two others, and creates up to two new ones. */
function mixedCommit(
  current: readonly TestRecord[],
  fresh: readonly string[],
  commandId: string,
  index: (count: number) => number,
): MixedCommit {
  const [first = [], second = []] = [shuffled(current, index), shuffled(fresh, index)]
  const replaced = first.splice(0, 1 + index(2))
  return {
    replaced: replaced.map(({ id, version }) => record(id, version + 1, { commandId })),
    guarded: first.splice(0, 1 + index(2)),
    created: second.slice(0, index(3)).map((id) => record(id, 1, { commandId })),
  }
}

/** Returns the records of the commits that succeeded, which must be possible one after the other. */
function writtenBy(winners: readonly MixedCommit[]): readonly TestRecord[] {
  demand(winners.length > 0, noneWon)
  demand(
    canBeOrdered(winners),
    'several concurrent commits returned true that no serial order explains: each guards a version ' +
      'that another of them replaced (in SQL: lock the guarded rows)',
  )
  const written = winners.flatMap(({ replaced, created }) => [...replaced, ...created])
  demand(
    new Set(written.map(({ id }) => id)).size === written.length,
    'two commits returned true that write the same record from the same version',
  )
  return written
}

/** A commit that guards a version must precede the commit that replaces it. */
function canBeOrdered(commits: readonly MixedCommit[]): boolean {
  let left = [...commits]
  while (left.length > 0) {
    const first = left.filter((one) => {
      return !left.some((other) => other !== one && guards(other, one))
    })
    if (first.length === 0) return false
    left = left.filter((each) => !first.includes(each))
  }
  return true
}

function guards({ guarded }: MixedCommit, { replaced }: MixedCommit): boolean {
  return guarded.some(({ id }) => replaced.some((next) => next.id === id))
}
