import { accountsIn, type Book, emptyBook, type Spent } from './book.js'
import { filledIn, type HistoryOptions } from './histories.js'
import type { SpendingAction, SpendingHistory } from './history.js'
import { expectationOf } from './model.js'

/** What is to be expected of one action of a history. */
export interface ExpectedStep {
  /** The place of its step in the history, from 0. */
  readonly step: number
  readonly action: SpendingAction
  /** `either` where it makes no difference to anybody's money. */
  readonly answer: 'accepted' | 'refused' | 'either'
  /** Why it has to be refused, a sentence for each granted item; empty otherwise. */
  readonly problems: readonly string[]
  /** What has been spent after it: sent, or reserved for what may still be sent, by grant, item and window. */
  readonly spent: readonly Spent[]
}

/**
 * What payment limits ask for, worked out by a model that shares no code with the library: which creations of a
 * history must be accepted, which must be refused, and what every window has spent after each. What runs at once
 * is taken in the order in which it stands.
 *
 * @param options as they were given for the history; of these `intervalCounting` and `holdMs` count.
 */
export function expectedSpending(
  history: SpendingHistory,
  options: Pick<HistoryOptions, 'intervalCounting' | 'holdMs'> = {},
): readonly ExpectedStep[] {
  const { rules } = filledIn({ ...options, scene: history.scene })
  let book: Book = emptyBook
  let now = history.start
  return history.steps.flatMap((step, index) => {
    const actions = step.type === 'at once' ? step.actions : [step]
    return actions.map((action): ExpectedStep => {
      if (action.type === 'wait') now = action.until
      const { answer, after, problems = [] } = expectationOf(book, action, now, rules)
      if (answer !== 'refused') book = after
      return { step: index, action, answer, problems, spent: accountsIn(book) }
    })
  })
}
