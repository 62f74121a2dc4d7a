import type { Store } from 'open-payments-server'
import { atomicityCases } from './conformance/atomicity.js'
import { checkedStore } from './conformance/checked-store.js'
import { concurrencyCases } from './conformance/concurrency.js'
import { contentionCases } from './conformance/contention.js'
import { dueCases } from './conformance/due.js'
import { fidelityCases } from './conformance/fidelity.js'
import { guardCases } from './conformance/guards.js'
import { idCases } from './conformance/ids.js'
import { listCases } from './conformance/lists.js'
import { pagingCases } from './conformance/paging.js'
import { removalCases } from './conformance/removal.js'
import type { CaseDefinition, ConformanceRule } from './conformance/trial.js'
import { visibilityCases } from './conformance/visibility.js'

/** One case of the suite, for whichever test runner. */
export interface ConformanceCase {
  /** A sentence about what the store does. No two cases have the same. */
  readonly name: string
  /** The rule of the contract in `Store`, by number, or the part of it that the case is about. */
  readonly rule: ConformanceRule
  /**
   * Runs the case on a store of its own making. It rejects with an `Error` that says what the store did and
   * what it should have done.
   */
  readonly run: () => Promise<void>
}

export interface ConformanceOptions {
  /**
   * True when two stores from `makeStore` are over the same data, as two processes would be: cases are added
   * that write with one and read with the other. Default false.
   */
  readonly sameData?: boolean
  /**
   * How long `due` may take to show a commit, in milliseconds: until then it is asked again. A store that does
   * not lag is asked once. Default 5000.
   */
  readonly dueLagMs?: number
  /** How long a case may take before it fails as hanging, in milliseconds. Default 60000. */
  readonly timeoutMs?: number
}

/**
 * The contract of `Store`, as cases to run a store against:
 *
 * ```ts
 * for (const { name, run } of storeConformance(() => myStore(pool))) test(name, run)
 * ```
 *
 * `makeStore` is called once for each case. Stores may share one database, with records in it already, and
 * cases may run at once and again: each has ids, lists and a namespace of its own. The records that they
 * write stay behind, so give it a database for tests. Races only show where there are some: run it against
 * the real database, over a pool of several connections, and give it some seconds.
 */
export function storeConformance(
  makeStore: () => Store | Promise<Store>,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
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
  ...listCases,
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
          `the store was still not done after ${timeoutMs} ms; commits that wait for each other ` +
            'should be resolved by the database or by a fixed order of locking',
        ),
      )
    }, timeoutMs)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

const namespaceAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** 8 characters without upper case, so that a store which folds case cannot mix up two cases. */
function newNamespace(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8))
  return Array.from(bytes, (byte) => namespaceAlphabet[byte % namespaceAlphabet.length]).join('')
}
