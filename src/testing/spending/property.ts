import type fc from 'fast-check'
import type { Instant, Store } from 'open-payments-server'
import type { FastCheck } from './fast-check.js'
import { racingStore } from './gate.js'
import { anyHistory, filledIn, type HistoryOptions } from './histories.js'
import type { SpendingHistory } from './history.js'
import { libraryWallet } from './library-wallet.js'
import { play } from './play.js'
import type { SpendingScene } from './scene.js'
import type { SpendingWallet } from './wallet.js'

/** A store to try: the library's servers are put on it, with a clock and a client instance of the test. */
export interface StoreSubject extends HistoryOptions {
  /** Called for each history. Stores may share one database, which keeps what is written: one for tests. */
  readonly store: () => Store | Promise<Store>
}

/** A whole wallet to try, running or not. */
export interface WalletSubject extends HistoryOptions {
  /** Called for each history. Until the wallet's clock is set, if it can be, it shows any time. */
  readonly wallet: () => SpendingWallet | Promise<SpendingWallet>
  /** An account of the wallet, and incoming payments that it can pay at these prices. */
  readonly scene: SpendingScene
  /** When histories begin. Give the present where the wallet's clock cannot be set. */
  readonly start?: Instant
  /** True if the wallet may refuse what has room, for reasons of its own. Default false: that is an error. */
  readonly mayRefuse?: boolean
}

/**
 * Searches for a way to spend more than a grant's limits allow:
 *
 * ```ts
 * await fc.assert(spendingProperty(fc, { store: () => myStore(pool) }), { numRuns: 2_000 })
 * ```
 *
 * It plays histories of payments and looks after each step: no window of a limit has had more sent or reserved
 * than the limit says, whatever has failed, lapsed, been repeated, withdrawn or done at once; no repeat has paid
 * twice; nothing was refused that had room. What is right is worked out by a model that shares no code with the
 * library. The error tells the shortest history that was found, step by step, with the window, its limit, what
 * was spent and by how much that is over; fast-check puts it in the `cause` of its own error.
 */
export function spendingProperty(
  fc: FastCheck,
  subject: StoreSubject | WalletSubject,
): fc.IAsyncPropertyWithHooks<[SpendingHistory]> {
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
