import { requireKnownOptions } from 'open-payments-server/adapter'
import { accountsIn, type Book, emptyBook, type Spent } from './book.js'
import { filledIn, type HistoryOptions, historyOptions } from './histories.js'
import { actionsOf, type SpendingAction, type SpendingHistory } from './history.js'
import { expectationOf } from './model.js'

/** The expected outcome of one action of a history. */
export interface ExpectedStep {
  /** The index of its step in the history, from 0. */
  readonly step: number
  readonly action: SpendingAction
  /** `either` if both outcomes leave all amounts correct. */
  readonly answer: 'accepted' | 'refused' | 'either'
  /** Why the wallet must refuse it, one sentence for each granted item; otherwise empty. */
  readonly problems: readonly string[]
  /**
   * What has been spent afterwards, by grant, item and window: sent, or reserved because it may still be
   * sent.
   */
  readonly spent: readonly Spent[]
}

/**
 * Returns what payment limits require, computed by a model that shares no code with the library: which
 * requests of a history the wallet must accept, which it must refuse, and what every window has spent after
 * each action. Concurrent actions are applied in the order in which they are listed, and an action during which the
 * store fails as if it had not failed.
 *
 * @param options the options of the history; only `intervalCounting` and `holdMs` matter.
 * @throws {OptionError} for an unknown option.
 */
export function expectedSpending(
  history: SpendingHistory,
  options: Pick<HistoryOptions, 'intervalCounting' | 'holdMs'> = {},
): readonly ExpectedStep[] {
  requireKnownOptions<HistoryOptions>('', options, historyOptions)
  const { rules } = filledIn({ ...options, scene: history.scene })
  let book: Book = emptyBook
  let now = history.start
  return history.steps.flatMap((step, index) => {
    return actionsOf(step).map((action): ExpectedStep => {
      if (action.type === 'wait') now = action.until
      const { answer, after, problems = [] } = expectationOf(book, action, now, rules)
      if (answer !== 'refused') book = after
      return { step: index, action, answer, problems, spent: accountsIn(book) }
    })
  })
}
