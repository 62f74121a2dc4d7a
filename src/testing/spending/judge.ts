import type { Amount, Instant } from 'open-payments-server'
import {
  amended,
  type Book,
  emptyBook,
  overspentIn,
  paymentIn,
  type SpendingRules,
  spentIn,
} from './book.js'
import type { SpendingAction } from './history.js'
import { expectationOf } from './model.js'
import { valueText } from './text.js'

export interface JudgeRules extends SpendingRules {
  /** Whether the wallet may refuse what has room, for reasons of its own. */
  readonly mayRefuse: boolean
}

/** An action that was carried out, what the wallet answered, and when it may have decided. */
export interface Observation {
  readonly action: SpendingAction
  readonly answer: {
    readonly accepted: boolean
    readonly id?: string
    readonly spentDebitAmount?: Amount
    readonly spentReceiveAmount?: Amount
    readonly reason?: string
  }
  readonly moments: readonly Instant[]
}

/** Follows what a wallet does, and tells what is wrong with it. */
export interface Judge {
  /** Takes note of actions that ran at once. Answers what is wrong with them, in sentences; nothing most often. */
  observe(observations: readonly Observation[]): readonly string[]
  /** What the wallet calls a payment, once it was accepted. */
  idOf(payment: number): string | undefined
}

/**
 * Judges a wallet by the books. Of actions that ran at once any order may be the true one, and where the clock is
 * not ours a payment may have been decided early or late: then all books that explain the answers are kept, and
 * the wallet is wrong when none is left.
 */
export function createJudge(rules: JudgeRules): Judge {
  let books: readonly Book[] = [emptyBook]

  return {
    observe(observed) {
      const observations = observed.map((each) => ({
        ...each,
        mayRefuse: isCutOff(each, observed),
      }))
      let [deepest, problems]: [number, readonly string[]] = [-1, []]
      const next: Book[] = []
      for (const order of ordersOf(observations)) {
        for (const book of books) {
          const followed = follow(book, order, rules, observations.length === 1)
          next.push(...followed.books)
          if (followed.books.length > 0 || followed.depth <= deepest) continue
          deepest = followed.depth
          problems = followed.problems
        }
      }
      if (next.length === 0) return problems
      books = distinct(next)
      return []
    },
    idOf: (payment) => books[0] && paymentIn(books[0], payment)?.id,
  }
}

interface Excused extends Observation {
  readonly mayRefuse: boolean
}

/** Whoever pays while the token is rotated may be left with the old one. */
function isCutOff({ action }: Observation, all: readonly Observation[]): boolean {
  if (action.type !== 'pay' && action.type !== 'retry') return false
  const { grant } = requestOf(action)
  return all.some(({ action }) => action.type === 'rotate' && action.grant === grant)
}

interface Followed {
  readonly books: readonly Book[]
  /** How many of the observations could be explained. */
  readonly depth: number
  readonly problems: readonly string[]
}

/** Explains observations one after the other. */
function follow(
  book: Book,
  observations: readonly Excused[],
  rules: JudgeRules,
  alone: boolean,
): Followed {
  let books: readonly Book[] = [book]
  for (const [depth, observation] of observations.entries()) {
    const verdicts = books.flatMap((book) =>
      observation.moments.map((now) => explain(book, observation, now, rules, alone)),
    )
    const next = verdicts.flatMap((verdict) => ('book' in verdict ? [verdict.book] : []))
    if (next.length === 0) {
      const problems = verdicts.flatMap((verdict) => ('book' in verdict ? [] : verdict.problems))
      return { books: [], depth, problems: [...new Set(problems)] }
    }
    books = next
  }
  return { books, depth: observations.length, problems: [] }
}

type Verdict = { readonly book: Book } | { readonly problems: readonly string[] }

function explain(
  book: Book,
  { action, answer, mayRefuse }: Excused,
  now: Instant,
  rules: JudgeRules,
  alone: boolean,
): Verdict {
  const {
    answer: expected,
    after,
    problems = [],
    repeats,
  } = expectationOf(book, action, now, rules)
  if (!answer.accepted) {
    if (expected !== 'accepted' || mayRefuse || rules.mayRefuse) return { book }
    const said = answer.reason === undefined ? '' : ` (${answer.reason})`
    return { problems: [`it was refused${said}, and there was no reason to`] }
  }
  if (expected === 'refused') {
    const overspent = overspentIn(after)
    const reasons = overspent.length > 0 ? overspent : problems
    return { problems: reasons.map((reason) => `it had to be refused: ${reason}`) }
  }
  if (repeats !== undefined && repeats.id !== answer.id) {
    return { problems: [`payment ${repeats.request.payment} was made twice`, ...overspentIn(book)] }
  }
  const booked = withId(after, action, answer.id)
  if (booked === undefined) {
    return { problems: ['two requests were answered with the same payment'] }
  }
  const misreported = alone ? misreportedSpending(booked, action, answer) : undefined
  return misreported === undefined ? { book: booked } : { problems: [misreported] }
}

/** Writes down what the wallet calls a payment, unless another one is called so. */
function withId(book: Book, action: SpendingAction, id: string | undefined): Book | undefined {
  if (id === undefined || (action.type !== 'pay' && action.type !== 'retry')) return book
  const { payment } = requestOf(action)
  const taken = book.payments.some((line) => line.id === id && line.request.payment !== payment)
  return taken ? undefined : amended(book, payment, { id })
}

function requestOf(action: SpendingAction & { type: 'pay' | 'retry' }) {
  return action.type === 'pay' ? action : action.request
}

function misreportedSpending(
  book: Book,
  action: SpendingAction,
  answer: Observation['answer'],
): string | undefined {
  if (action.type !== 'pay' && action.type !== 'retry') return undefined
  const account = paymentIn(book, requestOf(action).payment)?.account
  if (account === undefined) return undefined
  const { spentDebitAmount, spentReceiveAmount } = answer
  const said = account.counts === 'debitAmount' ? spentDebitAmount : spentReceiveAmount
  if (said === undefined) return undefined
  const spent = spentIn(book, account)
  const { value, ...asset } = said
  if (spent === BigInt(value)) return undefined
  return (
    `the wallet says that ${valueText(BigInt(value), asset)} has been spent, ` +
    `and it is ${valueText(spent, account.limit)}`
  )
}

/** Every order that what ran at once may have had. */
function ordersOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  if (items.length < 2) return [items]
  return items.flatMap((first, index) => {
    const others = items.filter((_, other) => other !== index)
    return ordersOf(others).map((rest) => [first, ...rest])
  })
}

function distinct(books: readonly Book[]): readonly Book[] {
  if (books.length === 1) return books
  const byText = new Map(books.map((book) => [textOf(book), book]))
  return [...byText.values()]
}

/** The same for books that differ in nothing but the order of their lines: all else follows from the answers. */
function textOf({ payments }: Book): string {
  const lines = payments.map(({ request, account, holdUntil, state, sent, delivered }) =>
    [
      request.payment,
      account?.item,
      account?.window?.start,
      holdUntil,
      state,
      sent,
      delivered,
    ].join(),
  )
  return lines.sort().join(' ')
}
