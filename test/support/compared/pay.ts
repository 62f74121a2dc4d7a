import { ok, type Result } from '../../../src/core/result.js'
import type { Asked, Declined, PaidAnswer, PayAnswer } from '../played-wallet.js'
import { same } from '../same.js'
import { euroReceiver, goneReceiver, usd } from '../spending.js'
import { type Line, nameOf, type Terms } from '../spending-book.js'
import { spendingPolicy } from '../spending-services.js'
import {
  amountIn,
  amountsOf,
  type Comparison,
  clientOf,
  count,
  isGood,
  paymentOf,
  type Sent,
} from './state.js'

/** Sends a request to pay, and throws if the response or the stored payment differs from the book. */
export async function send(
  state: Comparison,
  what: string,
  grant: number,
  asked: Sent,
): Promise<PayAnswer> {
  const expectation = expected(state, grant, asked)
  const answer = await state.wallet.pay(grant, asked.request, asked.key)
  if ('quoteId' in asked.request || asked.key !== undefined) state.sent.push(asked)
  if (!expectation.ok || !answer.ok) {
    count(state, what, answer.ok ? 'paid' : answer.refusal)
    same(answer, expectation)
    return answer
  }
  const { id } = answer.value
  if (expectation.value.repeats) {
    count(state, what, 'the_same_payment')
    const { earlier } = expectation.value
    same(told(answer.value), told({ id: earlier.id, spent: spentUnder(state, grant) }))
    return answer
  }
  count(state, what, 'paid')
  const line: Line = {
    ...expectation.value.payment,
    id,
    client: asked.client,
    createdAt: state.wallet.clock.now(),
    sent: 0n,
    delivered: 0n,
    state: 'created',
    endedAt: undefined,
    gone: false,
  }
  state.book.add(line)
  noteBudget(state, line)
  same(told(answer.value), told({ id, spent: spentUnder(state, grant) }))
  checkPayment(state, line)
  return answer
}

/** Without totals that cannot be expressed as one amount, which a response omits. */
function told({ id, spent }: PaidAnswer): PaidAnswer {
  const isTold = spent && (spent.debitAmount !== null || spent.receiveAmount !== null)
  return { id, ...(isTold && { spent }) }
}

/** An existing payment, or a new one and the place where it is counted. */
type Expectation =
  | { readonly repeats: true; readonly earlier: Line }
  | { readonly repeats: false; readonly payment: Terms & Pick<Line, 'place' | 'request'> }

const declined = (refusal: string): Declined => ({ ok: false, refusal })

/** The expected response. */
export function expected(
  state: Comparison,
  grant: number,
  asked: Sent,
): Result<Expectation, Declined> {
  const { book, grants, wallet } = state
  const { client, request, key } = asked
  const { walletAddress } = request
  if (!isGood(state, grant)) return declined('token_unknown')
  if (!grants[grant]?.some((plan) => plan.walletAddress === walletAddress)) {
    return declined('identifier_foreign')
  }
  const by = 'quoteId' in request ? `quote ${request.quoteId}` : key && `${client} ${key}`
  const description = `${by} ${JSON.stringify(request)}`
  const earlier = by && book.lines.findLast((line) => line.request.startsWith(`${by} `))
  if (earlier && earlier.client === client && !earlier.gone) {
    return earlier.request === description
      ? ok({ repeats: true, earlier })
      : declined('request_differs')
  }
  const terms = termsOf(state, asked)
  if (!terms.ok) return terms
  const charge = book.charge(grant, walletAddress, terms.value, wallet.clock.now())
  if (charge === undefined) return declined('limits_exceeded')
  return ok({ repeats: false, payment: { ...terms.value, ...charge, request: description } })
}

function termsOf(
  { quotes, wallet }: Comparison,
  { client, request }: Sent,
): Result<Terms, Declined> {
  if (!('quoteId' in request)) return priced({ ...request, receiver: request.incomingPayment })
  const quote = quotes.find(({ id }) => id === request.quoteId)
  if (quote === undefined || quote.gone || quote.client !== client) return declined('quote_unknown')
  if (quote.walletAddress !== request.walletAddress) return declined('quote_mismatch')
  return wallet.clock.now() >= quote.expiresAt ? declined('quote_expired') : ok(quote.terms)
}

/** The price list, written a second time. */
function priced({ receiver, debitAmount, receiveAmount }: Asked): Result<Terms, Declined> {
  const [asset, per] = receiver === euroReceiver ? (['EUR', 2n] as const) : (['USD', 1n] as const)
  const asked = debitAmount ?? receiveAmount
  if (asked?.value === '0') return declined('amount_invalid')
  if (receiver === goneReceiver) return declined('receiver_invalid')
  const value = receiveAmount === undefined ? undefined : BigInt(receiveAmount.value)
  const debit = value === undefined ? BigInt(debitAmount?.value ?? 1_000) : value * per
  const receive = value ?? debit / per
  return receive === 0n ? declined('amount_too_small') : ok({ receiver, debit, receive, asset })
}

/** Notes where the payment is counted, and how long its budget is kept. */
function noteBudget(state: Comparison, line: Line): void {
  const now = state.wallet.clock.now()
  const keptUntil = Math.max(line.place.end, now) + spendingPolicy.budgets.retentionMs
  const id = paymentOf(state, line)?.budgetId ?? ''
  state.budgets.set(nameOf(line.place), { id, line, keptUntil, removed: false })
}

/** The totals in the response, which are those of `GET /outgoing-payment-grant` right after it. */
function spentUnder({ wallet, book }: Comparison, grant: number) {
  return amountsOf(book.spentUnder(grant, wallet.clock.now()))
}

export function checkPayment(state: Comparison, line: Line): void {
  const payment = paymentOf(state, line)
  const { debitAmount, receiveAmount } = payment ?? {}
  const stored = [payment?.state, payment?.sent, payment?.delivered, debitAmount, receiveAmount]
  const amounts = [usd(line.debit), amountIn(line.asset)(line.receive)]
  const kept = [line.state, `${line.sent}`, `${line.delivered}`, ...amounts]
  same(stored, line.gone ? [undefined, undefined, undefined, undefined, undefined] : kept)
}

/** Requests a quote. Resolves to its id, or to `undefined` if it was refused as expected. */
export async function quote(
  state: Comparison,
  grant: number,
  asked: Asked,
): Promise<string | undefined> {
  const { wallet, clients, quotes } = state
  const terms = priced(asked)
  const answer = await wallet.quote(clients[grant] ?? 'shop', asked)
  count(state, 'quote', answer.ok ? 'made' : answer.refusal)
  if (!terms.ok || !answer.ok) {
    same(answer, terms)
    return undefined
  }
  const { walletAddress } = asked
  const expiresAt = wallet.clock.now() + spendingPolicy.quotes.lifetimeMs
  const id = answer.value
  const client = clientOf(state, grant)
  quotes.push({ id, client, grant, walletAddress, terms: terms.value, expiresAt, gone: false })
  return id
}
