import type { Budget } from '../../../src/core/budget.js'
import { ok } from '../../../src/core/result.js'
import type { HostAnswer } from '../played-wallet.js'
import { same } from '../same.js'
import { usd } from '../spending.js'
import type { Line, Sums } from '../spending-book.js'
import { tokenLifetimeMs } from '../spending-services.js'
import { checkPayment } from './pay.js'
import { amountIn, amountsOf, type Comparison, count, isGood, lives } from './state.js'

const day = 86_400_000

export async function begin(state: Comparison, line: Line): Promise<HostAnswer> {
  const answer = await state.wallet.begin(line.id)
  return compare(state, 'begin', line, answer, () => state.book.begin(line, nowOf(state)))
}

export async function cancel(state: Comparison, line: Line): Promise<HostAnswer> {
  const answer = await state.wallet.cancel(line.id)
  return compare(state, 'cancel', line, answer, () => state.book.cancel(line, nowOf(state)))
}

export async function reportSent(
  state: Comparison,
  line: Line,
  sums: Sums,
  final: boolean,
): Promise<HostAnswer> {
  const deliveredAmount = amountIn(line.asset)(sums.delivered)
  const totals = { sentAmount: usd(sums.sent), deliveredAmount, final }
  const answer = await state.wallet.reportSent(line.id, totals)
  const as = final ? 'final' : 'report-sent'
  const inBook = () => state.book.report(line, sums, as, nowOf(state))
  return compare(state, 'report-sent', line, answer, inBook)
}

/** Omits both totals if neither has changed. */
export async function fail(state: Comparison, line: Line, sums: Sums): Promise<HostAnswer> {
  const deliveredAmount = amountIn(line.asset)(sums.delivered)
  const changed = sums.sent !== line.sent || sums.delivered !== line.delivered
  const totals = changed ? { sentAmount: usd(sums.sent), deliveredAmount } : {}
  const answer = await state.wallet.fail(line.id, totals)
  const inBook = () => state.book.report(line, sums, 'fail', nowOf(state))
  return compare(state, 'fail', line, answer, inBook)
}

function compare(
  state: Comparison,
  what: string,
  line: Line,
  answer: HostAnswer,
  inBook: () => string | undefined,
): HostAnswer {
  const refusal = line.gone ? 'payment_unknown' : inBook()
  count(state, what, refusal ?? 'done')
  same(answer, refusal === undefined ? { ok: true } : { ok: false, refusal })
  checkPayment(state, line)
  return answer
}

const nowOf = ({ wallet }: Comparison) => wallet.clock.now()

export async function rotate(state: Comparison, grant: number): Promise<boolean> {
  const rotates = lives(state, grant)
  count(state, 'rotate', rotates ? 'done' : 'over')
  same(await state.wallet.rotate(grant), rotates)
  const token = state.tokens[grant]
  if (token !== undefined && rotates) token.expiresAt = nowOf(state) + tokenLifetimeMs
  return rotates
}

export async function revoke(state: Comparison, grant: number): Promise<void> {
  const { book, tokens, wallet } = state
  const inFlight = book.lines.some((line) => line.place.grant === grant && line.state === 'begun')
  count(state, 'revoke', inFlight ? 'with_payments_in_flight' : 'done')
  const token = tokens[grant]
  if (token !== undefined) token.revoked = true
  await wallet.revoke(grant)
}

export async function sweep(state: Comparison): Promise<void> {
  const { wallet, book, quotes } = state
  const now = nowOf(state)
  const budgets = [...state.budgets.values()]
  const lapsed = book.sweep(now)
  count(state, 'lapse', lapsed > 0 ? 'some' : 'none')
  for (const quote of quotes) if (quote.expiresAt + day <= now) quote.gone = true
  for (const budget of budgets) if (budget.keptUntil <= now) budget.removed = true
  count(state, 'remove', budgets.some(({ removed }) => removed) ? 'a_budget' : 'no_budget')
  same(await wallet.sweep(), lapsed)
}

/** Each window has spent what the book says, and no more than its limit. */
export function checkBudgets({ wallet, book, budgets }: Comparison): void {
  for (const { id, line, removed } of budgets.values()) {
    const budget = wallet.written.get('budget', id) as Budget | undefined
    same(budget?.spent, removed ? undefined : amountsOf(book.totalsAt(line.place)))
    const { grant, item } = line.place
    const limit = book.grants[grant]?.[item]?.limit
    same(limit === undefined || book.spentAt(line.place) <= limit.value, true)
  }
}

/** The totals that a client instance reads are those of the book, and reading changes nothing. */
export async function checkTotals(state: Comparison, grant: number): Promise<void> {
  const { wallet, book } = state
  const before = wallet.written.count()
  const totals = await wallet.spent(grant)
  same(wallet.written.count(), before)
  if (!isGood(state, grant)) return same(totals, { ok: false, refusal: 'token_unknown' })
  same(totals, ok(amountsOf(book.spentUnder(grant, nowOf(state)))))
}
