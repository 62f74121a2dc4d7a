import type { Store } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { atomicityCases } from './conformance/atomicity.js'
import { checkedStore } from './conformance/checked-store.js'
import { concurrencyCases } from './conformance/concurrency.js'
import { contentionCases } from './conformance/contention.js'
import { dueCases } from './conformance/due.js'
import { fidelityCases } from './conformance/fidelity.js'
import { guardCases } from './conformance/guards.js'
import { idCases } from './conformance/ids.js'
import { isolationCases } from './conformance/isolation.js'
import { listMembershipCases } from './conformance/list-membership.js'
import { listCases } from './conformance/lists.js'
import { pagingCases } from './conformance/paging.js'
import { removalCases } from './conformance/removal.js'
import type { CaseDefinition, ConformanceRule } from './conformance/trial.js'
import { visibilityCases } from './conformance/visibility.js'

/** One case of the suite, for any test runner. */
export interface ConformanceCase {
  /** A sentence that states what the store does. Unique within the suite. */
  readonly name: string
  /** The rule of the `Store` contract, by number, or the part of it that the case checks. */
  readonly rule: ConformanceRule
  /**
   * Runs the case on a new store from `makeStore`. Rejects with an `Error` that names the rule, what the
   * store did and what it should have done.
   */
  readonly run: () => Promise<void>
}

export interface ConformanceOptions {
  /**
   * True if all stores from `makeStore` share the same data, like two processes on one database. This adds
   * the cases that write through one store and read through another. Default false.
   */
  readonly sameData?: boolean
  /**
   * How long `due` may lag behind a commit, in milliseconds: the cases repeat the query until then. A store
   * that does not lag is queried once. Default 5000.
   */
  readonly dueLagMs?: number
  /** How long a case may run before it fails with a timeout, in milliseconds. Default 60000. */
  readonly timeoutMs?: number
}

/**
 * Returns the contract of `Store` as test cases:
 *
 * ```ts
 * for (const { name, run } of storeConformance(() => myStore(pool))) test(name, run)
 * ```
 *
 * `makeStore` is called once for each case. Stores may share one database that already contains records, and
 * cases may run concurrently and repeatedly: each uses its own ids, lists and namespace. The cases do not
 * remove their records, so use a test database. Races only occur under real concurrency: run the suite
 * against the real database with a pool of several connections, and allow some seconds.
 *
 * @throws {OptionError} for an unknown option.
 */
export function storeConformance(
  makeStore: () => Store | Promise<Store>,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
  requireKnownOptions('', options, { sameData: true, dueLagMs: true, timeoutMs: true })
  const { sameData = false, dueLagMs = 5_000, timeoutMs = 60_000 } = options
  return definitions
    .filter(({ stores = 1 }) => stores === 1 || sameData)
    .map((definition) => ({
      name: definition.name,
      rule: definition.rule,
      run: () => runCase(definition, makeStore, { dueLagMs, timeoutMs }),
    }))
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
]

async function runCase(
  { rule, check }: CaseDefinition,
  makeStore: () => Store | Promise<Store>,
  { dueLagMs, timeoutMs }: { readonly dueLagMs: number; readonly timeoutMs: number },
): Promise<void> {
  const about = typeof rule === 'number' ? `rule ${rule}` : rule
  const given = await makeStore()
  const trial = {
    given,
    store: checkedStore(given),
    another: async () => checkedStore(await makeStore()),
    namespace: newNamespace(),
    dueLagMs,
  }
  try {
    await within(timeoutMs, check(trial))
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new Error(`Store contract, ${about}: ${problem}`, { cause: error })
  }
}

function within<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(
        new Error(
          `the case did not finish within ${timeoutMs} ms; the database must resolve commits that wait ` +
            'for each other, or the store must lock rows in a fixed order',
        ),
      )
    }, timeoutMs)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

const namespaceAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns 8 characters without upper case, so that a store which folds case cannot confuse two cases. */
function newNamespace(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => namespaceAlphabet[byte % namespaceAlphabet.length]).join('')
}
