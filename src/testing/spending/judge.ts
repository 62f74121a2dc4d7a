import type { Amount, Instant } from 'open-payments-server'
import { ok, type Result } from 'open-payments-server/core'
import {
  amended,
  type Book,
  emptyBook,
  overspentIn,
  type Problems,
  paymentIn,
  type SpendingRules,
  spentUnder,
  wrong,
} from './book.js'
import type { PaymentRequest, SpendingAction } from './history.js'
import { expectationOf } from './model.js'
import { valueText } from './text.js'

export interface JudgeRules extends SpendingRules {
  /** Whether the wallet may refuse a payment within the limits for reasons of its own. */
  readonly mayRefuse: boolean
}

/** An action, the wallet's answer, and the instants at which the wallet may have decided. */
export interface Observation {
  readonly action: SpendingAction
  readonly answer: {
    readonly accepted: boolean | 'unknown'
    readonly id?: string
    readonly spentDebitAmount?: Amount
    readonly spentReceiveAmount?: Amount
    readonly reason?: string
  }
  readonly moments: readonly Instant[]
}

/** Follows a wallet and reports its mistakes. */
export interface Judge {
  /** Records actions that ran concurrently. Returns sentences about what is wrong; usually none. */
  observe(observations: readonly Observation[]): readonly string[]
  /** Returns the wallet's id of a payment that was accepted. */
  idOf(payment: number): string | undefined
}

/**
 * Judges a wallet by the model's books. Concurrent actions may have run in any order, and if the test does
 * not control the clock, the wallet may have decided a payment at the start or at the end of its request. The
 * judge keeps every book that explains the answers, and the wallet is wrong when no book is left.
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

/** A payment that runs concurrently with a rotation may present the old token. */
function isCutOff({ action }: Observation, all: readonly Observation[]): boolean {
  const request = requestOf(action)
  if (request === undefined) return false
  const { grant } = request
  return all.some(({ action }) => action.type === 'rotate' && action.grant === grant)
}

interface Followed {
  readonly books: readonly Book[]
  /** How many observations the books explain. */
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
      observation.moments.flatMap((now) =>
        observation.answer.accepted === 'unknown'
          ? explainUnknown(book, observation, now, rules)
          : [explain(book, observation, now, rules, alone)],
      ),
    )
    const next = verdicts.flatMap((verdict) => (verdict.ok ? [verdict.value] : []))
    if (next.length === 0) {
      const problems = verdicts.flatMap((verdict) => (verdict.ok ? [] : verdict.problems))
      return { books: [], depth, problems: [...new Set(problems)] }
    }
    books = next
  }
  return { books, depth: observations.length, problems: [] }
}

/** The book that explains an answer, or why none does. */
type Verdict = Result<Book, Problems>

/** After an error of the store, an action may or may not have taken effect. */
function explainUnknown(
  book: Book,
  { action }: Observation,
  now: Instant,
  rules: JudgeRules,
): readonly Verdict[] {
  const { answer, after } = expectationOf(book, action, now, rules)
  return answer === 'refused' ? [ok(book)] : [ok(book), ok(after)]
}

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
    if (expected !== 'accepted' || mayRefuse || rules.mayRefuse) return ok(book)
    const said = answer.reason === undefined ? '' : ` (${answer.reason})`
    return wrong(`the wallet refused it${said}; expected: accepted`)
  }
  if (expected === 'refused') {
    const overspent = overspentIn(after)
    const reasons = overspent.length > 0 ? overspent : problems
    return wrong(
      ...reasons.map((reason) => `the wallet accepted it; expected a refusal: ${reason}`),
    )
  }
  if (repeats?.id !== undefined && repeats.id !== answer.id) {
    return wrong(
      `a repeated request created payment ${repeats.request.payment} twice`,
      ...overspentIn(book),
    )
  }
  const booked = withId(after, action, answer.id)
  if (booked === undefined) {
    return wrong('the wallet returned the same payment for two requests')
  }
  const misreported = alone ? misreportedSpending(booked, action, answer, now) : undefined
  return misreported === undefined ? ok(booked) : wrong(misreported)
}

/** Records the wallet's id of a payment, unless another payment has that id. */
function withId(book: Book, action: SpendingAction, id: string | undefined): Book | undefined {
  const request = requestOf(action)
  if (id === undefined || request === undefined) return book
  const { payment } = request
  const taken = book.payments.some((line) => line.id === id && line.request.payment !== payment)
  return taken ? undefined : amended(book, payment, { id })
}

function requestOf(action: SpendingAction): PaymentRequest | undefined {
  if (action.type === 'pay') return action
  return action.type === 'retry' || action.type === 'alter' ? action.request : undefined
}

function misreportedSpending(
  book: Book,
  action: SpendingAction,
  answer: Observation['answer'],
  now: Instant,
): string | undefined {
  const request = requestOf(action)
  const account = request && paymentIn(book, request.payment)?.account
  if (account === undefined) return undefined
  const { spentDebitAmount, spentReceiveAmount } = answer
  const said = account.counts === 'debitAmount' ? spentDebitAmount : spentReceiveAmount
  if (said === undefined) return undefined
  const { value, ...asset } = said
  const spent = spentUnder(book, account.grant, account.counts, asset, now)
  if (spent === undefined || spent === BigInt(value)) return undefined
  return (
    `the wallet reports ${valueText(BigInt(value), asset)} as spent; ` +
    `expected ${valueText(spent, asset)}`
  )
}

/** Returns every possible order of concurrent items. */
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

/** Returns the same text for books that differ only in the order of their lines; the rest follows from the answers. */
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
