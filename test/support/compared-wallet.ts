import type { Budget } from '../../src/core/budget.js'
import type { Instant } from '../../src/core/decision.js'
import type { OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import type { AccessItem, Amount } from '../../src/index.js'
import type {
  Asked,
  ClientName,
  HostAnswer,
  PayAnswer,
  PayRequest,
  PlayedWallet,
  Spent,
} from './played-wallet.js'
import { same } from './same.js'
import { eur, euroReceiver, goneReceiver, usd } from './spending.js'
import {
  type Counted,
  isOver,
  type Line,
  nameOf,
  newBook,
  type Plan,
  type Sums,
  type Terms,
  type Total,
  type Totals,
} from './spending-book.js'
import { spendingPolicy, tokenLifetimeMs } from './spending-services.js'

const day = 86_400_000
const amountOf = (total: Total | null): Amount | null =>
  total && (total.asset === 'EUR' ? eur : usd)(total.value)
const amountsOf = ({ debitAmount, receiveAmount }: Totals): Spent => ({
  debitAmount: amountOf(debitAmount),
  receiveAmount: amountOf(receiveAmount),
})

interface QuoteLine {
  readonly id: string
  readonly client: string
  readonly grant: number
  readonly walletAddress: string
  readonly terms: Terms
  readonly expiresAt: Instant
  gone: boolean
}

/** A request that may be sent again. */
export interface Sent {
  readonly client: string
  readonly request: PayRequest
  readonly key?: string
}

/** The price list, written a second time. */
function priced({ receiver, debitAmount, receiveAmount }: Asked): Terms | string {
  const [asset, per] = receiver === euroReceiver ? (['EUR', 2n] as const) : (['USD', 1n] as const)
  const asked = debitAmount ?? receiveAmount
  if (asked?.value === '0') return 'amount_invalid'
  if (receiver === goneReceiver) return 'receiver_invalid'
  const value = receiveAmount === undefined ? undefined : BigInt(receiveAmount.value)
  const debit = value === undefined ? BigInt(debitAmount?.value ?? 1_000) : value * per
  const receive = value ?? debit / per
  return receive === 0n ? 'amount_too_small' : { receiver, debit, receive, asset }
}

function planOf({ identifier = '', limits = {} }: AccessItem): Plan {
  const { receiver, interval } = limits
  const counts: Counted = limits.debitAmount === undefined ? 'receiveAmount' : 'debitAmount'
  const amount = limits[counts]
  return {
    walletAddress: identifier,
    ...(receiver !== undefined && { receiver }),
    ...(interval !== undefined && { interval }),
    ...(amount && {
      limit: {
        counts,
        asset: amount.assetCode === 'EUR' ? 'EUR' : 'USD',
        value: BigInt(amount.value),
      },
    }),
  }
}

export type ComparedWallet = ReturnType<typeof comparedWallet>

/**
 * A wallet with a book beside it. Each function sends to the wallet, writes the same down in the book, and
 * throws when they differ: in the response to the code of its refusal, in a total, or in a payment.
 *
 * @param met counts the responses, by kind of request.
 */
export function comparedWallet(wallet: PlayedWallet, met: Map<string, number>) {
  const { clock, written } = wallet
  const grants: Plan[][] = []
  const clients: ClientName[] = []
  const book = newBook(grants, spendingPolicy.payments)
  const quotes: QuoteLine[] = []
  const sent: Sent[] = []
  const tokens: { expiresAt: Instant; revoked: boolean }[] = []
  /** The budgets so far: their ids, and the earliest instant at which each may be removed. */
  const budgets = new Map<string, { id: string; line: Line; keptUntil: Instant; purged: boolean }>()

  const clientOf = (grant: number) => `https://${clients[grant]}.example`

  function count(what: string, answer: string): void {
    const name = `${what}: ${answer}`
    met.set(name, (met.get(name) ?? 0) + 1)
  }

  function lives(grant: number): boolean {
    return tokens[grant]?.revoked === false && !isOver(grants[grant] ?? [], clock.now())
  }

  function isGood(grant: number): boolean {
    return lives(grant) && clock.now() < (tokens[grant]?.expiresAt ?? 0)
  }

  async function grant(client: ClientName, access: readonly AccessItem[]): Promise<number> {
    const before = clock.now()
    await wallet.grant(client, access)
    tokens.push({ expiresAt: clock.now() + tokenLifetimeMs, revoked: false })
    // Consent may take some seconds, which the history does not count.
    clock.set(before)
    clients.push(client)
    return grants.push(access.map(planOf)) - 1
  }

  function termsOf(client: string, request: PayRequest): Terms | string {
    if (!('quoteId' in request)) {
      return priced({ ...request, receiver: request.incomingPayment })
    }
    const quote = quotes.find(({ id }) => id === request.quoteId)
    if (quote === undefined || quote.gone || quote.client !== client) return 'quote_unknown'
    if (quote.walletAddress !== request.walletAddress) return 'quote_mismatch'
    return clock.now() >= quote.expiresAt ? 'quote_expired' : quote.terms
  }

  /** The expected response: a refusal, an existing payment, or the place where a new one is counted. */
  function expected(grant: number, { client, request, key }: Sent) {
    const { walletAddress } = request
    if (!isGood(grant)) return 'token_unknown'
    if (!grants[grant]?.some((plan) => plan.walletAddress === walletAddress)) {
      return 'identifier_foreign'
    }
    const by = 'quoteId' in request ? `quote ${request.quoteId}` : key && `${client} ${key}`
    const description = `${by} ${JSON.stringify(request)}`
    const earlier = by && book.lines.findLast((line) => line.request.startsWith(`${by} `))
    if (earlier && earlier.client === client && !earlier.gone) {
      return earlier.request === description ? earlier : 'request_differs'
    }
    const terms = termsOf(client, request)
    if (typeof terms === 'string') return terms
    const charge = book.charge(grant, walletAddress, terms, clock.now())
    return charge === undefined ? 'limits_exceeded' : { ...terms, ...charge, request: description }
  }

  async function send(what: string, grant: number, asked: Sent): Promise<PayAnswer> {
    const expectation = expected(grant, asked)
    const answer = await wallet.pay(grant, asked.request, asked.key)
    if ('quoteId' in asked.request || asked.key !== undefined) sent.push(asked)
    if (typeof expectation === 'string' || 'refusal' in answer) {
      count(what, 'refusal' in answer ? answer.refusal : 'paid')
      same(answer, { refusal: expectation })
      return answer
    }
    if ('id' in expectation) {
      count(what, 'the_same_payment')
      same(answer, { id: expectation.id, ...spentWith(expectation) })
      return answer
    }
    count(what, 'paid')
    const line: Line = {
      ...expectation,
      id: answer.id,
      client: asked.client,
      createdAt: clock.now(),
      sent: 0n,
      delivered: 0n,
      state: 'created',
      endedAt: undefined,
      gone: false,
    }
    book.add(line)
    note(line)
    same(answer, { id: answer.id, ...spentWith(line) })
    checkPayment(line)
    return answer
  }

  /** Notes where the payment is counted, and how long its budget is kept. */
  function note(line: Line): void {
    const payment = written.get('outgoing-payment', line.id) as OutgoingPayment | undefined
    const keptUntil = Math.max(line.place.end, clock.now()) + spendingPolicy.budgets.retentionMs
    const id = payment?.budgetId ?? ''
    budgets.set(nameOf(line.place), { id, line, keptUntil, purged: false })
  }

  /** The totals in the response: of the window that counts the payment, while its budget is kept. */
  function spentWith({ place }: Line): { readonly spent?: Spent } {
    const kept = budgets.get(nameOf(place))?.purged === false
    return kept ? { spent: amountsOf(book.totalsAt(place)) } : {}
  }

  function checkPayment(line: Line): void {
    const payment = written.get('outgoing-payment', line.id) as OutgoingPayment | undefined
    const { state, debit, receive } = line
    const { debitAmount, receiveAmount } = payment ?? {}
    const stored = [payment?.state, payment?.sent, payment?.delivered, debitAmount, receiveAmount]
    const amounts = [usd(debit), (line.asset === 'EUR' ? eur : usd)(receive)]
    const kept = [state, `${line.sent}`, `${line.delivered}`, ...amounts]
    same(stored, line.gone ? [undefined, undefined, undefined, undefined, undefined] : kept)
  }

  async function quote(grant: number, asked: Asked): Promise<string | undefined> {
    const terms = priced(asked)
    const answer = await wallet.quote(clients[grant] ?? 'shop', asked)
    count('quote', 'id' in answer ? 'made' : answer.refusal)
    if (typeof terms === 'string' || 'refusal' in answer) {
      same(answer, { refusal: terms })
      return undefined
    }
    const { walletAddress } = asked
    const expiresAt = clock.now() + spendingPolicy.quotes.lifetimeMs
    const { id } = answer
    const client = clientOf(grant)
    quotes.push({ id, client, grant, walletAddress, terms, expiresAt, gone: false })
    return id
  }

  async function rotate(grant: number): Promise<boolean> {
    const rotates = lives(grant)
    count('rotate', rotates ? 'done' : 'over')
    same(await wallet.rotate(grant), rotates)
    const token = tokens[grant]
    if (token !== undefined && rotates) token.expiresAt = clock.now() + tokenLifetimeMs
    return rotates
  }

  async function revoke(grant: number): Promise<void> {
    const inFlight = book.lines.some(
      ({ place, state }) => place.grant === grant && state === 'begun',
    )
    count('revoke', inFlight ? 'with_payments_in_flight' : 'done')
    const token = tokens[grant]
    if (token !== undefined) token.revoked = true
    await wallet.revoke(grant)
  }

  async function begin(line: Line): Promise<HostAnswer> {
    return compare('begin', line, await wallet.begin(line.id), () => book.begin(line, clock.now()))
  }

  async function cancel(line: Line): Promise<HostAnswer> {
    const answer = await wallet.cancel(line.id)
    return compare('cancel', line, answer, () => book.cancel(line, clock.now()))
  }

  async function settle(line: Line, sums: Sums, final: boolean): Promise<HostAnswer> {
    const totals = { sentAmount: usd(sums.sent), deliveredAmount: inAsset(line)(sums.delivered) }
    const answer = await wallet.settle(line.id, { ...totals, final })
    const as = final ? 'final' : 'settle'
    return compare('settle', line, answer, () => book.report(line, sums, as, clock.now()))
  }

  /** Omits totals that have not changed. */
  async function fail(line: Line, sums: Sums): Promise<HostAnswer> {
    const answer = await wallet.fail(line.id, {
      ...(sums.sent !== line.sent && { sentAmount: usd(sums.sent) }),
      ...(sums.delivered !== line.delivered && { deliveredAmount: inAsset(line)(sums.delivered) }),
    })
    return compare('fail', line, answer, () => book.report(line, sums, 'fail', clock.now()))
  }

  const inAsset = ({ asset }: Line) => (asset === 'EUR' ? eur : usd)

  function compare(
    what: string,
    line: Line,
    answer: HostAnswer,
    inBook: () => string | undefined,
  ): HostAnswer {
    const refusal = line.gone ? 'payment_unknown' : inBook()
    count(what, refusal ?? 'done')
    same(answer, refusal === undefined ? { ok: true } : { ok: false, refusal })
    checkPayment(line)
    return answer
  }

  async function lapseAndPurge(): Promise<void> {
    const now = clock.now()
    const lapsed = book.sweep(now)
    count('lapse', lapsed > 0 ? 'some' : 'none')
    for (const quote of quotes) if (quote.expiresAt + day <= now) quote.gone = true
    for (const budget of budgets.values()) if (budget.keptUntil <= now) budget.purged = true
    count('remove', [...budgets.values()].some(({ purged }) => purged) ? 'a_budget' : 'no_budget')
    same(await wallet.sweep(), lapsed)
  }

  /** Each window has spent what the book says, and no more than its limit. */
  function checkBudgets(): void {
    for (const { id, line, purged } of budgets.values()) {
      const budget = written.get('budget', id) as Budget | undefined
      same(budget?.spent, purged ? undefined : amountsOf(book.totalsAt(line.place)))
      const { grant, item } = line.place
      const limit = book.grants[grant]?.[item]?.limit
      same(limit === undefined || book.spentAt(line.place) <= limit.value, true)
    }
  }

  /** The totals that a client instance reads are those of the book, and reading changes nothing. */
  async function checkTotals(grant: number): Promise<void> {
    const before = written.count()
    const totals = await wallet.spent(grant)
    same(written.count(), before)
    if (!isGood(grant)) return same(totals, { refusal: 'token_unknown' })
    same(totals, amountsOf(book.spentUnder(grant, clock.now())))
  }

  return {
    clock,
    book,
    grants,
    quotes,
    sent,
    tokens,
    clientOf,
    lives,
    isGood,
    grant,
    expected,
    send,
    quote,
    rotate,
    revoke,
    begin,
    cancel,
    settle,
    fail,
    lapseAndPurge,
    checkBudgets,
    checkTotals,
  }
}
