import { OptionError, type RecordKind, type Store } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { atomicityCases } from './conformance/atomicity.js'
import { concurrencyCases } from './conformance/concurrency.js'
import { contentionCases } from './conformance/contention.js'
import { corpus } from './conformance/corpus.js'
import { dueCases } from './conformance/due.js'
import { RuleError } from './conformance/expectations.js'
import { fidelityCases } from './conformance/fidelity.js'
import { guardCases } from './conformance/guards.js'
import { idCases } from './conformance/ids.js'
import { isolationCases } from './conformance/isolation.js'
import { listMembershipCases } from './conformance/list-membership.js'
import { listCases } from './conformance/lists.js'
import { loadAllCases } from './conformance/load-all.js'
import { pagingCases } from './conformance/paging.js'
import { removalCases } from './conformance/removal.js'
import { createDresser, type Dresser, type Shapes } from './conformance/shapes.js'
import {
  type CaseDefinition,
  type ConformanceRule,
  kinds as everyKind,
  type TestRecord,
  type Trial,
} from './conformance/trial.js'
import {
  checkedStore,
  dressedStore,
  type Ledger,
  removeWritten,
} from './conformance/trial-store.js'
import { visibilityCases } from './conformance/visibility.js'
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
 * Returns the contract of `Store` as test cases:
 *
 * ```ts
 * for (const { name, run, timeoutMs } of storeConformance(() => myStore(pool))) {
 *   test.concurrent(name, run, timeoutMs)
 * }
 * ```
 *
 * `makeStore` is called once for each case. Stores may share one database that already contains records, and
 * cases may run concurrently and repeatedly: each uses its own ids, lists and namespaces, and removes its records at
 * its end. Races only occur under real concurrency: run the suite against the real database with a pool of several
 * connections.
 *
 * @throws {OptionError} for an invalid or unknown option.
 */
export function storeConformance(
  makeStore: () => Store | Promise<Store>,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
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
  const { kinds, shapes, searches } = settings
  if (kinds.length === 0 || !kinds.every((kind) => everyKind.includes(kind))) {
    throw new OptionError('kinds', `must contain some of ${everyKind.join(', ')}`)
  }
  if (shapes !== 'any' && shapes !== 'real') {
    throw new OptionError('shapes', "must be 'any' or 'real'")
  }
  if (!Number.isSafeInteger(searches) || searches < 1) {
    throw new OptionError('searches', 'must be a positive integer')
  }
  return settings
}

const definitions: readonly CaseDefinition[] = [
  ...atomicityCases,
  ...concurrencyCases,
  ...contentionCases,
  ...guardCases,
  ...visibilityCases,
  ...fidelityCases,
  ...isolationCases,
  ...listCases,
  ...listMembershipCases,
  ...pagingCases,
  ...idCases,
  ...dueCases,
  ...removalCases,
  ...loadAllCases,
]

async function runCase(
  definition: CaseDefinition,
  makeStore: () => Store | Promise<Store>,
  settings: Settings,
): Promise<void> {
  const { shapes, timeoutMs } = settings
  const given = await makeStore()
  let second: Promise<Store> | undefined
  async function another(): Promise<Store> {
    second ??= Promise.resolve(makeStore())
    return second
  }
  const dresser = createDresser(await corpus(), shapes)
  const ledger: Ledger = { records: new Map() }
  const tried = settings.kinds.filter((kind) => dresser.writes(kind, definition.needs ?? {}))
  const trials = tried.map((kind) =>
    createTrial({ definition, kind, given, another, dresser, ledger, settings }),
  )
  const outcomes = await Promise.allSettled(
    trials.map((trial) => within(timeoutMs, stuck, definition.check(trial))),
  )
  const cleaned = within(timeoutMs, 'did not remove its records', removeWritten(given, ledger))
  const cleanUp = await Promise.allSettled([cleaned])
  const failures = outcomes.flatMap((outcome, i) =>
    outcome.status === 'rejected' ? { kind: tried[i] ?? '', reason: outcome.reason } : [],
  )
  const [problem] = failures
  if (problem !== undefined) throw failureOf(definition, failures, problem.reason)
  if (cleanUp[0].status === 'rejected') {
    throw new Error(`Store contract, remove: ${messageOf(cleanUp[0].reason)}`)
  }
}

function failureOf(
  { rule }: CaseDefinition,
  failures: readonly { readonly kind: string }[],
  reason: unknown,
): Error {
  const broken = reason instanceof RuleError ? reason.rule : rule
  const about = typeof broken === 'number' ? `rule ${broken}` : broken
  const kinds = failures.map(({ kind }) => kind).join(', ')
  return new Error(`Store contract, ${about} (${kinds}): ${messageOf(reason)}`, { cause: reason })
}

function messageOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}

interface TrialOptions {
  readonly definition: CaseDefinition
  readonly kind: RecordKind
  readonly given: Store
  readonly another: () => Promise<Store>
  readonly dresser: Dresser
  readonly ledger: Ledger
  readonly settings: Settings
}

function createTrial(options: TrialOptions): Trial {
  const { kind, given, another, dresser, ledger, settings } = options
  const { shapes, dueLagMs, searches } = settings
  const others = otherKinds(options)
  const [other = kind] = others
  const bare = (store: Store) => ({ ...checkedStore(store, ledger), kind, other })
  const present = (store: Store) => ({ ...dressedStore(bare(store), dresser), kind, other })
  return {
    store: present(given),
    bare: bare(given),
    given,
    present,
    another: async () => present(await another()),
    dress: (record) => structuredClone(dresser.dress(kind, record)) as TestRecord,
    namespace: newNamespace(),
    dueLagMs,
    others,
    searches,
    rounds: (count, work) => runRounds(count * searches, everyKind.indexOf(kind) * count, work),
    shapes,
    writes: (needs) => dresser.writes(kind, needs),
  }
}

/**
 * Returns the kinds that a case may use in addition to its own: the kinds to try or, if there is only one, all kinds.
 */
function otherKinds({ kind, dresser, definition, settings }: TrialOptions): readonly RecordKind[] {
  const pool = settings.kinds.length > 1 ? settings.kinds : everyKind
  const fitting = pool.filter((each) => dresser.writes(each, definition.needs ?? {}))
  const start = fitting.indexOf(kind)
  const others = [...fitting.slice(start + 1), ...fitting.slice(0, start)]
  return others.length > 0 ? others : [kind]
}

/** The number of rounds of a search that run at the same time. */
const roundsAtOnce = 4

async function runRounds(
  count: number,
  first: number,
  work: (round: number) => Promise<void>,
): Promise<void> {
  for (let done = 0; done < count; done += roundsAtOnce) {
    const some = Math.min(roundsAtOnce, count - done)
    await Promise.all(Array.from({ length: some }, (_, i) => work(first + done + i)))
  }
}

const stuck =
  'did not finish; the database must resolve commits that wait for each other, or the store must lock ' +
  'rows in a fixed order'

const namespaceAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns 8 characters without upper case, so that a store which folds case cannot confuse two cases. */
function newNamespace(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => namespaceAlphabet[byte % namespaceAlphabet.length]).join('')
}
