import type { Instant, Stored } from 'open-payments-server'
import {
  type CaseDefinition,
  change,
  demand,
  idsOf,
  isSame,
  mustCommit,
  mustPut,
  record,
  show,
  type Trial,
} from './trial.js'

export const dueCases: readonly CaseDefinition[] = [
  {
    name: 'due returns what is due at or before the instant, ordered by time and then by the bytes of the id',
    rule: 'due',
    check: ordersByTimeAndId,
  },
  {
    name: 'due returns the earliest records when more are due than its limit',
    rule: 'due',
    check: keepsLimit,
  },
  {
    name: 'due orders instants over the whole range of safe integers',
    rule: 'due',
    check: ordersWholeRange,
  },
  {
    name: 'due compares the namespace, the first 8 characters of the id, byte for byte',
    rule: 'due',
    check: keepsNamespace,
  },
  { name: 'due returns records of its kind only', rule: 'due', check: keepsKind },
  {
    name: 'the next version of a record changes or removes its due time',
    rule: 'due',
    check: movesWithVersion,
  },
]

/** The pause between two queries of a store that lags. */
const pauseMs = 20

interface DueQuery {
  /** Default: the namespace of the case. */
  readonly namespace?: string
  readonly before: Instant
  readonly limit?: number
  readonly kind?: 'grant' | 'event'
}

/** Repeats the query until it returns the expected ids. No query may return a record of another namespace. */
async function demandDue(
  { store, namespace: own, dueLagMs }: Trial,
  { namespace = own, before, limit = 100, kind = 'grant' }: DueQuery,
  expected: readonly string[],
): Promise<readonly Stored[]> {
  const deadline = performance.now() + dueLagMs
  for (;;) {
    const found = await store.due(kind, namespace, before, limit)
    const foreign = found.find(({ id }) => id.slice(0, 8) !== namespace)
    demand(
      foreign === undefined,
      `due for the namespace ${show(namespace)} returned ${show(foreign?.id)}, which has another prefix`,
    )
    demand(found.length <= limit, `due returned ${found.length} records; its limit was ${limit}`)
    if (JSON.stringify(idsOf(found)) === JSON.stringify(expected)) return found
    demand(
      performance.now() < deadline,
      `due before ${before} with a limit of ${limit} returned ${show(idsOf(found))}; ` +
        `expected ${show(expected)} within the permitted lag`,
    )
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

async function ordersByTimeAndId(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const id = (name: string) => `${namespace}${name}`
  const times = { '-b': 3, '-B': 3, '.': 3, '': 3, _a: 3, a0: 3, late: 11, now: 10, first: -5 }
  const records = Object.entries(times).map(([name, dueAt]) => record(id(name), 1, { dueAt }))
  await mustPut(store, ...records, record(id('never')), record(id('kept'), 1, { retainUntil: 1 }))
  const order = ['first', '', '-B', '-b', '.', '_a', 'a0', 'now', 'late'].map(id)
  const found = await demandDue(trial, { before: 11 }, order)
  for (const each of found) {
    const written = records.find((one) => one.id === each.id)
    demand(
      isSame(each, written),
      `due returned ${show(each)}; the committed record is ${show(written)}`,
    )
  }
  await demandDue(trial, { before: 10 }, order.slice(0, 8))
  await demandDue(trial, { before: 9 }, order.slice(0, 7))
  await demandDue(trial, { before: 2 }, order.slice(0, 1))
  await demandDue(trial, { before: -6 }, [])
}

async function keepsLimit(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const times = [5, 3, 7, 4, 1, 6, 2]
  await mustPut(store, ...times.map((dueAt) => record(`${namespace}-${dueAt}`, 1, { dueAt })))
  const order = [1, 2, 3, 4, 5, 6, 7].map((dueAt) => `${namespace}-${dueAt}`)
  await demandDue(trial, { before: 7 }, order)
  for (const limit of [1, 2, 6, 7, 8]) {
    await demandDue(trial, { before: 7, limit }, order.slice(0, limit))
  }
}

async function ordersWholeRange(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number
  const instants = [
    min,
    min + 1,
    -1_000,
    -999,
    0,
    9,
    10,
    2_147_483_648,
    4_102_444_800_000,
    max - 1,
    max,
  ]
  const id = (i: number) => `${namespace}-${(i * 4) % 11}`
  const records = instants.map((dueAt, i) => record(id(i), 1, { dueAt }))
  await mustPut(store, ...[...records].reverse())
  for (const [i, before] of instants.entries()) {
    await demandDue(trial, { before }, idsOf(records.slice(0, i + 1)))
  }
}

async function keepsNamespace(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const [start, end] = [namespace.slice(0, 4), namespace.slice(5)]
  // Pattern matching, case folding and collations treat these as equal.
  const namespaces = ['_', '-', 'x', 'X', '.', '%'].map((middle) => `${start}${middle}${end}`)
  const written = namespaces.filter((each) => !each.includes('%'))
  for (const each of written) {
    await mustPut(
      store,
      record(each, 1, { dueAt: 1 }),
      record(`${each}-a`, 1, { dueAt: 1 }),
      record(`${each}0123456789`, 1, { dueAt: 1 }),
    )
  }
  for (const each of namespaces) {
    const ids = written.includes(each) ? [each, `${each}-a`, `${each}0123456789`] : []
    await demandDue(trial, { namespace: each, before: 1 }, ids)
  }
}

async function keepsKind(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const [a, b, c] = ['a', 'b', 'c'].map((name) => `${namespace}-${name}`) as [
    string,
    string,
    string,
  ]
  const dueAt = 1
  await mustPut(store, record(a, 1, { dueAt }), record(b, 1, { dueAt }))
  const events = [b, c].map((id) => change(record(id, 1, { dueAt }), 'event'))
  await mustCommit(store, events)
  await demandDue(trial, { before: 1, kind: 'grant' }, [a, b])
  await demandDue(trial, { before: 1, kind: 'event' }, [b, c])
}

async function movesWithVersion(trial: Trial): Promise<void> {
  const { store, namespace } = trial
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  await mustPut(store, record(a, 1, { dueAt: 1 }), record(b, 1, { dueAt: 5 }))
  await demandDue(trial, { before: 9 }, [a, b])
  await mustPut(store, record(a, 2, { dueAt: 7 }))
  await demandDue(trial, { before: 9 }, [b, a])
  await demandDue(trial, { before: 6 }, [b])
  await mustPut(store, record(a, 3))
  await demandDue(trial, { before: 9 }, [b])
  await mustPut(store, record(a, 4, { dueAt: 2 }))
  const [first] = await demandDue(trial, { before: 9 }, [a, b])
  demand(first?.version === 4, `due returned version ${first?.version} of a record at version 4`)
  await store.remove('grant', b, 1)
  await demandDue(trial, { before: 9 }, [a])
}
