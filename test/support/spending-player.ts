import type { Budget } from '../../src/core/budget.js'
import type { Instant } from '../../src/core/decision.js'
import type { OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import type { Amount } from '../../src/index.js'
import { same } from './same.js'
import { eur, euroReceiver, goneReceiver, usd } from './spending.js'
import {
  endOfPlans,
  intervals,
  type Line,
  nameOf,
  newBook,
  openWindow,
  type Sums,
  type Terms,
  type Total,
  type Totals,
} from './spending-book.js'
import {
  type Asked,
  accessOf,
  type History,
  type HostAnswer,
  type PayRequest,
  type PlayedWallet,
  type Spent,
  type Step,
} from './spending-histories.js'
import { spendingPolicy, tokenLifetimeMs } from './spending-services.js'
import { alice, bob } from './world.js'

type Of<Type extends Step['do']> = Extract<Step, { readonly do: Type }>

const most = 2n ** 64n - 1n
const day = 86_400_000
const least = (value: bigint, other: bigint) => (value < other ? value : other)
const amountOf = (total: Total | null): Amount | null =>
  total && (total.asset === 'EUR' ? eur : usd)(total.value)
const amountsOf = ({ debitAmount, receiveAmount }: Totals): Spent => ({
  debitAmount: amountOf(debitAmount),
  receiveAmount: amountOf(receiveAmount),
})
const which = <T>(list: readonly T[], n: number): T | undefined => list[n % (list.length || 1)]

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
interface Sent {
  readonly client: string
  readonly request: PayRequest
  readonly key?: string
}

/** What the price list says, told once more. */
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

/**
 * Plays a history on a wallet and in a book beside it, and fails as soon as they differ: in an answer, in
 * what a window has spent, or in a payment.
 *
 * @param met counts the answers, by step.
 */
export async function play(
  wallet: PlayedWallet,
  { grants, steps }: History,
  met: Map<string, number> = new Map(),
): Promise<void> {
  const { clock, written } = wallet
  const book = newBook(
    grants.map(({ plans }) => plans),
    spendingPolicy.payments,
  )
  const quotes: QuoteLine[] = []
  const sent: Sent[] = []
  const tokens: { expiresAt: Instant; revoked: boolean; readonly endsAt: Instant }[] = []
  /** The budgets that there have been: their ids, and until when they are kept at least. */
  const budgets = new Map<string, { id: string; line: Line; keptUntil: Instant; purged: boolean }>()

  const numberOf = ({ grant }: { readonly grant: number }) => grant % grants.length
  const clientOf = (grant: number) => `https://${grants[grant]?.client}.example`

  function count(step: Step, answer: string): void {
    const name = `${step.do}: ${answer}`
    met.set(name, (met.get(name) ?? 0) + 1)
  }

  function lives(grant: number): boolean {
    const token = tokens[grant]
    return token !== undefined && !token.revoked && clock.now() < token.endsAt
  }

  function isGood(grant: number): boolean {
    return lives(grant) && clock.now() < (tokens[grant]?.expiresAt ?? 0)
  }

  /** What is wished for, in the asset that it is asked for in. */
  function askedFor(
    step: Of<'quote' | 'pay' | 'pay with a key'>,
    form: Of<'quote'>['form'],
  ): Asked {
    const grant = numberOf(step)
    const plans = grants[grant]?.plans ?? []
    const item = step.item % plans.length
    const { walletAddress = alice, limit } = plans[item] ?? {}
    const { of, percent, offset } = step.part
    const whole = of === 'limit' ? (limit?.value ?? 1_000n) : book.room(grant, item, clock.now())
    const part = (whole * BigInt(percent)) / 100n + BigInt(offset)
    const [amount, per] = step.to === euroReceiver ? [eur, 2n] : [usd, 1n]
    const factor = limit?.counts === 'receiveAmount' && form === 'debit' ? per : 1n
    const value = least(part < 0n ? 0n : part * factor, form === 'receive' ? most / per : most)
    const asked = { walletAddress, receiver: step.to }
    if (form === 'neither') return asked
    return form === 'debit'
      ? { ...asked, debitAmount: usd(value) }
      : { ...asked, receiveAmount: amount(value) }
  }

  async function quote(step: Of<'quote'>): Promise<void> {
    const grant = numberOf(step)
    const asked = askedFor(step, step.form)
    const terms = priced(asked)
    const answer = await wallet.quote(grants[grant]?.client ?? 'shop', asked)
    count(step, 'id' in answer ? 'made' : answer.refusal)
    if (typeof terms === 'string' || 'refusal' in answer) return same(answer, { refusal: terms })
    const { walletAddress } = asked
    const expiresAt = clock.now() + spendingPolicy.quotes.lifetimeMs
    const { id } = answer
    quotes.push({
      id,
      client: clientOf(grant),
      grant,
      walletAddress,
      terms,
      expiresAt,
      gone: false,
    })
  }

  async function pay(step: Of<'pay' | 'pay with a key'>): Promise<void> {
    const grant = numberOf(step)
    const { walletAddress, receiver, debitAmount = usd(0) } = askedFor(step, 'debit')
    const request = { walletAddress, incomingPayment: receiver, debitAmount }
    const key = step.do === 'pay' ? {} : { key: `key-${step.key}` }
    await send(step, grant, { client: clientOf(grant), request, ...key })
  }

  async function payByQuote(step: Of<'pay by a quote'>): Promise<void> {
    const found = quotes.at(-1 - (step.quote % (quotes.length || 1)))
    const grant = step.by === 'who asked' && found !== undefined ? found.grant : numberOf(step)
    const from = found?.walletAddress ?? alice
    const other = from === alice ? bob : alice
    const request = {
      walletAddress: step.from === undefined ? from : other,
      quoteId: found?.id ?? 'unknown',
      ...(step.note && { metadata: { note: step.note } }),
    }
    await send(step, grant, { client: clientOf(grant), request })
  }

  /** The same client instance asks for the same again, perhaps with another of its tokens. */
  async function repeat(step: Of<'repeat'>): Promise<void> {
    const again = which(sent, step.request)
    const theirs = grants.flatMap((_, grant) => (clientOf(grant) === again?.client ? grant : []))
    const grant = which(theirs, step.grant)
    if (again !== undefined && grant !== undefined) await send(step, grant, again)
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

  /** What has to be answered: a refusal, a payment that there is, or where a new one is counted. */
  function expected(grant: number, { client, request, key }: Sent) {
    const { walletAddress } = request
    if (!isGood(grant)) return 'token_unknown'
    if (!grants[grant]?.plans.some((plan) => plan.walletAddress === walletAddress)) {
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

  async function send(step: Step, grant: number, asked: Sent): Promise<void> {
    const expectation = expected(grant, asked)
    const answer = await wallet.pay(grant, asked.request, asked.key)
    if ('quoteId' in asked.request || asked.key !== undefined) sent.push(asked)
    if (typeof expectation === 'string' || 'refusal' in answer) {
      count(step, 'refusal' in answer ? answer.refusal : 'paid')
      return same(answer, { refusal: expectation })
    }
    if ('id' in expectation) {
      count(step, 'the_same_payment')
      return same(answer, { id: expectation.id, ...spentWith(expectation) })
    }
    count(step, 'paid')
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
  }

  /** Writes down where the payment is counted, and how long that is kept. */
  function note(line: Line): void {
    const payment = written.get('outgoing-payment', line.id) as OutgoingPayment | undefined
    const keptUntil = Math.max(line.place.end, clock.now()) + spendingPolicy.budgets.retentionMs
    const id = payment?.budgetId ?? ''
    budgets.set(nameOf(line.place), { id, line, keptUntil, purged: false })
  }

  /** What is told with a payment: of the window that counts it, as long as its budget is kept. */
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

  async function command(step: Of<'begin' | 'cancel' | 'settle' | 'fail'>): Promise<void> {
    const line = book.find(which(book.lines, step.payment)?.id ?? '')
    if (line === undefined) return
    const now = clock.now()
    let refusal: string | undefined = 'payment_unknown'
    let answer: HostAnswer
    if (step.do === 'settle' || step.do === 'fail') {
      const sums = sumsOf(line, step)
      answer = await report(line, step, sums)
      const as = step.do === 'settle' && step.final ? 'final' : step.do
      if (!line.gone) refusal = book.report(line, sums, as, now)
    } else {
      answer = await wallet[step.do](line.id)
      if (!line.gone) refusal = book[step.do](line, now)
    }
    count(step, refusal ?? 'done')
    same(answer, refusal === undefined ? { ok: true } : { ok: false, refusal })
    checkPayment(line)
  }

  function report(line: Line, step: Of<'settle' | 'fail'>, sums: Sums): Promise<HostAnswer> {
    const sentAmount = usd(sums.sent)
    if (step.do === 'fail') {
      return wallet.fail(line.id, step.sent === undefined ? {} : { sentAmount })
    }
    const deliveredAmount = (line.asset === 'EUR' ? eur : usd)(sums.delivered)
    return wallet.settle(line.id, { sentAmount, deliveredAmount, final: step.final })
  }

  function sumsOf(line: Line, step: Of<'settle' | 'fail'>): Sums {
    const share = (whole: bigint, percent: number) => least((whole * BigInt(percent)) / 100n, most)
    return {
      sent: step.sent === undefined ? line.sent : share(line.debit, step.sent),
      delivered: step.do === 'fail' ? line.delivered : share(line.receive, step.delivered),
    }
  }

  async function lapse(step: Step): Promise<void> {
    const lapsed = book.sweep(clock.now())
    count(step, lapsed > 0 ? 'some' : 'none')
    same(await wallet.lapseDue(), lapsed)
  }

  async function purge(step: Step): Promise<void> {
    const now = clock.now()
    book.sweep(now)
    for (const quote of quotes) if (quote.expiresAt + day <= now) quote.gone = true
    for (const budget of budgets.values()) if (budget.keptUntil <= now) budget.purged = true
    count(step, [...budgets.values()].some(({ purged }) => purged) ? 'a_budget' : 'no_budget')
    await wallet.purge()
  }

  async function rotate(step: Of<'rotate'>): Promise<void> {
    const grant = numberOf(step)
    const rotates = lives(grant)
    count(step, rotates ? 'done' : 'over')
    same(await wallet.rotate(grant), rotates)
    const token = tokens[grant]
    if (token !== undefined && rotates) token.expiresAt = clock.now() + tokenLifetimeMs
  }

  async function revoke(step: Of<'revoke'>): Promise<void> {
    const grant = numberOf(step)
    const flying = book.lines.some(({ place, state }) => {
      return place.grant === grant && state === 'begun'
    })
    count(step, flying ? 'with_payments_in_flight' : 'done')
    const token = tokens[grant]
    if (token !== undefined) token.revoked = true
    await wallet.revoke(grant)
  }

  function reach({ what, which: n, offsetMs }: Of<'reach'>): void {
    const { holdMs } = spendingPolicy.payments
    const names = grants.flatMap(({ plans }) => plans.flatMap(({ interval }) => interval ?? []))
    const waiting = book.lines.filter(({ state }) => state === 'created')
    const edges = {
      hold: waiting.map(({ createdAt }) => createdAt + holdMs),
      quote: quotes.map(({ expiresAt }) => expiresAt),
      token: tokens.map(({ expiresAt }) => expiresAt),
      window: names.map(
        (name) => openWindow(name, clock.now())?.end ?? intervals[name].boundary(0),
      ),
    }
    const edge = which(edges[what], n)
    if (edge !== undefined) clock.set(Math.max(clock.now(), edge + offsetMs))
  }

  async function take(step: Step): Promise<void> {
    switch (step.do) {
      case 'quote':
        return quote(step)
      case 'pay':
      case 'pay with a key':
        return pay(step)
      case 'pay by a quote':
        return payByQuote(step)
      case 'repeat':
        return repeat(step)
      case 'begin':
      case 'cancel':
      case 'settle':
      case 'fail':
        return command(step)
      case 'lapse':
        return lapse(step)
      case 'purge':
        return purge(step)
      case 'rotate':
        return rotate(step)
      case 'revoke':
        return revoke(step)
      case 'pass':
        return clock.advance(step.ms)
      case 'reach':
        return reach(step)
    }
  }

  /** No window has spent more than its limit, and each has spent what the book says. */
  function checkBudgets(): void {
    for (const { id, line, purged } of budgets.values()) {
      const budget = written.get('budget', id) as Budget | undefined
      same(budget?.spent, purged ? undefined : amountsOf(book.totalsAt(line.place)))
      const { grant, item } = line.place
      const limit = book.grants[grant]?.[item]?.limit
      same(limit === undefined || book.spentAt(line.place) <= limit.value, true)
    }
  }

  /** What the holder of a token is told agrees, and asking changes nothing. */
  async function checkTold(grant: number): Promise<void> {
    const before = written.count()
    const told = await wallet.spent(grant)
    same(written.count(), before)
    if (!isGood(grant)) return same(told, { refusal: 'token_unknown' })
    same(told, amountsOf(book.spentUnder(grant, clock.now())))
  }

  for (const { client, plans } of grants) {
    await wallet.grant(client, accessOf(plans))
    const expiresAt = clock.now() + tokenLifetimeMs
    tokens.push({ expiresAt, revoked: false, endsAt: endOfPlans(plans) })
  }
  for (const [index, step] of steps.entries()) {
    await take(step)
    checkBudgets()
    // Asked now and then, in all states that there are: it is the slowest of these questions.
    if (index % 3 === 0) await checkTold(index % grants.length)
  }
}
