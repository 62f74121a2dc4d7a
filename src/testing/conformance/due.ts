import type { Instant, RecordKind, Stored } from 'open-payments-server'
import {
  type CaseDefinition,
  change,
  demand,
  demandSame,
  eventually,
  idsOf,
  mustCommit,
  mustPut,
  mustRemove,
  record,
  show,
  type Trial,
} from './trial.js'

export const dueCases: readonly CaseDefinition[] = [
  {
    name: 'due returns what is due at or before the instant, ordered by time and then by the bytes of the id',
    rule: 'due',
    needs: { due: true },
    check: ordersByTimeAndId,
  },
  {
    name: 'due returns the earliest records when more are due than its limit',
    rule: 'due',
    needs: { due: true },
    check: keepsLimit,
  },
  {
    name: 'due orders instants over the whole range of safe integers',
    rule: 'due',
    needs: { due: true },
    check: ordersWholeRange,
  },
  {
    name: 'due compares the namespace, the first 8 characters of the id, byte for byte',
    rule: 'due',
    needs: { due: true },
    check: keepsNamespace,
  },
  {
    name: 'due returns records of its kind only',
    rule: 'due',
    needs: { due: true },
    check: keepsKind,
  },
  {
    name: 'the next version of a record changes or removes its due time',
    rule: 'due',
    needs: { due: true },
    check: movesWithVersion,
  },
  {
    name: 'due returns the latest version of a record after the permitted lag',
    rule: 'due',
    needs: { due: true },
    check: showsLatest,
  },
]

interface DueQuery {
  /** Default: the namespace of the case. */
  readonly namespace?: string
  readonly before: Instant
  readonly limit?: number
  /** Default: the kind that is tried. */
  readonly kind?: RecordKind
}

/** Repeats the query until it returns the expected records. None may ever be of another namespace. */
async function demandDue(
  { store, namespace: own, dueLagMs }: Trial,
  { namespace = own, before, limit = 100, kind = store.kind }: DueQuery,
  expected: readonly Stored[],
): Promise<void> {
  await eventually(dueLagMs, async () => {
    const found = await store.due(kind, namespace, before, limit)
    const foreign = found.find(({ id }) => id.slice(0, 8) !== namespace)
    demand(
      foreign === undefined,
      `due for the namespace ${show(namespace)} returned ${show(foreign?.id)}, which has another prefix`,
    )
    demand(found.length <= limit, `due returned ${found.length} records; its limit was ${limit}`)
    demand(
      JSON.stringify(idsOf(found)) === JSON.stringify(idsOf(expected)),
      `due before ${before} with a limit of ${limit} returned ${show(idsOf(found))}; ` +
        `expected ${show(idsOf(expected))} within the permitted lag`,
    )
    demandSame(found, expected, 'the records from due, compared with the latest versions')
  })
}

async function ordersByTimeAndId(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const id = (name: string) => `${namespace}${name}`
  const times = {
    '-b': 30,
    '-B': 30,
    '.': 30,
    '': 30,
    _a: 30,
    a0: 30,
    late: 110,
    now: 100,
    first: 5,
  }
  const records = Object.entries(times).map(([name, dueAt]) => record(id(name), 1, { dueAt }))
  await mustPut(store, ...records, record(id('never')), record(id('kept'), 1, { retainUntil: 1 }))
  const order = ['first', '', '-B', '-b', '.', '_a', 'a0', 'now', 'late'].map((name) => {
    return records.find((each) => each.id === id(name)) as Stored
  })
  const counts = { 110: 9, 100: 8, 99: 7, 29: 1, 4: 0 }
  await Promise.all(
    Object.entries(counts).map(([before, count]) =>
      demandDue(trial, { before: Number(before) }, order.slice(0, count)),
    ),
  )
}

async function keepsLimit(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const times = [5, 3, 7, 4, 1, 6, 2]
  const records = times.map((dueAt) => record(`${namespace}-${dueAt}`, 1, { dueAt }))
  await mustPut(store, ...records)
  const order = records.toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))
  await Promise.all(
    [1, 2, 6, 7, 8].map((limit) => demandDue(trial, { before: 7, limit }, order.slice(0, limit))),
  )
}

/** Instants that text, 32-bit integers and doubles order or round differently. */
const instants: readonly Instant[] = [
  0, 9, 10, 999, 1_000, 2_147_483_648, 1_700_000_000_000, 1_700_000_000_001, 4_102_444_800_000,
]

async function ordersWholeRange(trial: Trial): Promise<void> {
  const { store, namespace, shapes } = trial
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number
  const all = shapes === 'real' ? instants : [min, min + 1, -1_000, -999, ...instants, max - 1, max]
  const id = (i: number) => `${namespace}-${String((i * 4) % all.length).padStart(2, '0')}`
  const records = all.map((dueAt, i) => record(id(i), 1, { dueAt }))
  await mustPut(store, ...[...records].reverse())
  await Promise.all(all.map((before, i) => demandDue(trial, { before }, records.slice(0, i + 1))))
}

async function keepsNamespace(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const [start, end] = [namespace.slice(0, 4), namespace.slice(5)]
  // Pattern matching, case folding and collations treat these as equal.
  const namespaces = ['_', '-', 'x', 'X', '.', '%'].map((middle) => `${start}${middle}${end}`)
  const dueIn = (each: string) =>
    each.includes('%')
      ? []
      : [each, `${each}-a`, `${each}0123456789`].map((id) => record(id, 1, { dueAt: 1 }))
  await mustPut(store, ...namespaces.flatMap(dueIn))
  await Promise.all(
    namespaces.map((each) => demandDue(trial, { namespace: each, before: 1 }, dueIn(each))),
  )
}

async function keepsKind(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const due = (name: string) => record(`${namespace}-${name}`, 1, { dueAt: 1 })
  await mustPut(store, due('a'), due('b'))
  await mustCommit(
    store,
    [due('b'), due('c')].map((next) => change(next, store.other)),
  )
  await Promise.all([
    demandDue(trial, { before: 1 }, [due('a'), due('b')]),
    demandDue(trial, { before: 1, kind: store.other }, [due('b'), due('c')]),
  ])
}

async function movesWithVersion(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const a = (version: number, dueAt?: number) =>
    record(`${namespace}-a`, version, dueAt === undefined ? {} : { dueAt })
  const b = record(`${namespace}-b`, 1, { dueAt: 5 })
  await mustPut(store, a(1, 1), b)
  await demandDue(trial, { before: 9 }, [a(1, 1), b])
  await mustPut(store, a(2, 7))
  await demandDue(trial, { before: 9 }, [b, a(2, 7)])
  await demandDue(trial, { before: 6 }, [b])
  await mustPut(store, a(3))
  await demandDue(trial, { before: 9 }, [b])
  await mustPut(store, a(4, 2))
  await demandDue(trial, { before: 9 }, [a(4, 2), b])
  await mustRemove(store, b.id, 1)
  await demandDue(trial, { before: 9 }, [a(4, 2)])
}

/** The due time stays the same, so a copy in an index has no other reason to change. */
async function showsLatest(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  for (const version of [1, 2, 3]) {
    const next = record(`${namespace}-a`, version, { dueAt: 1 })
    await mustPut(store, next)
    await demandDue(trial, { before: 1 }, [next])
  }
}
