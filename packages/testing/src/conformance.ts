import { InvalidInputError, type Store } from 'open-payments-server'
import type { RecordKind } from 'open-payments-server/adapter'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { commitCases } from './conformance/commits.js'
import { corpus } from './conformance/corpus.js'
import { dueCases } from './conformance/due.js'
import { type ConformanceRule, RuleError } from './conformance/expectations.js'
import { fullSizeCases } from './conformance/full-sizes.js'
import { listCases } from './conformance/lists.js'
import { raceCases } from './conformance/races.js'
import { readCases } from './conformance/reads.js'
import { createDresser, type Shapes } from './conformance/records.js'
import {
  type CaseDefinition,
  createTrial,
  kinds as everyKind,
  type Ledger,
  removeWritten,
} from './conformance/trial.js'
import { valueCases } from './conformance/values.js'
import { within } from './within.js'

/** One case of the suite, for any test runner. */
export interface ConformanceCase {
  /** A sentence that states what the store does, unique within the suite. The name of a search ends in `(search)`. */
  readonly name: string
  /** The rule of the `Store` contract, by number, or the part of it that the case checks. */
  readonly rule: ConformanceRule
  /**
   * Whether the case searches for a race. A search that passes may have missed a fault: see the option `searches`.
   * All other cases find their faults in every run.
   */
  readonly search: boolean
  /**
   * The time limit to give to the test runner, in milliseconds. The case itself ends earlier, and says what it waited
   * for.
   */
  readonly timeoutMs: number
  /**
   * Runs the case on a new store from `makeStore`, for every kind of record concurrently, and removes the records that
   * it wrote. Rejects with an `Error` that names the rule, the kinds, what the store did and what it should have done.
   */
  readonly run: () => Promise<void>
}

/** What the suite may expect of the stores. */
export interface ConformanceOptions {
  /**
   * True if all stores from `makeStore` share the same data, like two processes on one database. This adds
   * the cases that write through one store and read through another. Default false.
   */
  readonly sameData?: boolean
  /** The kinds of record to try. Default: all. A case that needs a second kind may use another one for that. */
  readonly kinds?: readonly RecordKind[]
  /**
   * `real` for a store with a column for each member of a record, and no copy of its JSON: the suite then only
   * writes records of the shapes that the library writes, with random values. Default `any`: also records with any
   * JSON, in any list and due at any instant.
   */
  readonly shapes?: Shapes
  /** How many times longer than by default each search runs: a positive integer. Default 1. */
  readonly searches?: number
  /**
   * How long `due` may lag behind a commit, in milliseconds: the cases repeat the query until then. A store
   * that does not lag is queried once. Default 5000.
   */
  readonly dueLagMs?: number
  /** How long a case may run before it fails with a timeout, in milliseconds. Default 60000. */
  readonly timeoutMs?: number
}

type Settings = Required<ConformanceOptions>

const defaults: Settings = {
  sameData: false,
  kinds: everyKind,
  shapes: 'any',
  searches: 1,
  dueLagMs: 5_000,
  timeoutMs: 60_000,
}

/**
 * Returns the contract of `Store` as test cases, for any test runner.
 *
 * `makeStore` is called once for each case. Stores may share one database that already contains records, and
 * cases may run concurrently and repeatedly: each uses its own ids, lists and namespaces, and removes its records at
 * its end. Races only occur under real concurrency: run the suite against the real database with a pool of several
 * connections.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { postgresStore } from 'open-payments-server/postgres'
 * import { storeConformance } from 'open-payments-server-testing'
 * import { test } from 'vitest'
 *
 * for (const { name, run, timeoutMs } of storeConformance(() => postgresStore(pool))) {
 *   test.concurrent(name, run, timeoutMs)
 * }
 * ```
 */
export function storeConformance(
  makeStore: () => Store | Promise<Store>,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
  if (typeof makeStore !== 'function') {
    throw new InvalidInputError(
      'makeStore',
      'must be a function that returns a store for each case',
    )
  }
  const settings = settingsOf(options)
  return definitions
    .filter(({ stores = 1, shapes }) => {
      return (stores === 1 || settings.sameData) && (shapes !== 'any' || settings.shapes === 'any')
    })
    .map((definition) => {
      const { rule, search = false, name } = definition
      const limitMs = settings.timeoutMs * (search ? settings.searches : 1)
      return {
        name: search ? `${name} (search)` : name,
        rule,
        search,
        // After its time limit, the case gets the same time again to remove its records.
        timeoutMs: 2 * limitMs + 1_000,
        run: () => runCase(definition, makeStore, { ...settings, timeoutMs: limitMs }),
      }
    })
}

function settingsOf(options: ConformanceOptions): Settings {
  requireKnownOptions('', options, { ...defaults })
  const settings = { ...defaults, ...options }
  const { kinds, shapes } = settings
  if (kinds.length === 0 || !kinds.every((kind) => everyKind.includes(kind))) {
    throw new InvalidInputError('kinds', `must contain some of ${everyKind.join(', ')}`)
  }
  if (shapes !== 'any' && shapes !== 'real') {
    throw new InvalidInputError('shapes', "must be 'any' or 'real'")
  }
  for (const [name, min] of [
    ['searches', 1],
    ['dueLagMs', 0],
    ['timeoutMs', 1],
  ] as const) {
    if (!Number.isSafeInteger(settings[name]) || settings[name] < min) {
      throw new InvalidInputError(name, `must be an integer of at least ${min}`)
    }
  }
  return settings
}

const definitions: readonly CaseDefinition[] = [
  ...commitCases,
  ...raceCases,
  ...fullSizeCases,
  ...readCases,
  ...valueCases,
  ...listCases,
  ...dueCases,
]

async function runCase(
  definition: CaseDefinition,
  makeStore: () => Store | Promise<Store>,
  settings: Settings,
): Promise<void> {
  const { timeoutMs, ...options } = settings
  const given = await makeStore()
  let second: Promise<Store> | undefined
  const another = () => {
    second ??= Promise.resolve(makeStore())
    return second
  }
  const dresser = createDresser(await corpus(), settings.shapes)
  const ledger: Ledger = new Map()
  const { needs = {} } = definition
  const tried = settings.kinds.filter((kind) => dresser.writes(kind, needs))
  const shared = { ...options, tried: settings.kinds, needs, given, another, dresser, ledger }
  const outcomes = await Promise.allSettled(
    tried.map((kind) =>
      within(timeoutMs, stuck, definition.check(createTrial({ ...shared, kind }))),
    ),
  )
  const cleaned = within(timeoutMs, 'did not remove its records', removeWritten(given, ledger))
  const [cleanUp] = await Promise.allSettled([cleaned])
  const failures = outcomes.flatMap((outcome, i) =>
    outcome.status === 'rejected' ? { kind: tried[i], reason: outcome.reason } : [],
  )
  const [first] = failures
  if (first !== undefined) {
    const { reason } = first
    const broken = reason instanceof RuleError ? reason.rule : definition.rule
    const about = typeof broken === 'number' ? `rule ${broken}` : broken
    const where = failures.map(({ kind }) => kind).join(', ')
    throw new Error(`Store contract, ${about} (${where}): ${messageOf(reason)}`, { cause: reason })
  }
  if (cleanUp.status === 'rejected') {
    throw new Error(`Store contract, remove: ${messageOf(cleanUp.reason)}`)
  }
}

const stuck =
  'did not finish; the database must resolve commits that wait for each other, or the store must lock ' +
  'rows in a fixed order; no statement of a commit may run outside of the connection of its transaction; ' +
  'the pool must have a free connection, or get one when a call ends'

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}
