import type fc from 'fast-check'
import type { Instant, Store } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import type { FastCheck } from './fast-check.js'
import { racingStore } from './gate.js'
import { anyHistory, filledIn, type HistoryOptions, historyOptions } from './histories.js'
import type { SpendingHistory } from './history.js'
import { libraryWallet } from './library-wallet.js'
import { play } from './play.js'
import type { SpendingScene } from './scene.js'
import type { SpendingWallet } from './wallet.js'

/** A store to test. The library's servers run on it with a clock and a client instance of the test. */
export interface StoreSubject extends HistoryOptions {
  /** Called for each history. Stores may share one database. Records stay in it, so use a test database. */
  readonly store: () => Store | Promise<Store>
}

/** A complete wallet to test, in this process or behind a network. */
export interface WalletSubject extends HistoryOptions {
  /** Called for each history. The wallet may show any time until `setClock` is called, if it exists. */
  readonly wallet: () => SpendingWallet | Promise<SpendingWallet>
  /** An account of the wallet, and incoming payments that it can pay at the given prices. */
  readonly scene: SpendingScene
  /** The start of the histories. Use the present if the wallet's clock cannot be set. */
  readonly start?: Instant
  /**
   * True if the wallet may refuse payments within the limits for its own reasons. Default false: an error.
   */
  readonly mayRefuse?: boolean
}

/**
 * Returns a fast-check property that searches for ways to spend more than a grant's limits allow:
 *
 * ```ts
 * await fc.assert(spendingProperty(fc, { store: () => myStore(pool) }), { numRuns: 2_000 })
 * ```
 *
 * It plays histories of payments and checks after each step that no window of a limit has more sent or
 * reserved than the limit allows, despite failures, expired holds, repeats, cancellations and concurrency;
 * that no repeat pays twice; and that the wallet refuses no payment within the limits. A model that shares no
 * code with the library determines the expected results. The error shows the shortest history found, step by
 * step, with the window, its limit, the amount spent and the excess; fast-check sets it as the `cause` of its
 * own error.
 *
 * @throws {OptionError} for an unknown member of the subject.
 */
export function spendingProperty(
  fc: FastCheck,
  subject: StoreSubject | WalletSubject,
): fc.IAsyncPropertyWithHooks<[SpendingHistory]> {
  requireKnownSubject(subject)
  const { scene, rules } = filledIn(subject)
  const histories = anyHistory(fc, subject)
  if ('wallet' in subject) {
    const { wallet: makeWallet, mayRefuse = false } = subject
    return fc.asyncProperty(histories, async (history) => {
      const wallet = await makeWallet()
      try {
        await play(history, wallet, { ...rules, mayRefuse })
      } finally {
        await wallet.close?.()
      }
    })
  }
  const options = { scene, ...rules }
  return fc.asyncProperty(histories, async (history) => {
    const racing = racingStore(await subject.store())
    const wallet = libraryWallet(racing.store, options)
    const watched = { ...wallet, problem: racing.problem }
    await play(history, watched, { ...rules, mayRefuse: false }, racing.race)
  })
}

function requireKnownSubject(subject: StoreSubject | WalletSubject): void {
  if ('wallet' in subject) {
    const known = { ...historyOptions, wallet: true, mayRefuse: true }
    requireKnownOptions('', subject, known)
  } else {
    requireKnownOptions('', subject, { ...historyOptions, store: true })
  }
}
