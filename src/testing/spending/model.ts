import type { Instant } from 'open-payments-server'
import {
  amended,
  type Book,
  type BookedPayment,
  chargeFor,
  isOver,
  paymentIn,
  type SpendingRules,
} from './book.js'
import type { PaymentRequest, SpendingAction, SpendingReport } from './history.js'

/** The expected answer to an action, and the book after it is accepted. */
export interface Expectation {
  /** `either` if both outcomes leave all amounts correct. */
  readonly answer: 'accepted' | 'refused' | 'either'
  readonly after: Book
  /** Why the wallet must refuse it. */
  readonly problems?: readonly string[]
  /** The payment that the answer must identify, because the request is a repeat. */
  readonly repeats?: BookedPayment
}

/**
 * The rules of payment limits, as a bookkeeper would apply them: returns what must happen to an action at an
 * instant, given the history before it.
 */
export function expectationOf(
  book: Book,
  action: SpendingAction,
  now: Instant,
  rules: SpendingRules,
): Expectation {
  switch (action.type) {
    case 'grant': {
      const grants = [...book.grants, { items: action.granted, revoked: false }]
      return { answer: 'accepted', after: { ...book, grants } }
    }
    case 'pay':
      return expectPayment(book, action, now, rules, false)
    case 'retry':
      return expectPayment(book, action.request, now, rules, true)
    case 'alter': {
      const expected = expectPayment(book, action.request, now, rules, true)
      // A wallet may remember the keys of requests that it refused.
      return expected.answer === 'accepted' ? { ...expected, answer: 'either' } : expected
    }
    case 'lapse':
      return { answer: 'accepted', after: lapsed(book, now) }
    case 'rotate': {
      const answer = isOver(book, action.grant, now, rules) ? 'either' : 'accepted'
      return { answer, after: book }
    }
    case 'revoke': {
      const grants = book.grants.map((grant, index) =>
        index + 1 === action.grant ? { ...grant, revoked: true } : grant,
      )
      return { answer: 'accepted', after: { ...book, grants } }
    }
    case 'wait':
      return { answer: 'accepted', after: book }
    default: {
      const payment = paymentIn(book, action.payment)
      if (payment === undefined) return refused(book, `payment ${action.payment} does not exist`)
      return expectReport(book, payment, action, now)
    }
  }
}

function expectPayment(
  book: Book,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
  isRetry: boolean,
): Expectation {
  const earlier = paymentIn(book, request.payment)
  if (earlier !== undefined && earlier.request.debitAmount.value !== request.debitAmount.value) {
    return refused(book, `the request for payment ${request.payment} had another amount`)
  }
  if (earlier !== undefined) {
    const answer = isOver(book, request.grant, now, rules) ? 'either' : 'accepted'
    return { answer, after: book, repeats: earlier }
  }
  const charge = chargeFor(book, request, now, rules)
  const line: BookedPayment = {
    request,
    ...(charge.ok && charge.value !== undefined ? { account: charge.value } : {}),
    holdUntil: now + rules.holdMs,
    state: 'held',
    sent: 0n,
    delivered: 0n,
  }
  const after = { ...book, payments: [...book.payments, line] }
  if (!charge.ok) return { answer: 'refused', after, problems: charge.problems }
  // The quote may have expired by now, which is a reason to refuse that is unrelated to limits.
  return { answer: isRetry && request.by === 'quote' ? 'either' : 'accepted', after }
}

function lapsed(book: Book, now: Instant): Book {
  const payments = book.payments.map((line) =>
    line.state === 'held' && now >= line.holdUntil ? { ...line, state: 'failed' as const } : line,
  )
  return { ...book, payments }
}

function expectReport(
  book: Book,
  payment: BookedPayment,
  report: SpendingReport,
  now: Instant,
): Expectation {
  const number = report.payment
  const { state } = payment
  const told = (change: Partial<BookedPayment>) => amended(book, number, change)
  switch (report.type) {
    case 'begin': {
      const after = told({ state: 'begun' })
      if (state !== 'held') return refused(after, `payment ${number} is ${state}`)
      return now < payment.holdUntil
        ? { answer: 'accepted', after }
        : refused(after, `payment ${number} was not begun in time`)
    }
    case 'cancel': {
      const after = told({ state: 'failed' })
      if (state === 'held') return { answer: 'accepted', after }
      if (state === 'failed' && payment.sent === 0n) return { answer: 'either', after: book }
      return refused(after, `payment ${number} is ${state}`)
    }
    case 'report-sent':
    case 'fail':
      return expectTotals(payment, report, told)
  }
}

/** Checks reports of sent totals: they never decrease and never exceed the payment's amounts. */
function expectTotals(
  payment: BookedPayment,
  report: Extract<SpendingReport, { readonly type: 'report-sent' | 'fail' }>,
  told: (change: Partial<BookedPayment>) => Book,
): Expectation {
  const number = report.payment
  const { state, request } = payment
  const sent = BigInt(report.sentAmount.value)
  const delivered = BigInt(report.deliveredAmount.value)
  const [debit, receive] = [request.debitAmount, request.receiveAmount].map((a) => BigInt(a.value))
  const whole = sent === debit || delivered === receive
  const completes = report.type === 'report-sent' && (whole || report.final)
  const next = report.type === 'fail' ? 'failed' : completes ? 'completed' : 'begun'
  const after = told({ sent, delivered, state: next })
  const same = sent === payment.sent && delivered === payment.delivered
  if (state === 'held') {
    // Failing a payment that was not begun moves no money, so a wallet may allow or refuse it.
    if (report.type === 'fail' && sent === 0n) return { answer: 'either', after }
    return refused(after, `payment ${number} was not begun`)
  }
  if (state !== 'begun') {
    const repeated = same && state === (report.type === 'fail' ? 'failed' : 'completed')
    if (repeated) return { answer: 'either', after: told({}) }
    return refused(after, `payment ${number} is ${state}`)
  }
  if (sent < payment.sent || delivered < payment.delivered) {
    return refused(after, `the totals of payment ${number} must not decrease`)
  }
  if (sent > (debit ?? 0n) || delivered > (receive ?? 0n)) {
    return refused(after, `the totals of payment ${number} must not exceed its amounts`)
  }
  if (report.type === 'fail' && whole) {
    return refused(after, `payment ${number} was sent in full`)
  }
  return { answer: 'accepted', after }
}

function refused(after: Book, problem: string): Expectation {
  return { answer: 'refused', after, problems: [problem] }
}
