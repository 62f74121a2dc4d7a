import type fc from 'fast-check'
import { type Instant, InvalidInputError, type Store } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { anyHistory, filledIn, type HistoryOptions, historyOptions } from './generate.js'
import { readable, type SpendingHistory, type SpendingScene } from './history.js'
import { type Race, runHistory, SpendingError } from './run.js'
import {
  libraryServers,
  type SpendingPorts,
  type SpendingServers,
  serversWallet,
} from './servers.js'
import { racingStore } from './stores.js'
import type { FastCheck } from './values.js'
import type { SpendingWallet } from './wallet.js'

/*
 * One search, in the order of its files: `generate` draws commands, and `resolve` turns them into a history. `run`
 * performs the history on a wallet (`wallet`, `servers`, `stores`), and `oracle` compares each answer with `model`,
 * which counts in the windows of `windows`. fast-check shrinks the commands of a history that fails. `history` prints
 * it.
 */

/** A store to test. The library's servers run on it with a clock and a client of the test. */
export interface StoreSubject extends HistoryOptions {
  /** Called for each history. Stores may share one database. Records stay in it, so use a test database. */
  readonly store: () => Store | Promise<Store>
}

/** The properties of a wallet that the histories depend on. */
export interface SubjectOptions extends HistoryOptions {
  /** An account of the wallet, and incoming payments that it can pay at the given prices. */
  readonly scene: SpendingScene
  /**
   * True if the wallet may refuse payments within the limits for its own reasons. Default false: an error.
   */
  readonly mayRefuse?: boolean
}

/**
 * Servers of this library to test, with the host's own store, prices and `mayPay`. If their policy differs from the
 * defaults, set `holdMs`, `decideMs` and `intervalCounting` as in the policy.
 */
export interface ServersSubject extends SubjectOptions {
  /** Called for each history. Creates the servers as the host does, with the ports of the test. */
  readonly servers: (ports: SpendingPorts) => SpendingServers | Promise<SpendingServers>
}

/** A complete wallet to test, in this process or behind a network. */
export interface WalletSubject extends SubjectOptions {
  /** Called for each history. If the wallet has `setClock`, its clock may show any time until the test calls it. */
  readonly wallet: () => SpendingWallet | Promise<SpendingWallet>
  /**
   * The start of the histories. Required if the wallet has no `setClock`: then it must be the present, such as
   * `Date.now()`, because otherwise all windows of the limits are over, or have not begun.
   */
  readonly start?: Instant
}

/**
 * Returns a fast-check property that searches for ways to spend more than a grant's limits allow.
 *
 * It runs histories of payments and checks after each step that no window of a limit has more sent or reserved than
 * the limit allows, despite failures, expired holds, repeats, cancellations, doubts that are decided later, concurrency
 * and errors of the store; that no repeat pays twice, or pays another amount; that no grant counts, and no client
 * lists, what the owner of the account pays; and that the wallet refuses no payment within the limits. A model that
 * shares no code with the library determines the expected results. The error shows the shortest history found, step by
 * step, with the window, its limit, the amount spent and the excess. fast-check prints it as the counterexample, and
 * sets it as the `cause` of its own error.
 *
 * @throws {InvalidInputError} for an unknown or missing member of the subject. The property itself fails with it if
 *   `start` is missing.
 *
 * @example
 * ```ts
 * import fc from 'fast-check'
 * import { postgresStore } from 'open-payments-server/postgres'
 * import { spendingProperty } from 'open-payments-server-testing'
 *
 * await fc.assert(spendingProperty(fc, { store: () => postgresStore(pool) }), { numRuns: 2_000 })
 * ```
 */
export function spendingProperty(
  fc: FastCheck,
  subject: StoreSubject | ServersSubject | WalletSubject,
): fc.IAsyncPropertyWithHooks<[SpendingHistory]> {
  requireKnownSubject(subject)
  const { rules } = filledIn(subject)
  const mayRefuse = 'mayRefuse' in subject && subject.mayRefuse === true
  // fast-check generates histories, and shrinks one that fails by removing and simplifying its commands.
  return fc.asyncProperty(anyHistory(fc, subject), async (history) => {
    const { wallet, race } = await create(subject)
    try {
      await runHistory(history, wallet, { ...rules, mayRefuse }, race)
    } catch (error) {
      // fast-check prints the history. Some test runners show the message of its error and not the cause.
      if (error instanceof SpendingError) readable(history, () => `\n${error.message}`)
      throw error
    }
  })
}

/** The subject on which a history runs. */
interface Created {
  readonly wallet: SpendingWallet
  readonly race?: Race
}

/** Creates the wallet for one history. */
async function create(subject: StoreSubject | ServersSubject | WalletSubject): Promise<Created> {
  const { scene, rules } = filledIn(subject)
  if ('wallet' in subject) {
    const wallet = await subject.wallet()
    if (wallet.setClock === undefined && subject.start === undefined) {
      await wallet.close?.()
      throw new InvalidInputError('start', 'must be the present: the wallet has no setClock')
    }
    return { wallet }
  }
  if ('servers' in subject) {
    const { servers, wholePayments } = subject
    return { wallet: await serversWallet(servers, scene, true, wholePayments) }
  }
  const { store, problem, race } = racingStore(await subject.store())
  const servers = (ports: SpendingPorts) => libraryServers(ports.failing(store), ports, rules)
  const wallet = await serversWallet(servers, scene, false)
  return { wallet: { ...wallet, problem }, race }
}

function requireKnownSubject(subject: StoreSubject | ServersSubject | WalletSubject): void {
  const kind = 'wallet' in subject ? 'wallet' : 'servers' in subject ? 'servers' : 'store'
  const own = kind === 'store' ? { store: true } : { [kind]: true, mayRefuse: true }
  requireKnownOptions('', subject, { ...historyOptions, ...own })
  const create: unknown = (subject as unknown as Readonly<Record<string, unknown>>)[kind]
  if (typeof create !== 'function') {
    throw new InvalidInputError(
      kind,
      `must be a function that returns the ${kind} for each history`,
    )
  }
}
