import type { Budget } from '../../src/core/budget.js'
import type { Instant } from '../../src/core/decision.js'
import type { OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import type { AccessItem, Amount } from '../../src/index.js'
import type { PaymentAnswer, SpendingAnswer, SpendingWallet } from '../../src/testing/index.js'
import type { Aside, Form } from './asides.js'
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
import { alice, bob } from './world.js'

type Of<Type extends Aside['do']> = Extract<Aside, { readonly do: Type }>

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

/** Items for Bob's account, which the histories do not know: each grant has one of them, or none. */
const itemsOfBob: readonly (AccessItem['limits'] | 'none')[] = [
  { debitAmount: usd(100) },
  'none',
  { receiveAmount: eur(60), receiver: euroReceiver },
  {},
  { debitAmount: usd(most) },
]

function withBob(access: readonly AccessItem[], grant: number): readonly AccessItem[] {
  const limits = itemsOfBob[grant % itemsOfBob.length]
  if (limits === 'none' || limits === undefined) return access
  const item = { type: 'outgoing-payment', actions: ['create', 'read'], identifier: bob } as const
  return [...access, { ...item, limits }]
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

/**
 * A wallet for histories of the testing kit that is compared with a book: every answer, to the code of its
 * refusal, what every window has spent, and every payment. After each step it does an aside. Asides move no
 * money of Alice, whose account the histories are about, and any money of Bob.
 *
 * @param met counts the answers, by kind of request.
 */
export function bookedWallet(
  wallet: PlayedWallet,
  asides: readonly Aside[],
  met: Map<string, number> = new Map(),
): SpendingWallet {
  const { clock, written } = wallet
  const grants: Plan[][] = []
  const clients: ClientName[] = []
  const book = newBook(grants, spendingPolicy.payments)
  const quotes: QuoteLine[] = []
  const sent: Sent[] = []
  /** The ids of quotes, by the keys of the requests that they were asked for. */
  const quoted = new Map<string, string>()
  const requested = new Set<string>()
  const tokens: { expiresAt: Instant; revoked: boolean }[] = []
  /** The budgets that there have been: their ids, and until when they are kept at least. */
  const budgets = new Map<string, { id: string; line: Line; keptUntil: Instant; purged: boolean }>()
  let steps = 0
  let last: Promise<unknown> = Promise.resolve()

  /** Runs after what was begun before: the book takes one request at a time. */
  function alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = last.then(work)
    last = running.catch(() => undefined)
    return running
  }

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

  /** The same price, named by another amount where that is possible. */
  function inAnotherForm(asked: Asked & { readonly debitAmount: Amount }): Asked {
    const { debitAmount, ...rest } = asked
    const form: Form = (['debit', 'receive', 'neither'] as const)[quotes.length % 3] ?? 'debit'
    const [amount, per] = asked.receiver === euroReceiver ? [eur, 2n] : [usd, 1n]
    const debit = BigInt(debitAmount.value)
    if (form === 'neither' && debit === 1_000n) return rest
    if (form !== 'receive' || debit % per !== 0n) return asked
    return { ...rest, receiveAmount: amount(debit / per) }
  }

  /** A client instance whose token has expired is refused, and rotates it. */
  async function renew(grant: number, attempt: () => Promise<unknown>): Promise<void> {
    if (isGood(grant) || !lives(grant)) return
    await attempt()
    await rotate(grant)
  }

  async function rotate(grant: number): Promise<boolean> {
    const rotates = lives(grant)
    count('rotate', rotates ? 'done' : 'over')
    same(await wallet.rotate(grant), rotates)
    const token = tokens[grant]
    if (token !== undefined && rotates) token.expiresAt = clock.now() + tokenLifetimeMs
    return rotates
  }

  async function pay(request: Parameters<SpendingWallet['pay']>[0]): Promise<PaymentAnswer> {
    const { key, by, walletAddress, receiver, debitAmount } = request
    const grant = Number(request.grant)
    const client = clientOf(grant)
    const repeats = requested.has(key)
    requested.add(key)
    let asked: Sent
    if (by === 'direct') {
      asked = { client, key, request: { walletAddress, incomingPayment: receiver, debitAmount } }
    } else {
      const price = inAnotherForm({ walletAddress, receiver, debitAmount })
      const quoteId = quoted.get(key) ?? (await quote(grant, price)) ?? 'unknown'
      quoted.set(key, quoteId)
      asked = { client, request: { walletAddress, quoteId } }
    }
    const kind = by === 'direct' ? 'pay with a key' : 'pay by a quote'
    const what = repeats ? 'repeat' : kind
    await renew(grant, () => send(what, grant, asked))
    const answer = await send(what, grant, asked)
    if ('refusal' in answer) return { accepted: false, reason: answer.refusal }
    const { debitAmount: debited, receiveAmount: received } = answer.spent ?? {}
    return {
      accepted: true,
      id: answer.id,
      ...(debited && { spentDebitAmount: debited }),
      ...(received && { spentReceiveAmount: received }),
    }
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

  /** Leaves out the totals that have not changed. */
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

  /** A report of the history on a payment, by its id. */
  function report(id: string, run: (line: Line) => Promise<HostAnswer>): Promise<SpendingAnswer> {
    return alone(async () => {
      const line = book.find(id)
      if (line === undefined) throw new Error(`the book has no payment ${id}`)
      const { ok, refusal = '' } = await run(line)
      return ok ? { accepted: true } : { accepted: false, reason: refusal }
    })
  }

  async function lapseAndPurge(): Promise<void> {
    const now = clock.now()
    const lapsed = book.sweep(now)
    count('lapse', lapsed > 0 ? 'some' : 'none')
    same(await wallet.lapseDue(), lapsed)
    for (const quote of quotes) if (quote.expiresAt + day <= now) quote.gone = true
    for (const budget of budgets.values()) if (budget.keptUntil <= now) budget.purged = true
    count('purge', [...budgets.values()].some(({ purged }) => purged) ? 'a_budget' : 'no_budget')
    await wallet.purge()
  }

  /** Stops on the way where a quote or a token expires, and asks just before and after. */
  async function passTo(now: Instant): Promise<void> {
    const quote = quotes.findLast(({ walletAddress }) => walletAddress === bob)
    const expiries = [...(quote ? [quote.expiresAt] : []), ...tokens.map((each) => each.expiresAt)]
    const edges = expiries.flatMap((expiresAt) => [expiresAt - 1, expiresAt])
    for (const edge of edges.toSorted((a, b) => a - b)) {
      if (edge <= clock.now() || edge >= now) continue
      clock.set(edge)
      const grant = quote?.grant ?? 0
      if (quote !== undefined) await payByQuote({ quote: quotes.indexOf(quote), grant })
      await checkTold(grant)
    }
    clock.set(now)
    // More often than the history does, so that records are removed, but only where that moves no money of Alice.
    const holdEnds = ({ createdAt }: Line) => createdAt + spendingPolicy.payments.holdMs
    const due = book.lines.filter((line) => line.state === 'created' && holdEnds(line) <= now)
    if (grants.length > 0 && !due.some((line) => !isOfBob(line))) await lapseAndPurge()
  }

  function isOfBob({ place: { grant, item } }: Line): boolean {
    return grants[grant]?.[item]?.walletAddress === bob
  }

  async function payByQuote({
    quote,
    grant,
    note,
    from,
  }: Pick<Of<'pay by a quote'>, 'quote' | 'grant' | 'note' | 'from'>): Promise<void> {
    const found = quotes[quote]
    const account = found?.walletAddress ?? bob
    const other = account === alice ? bob : alice
    const request = {
      walletAddress: from === undefined ? account : other,
      quoteId: found?.id ?? 'unknown',
      ...(note && { metadata: { note } }),
    }
    await sendAside('pay by a quote', grant, { client: clientOf(grant), request })
  }

  /** Sends it unless it would move money of Alice. */
  async function sendAside(what: string, grant: number, asked: Sent): Promise<void> {
    const expectation = expected(grant, asked)
    const charges = typeof expectation !== 'string' && !('id' in expectation)
    if (charges && asked.request.walletAddress !== bob) return
    await send(what, grant, asked)
  }

  /** What an aside asks for, in the asset that it is asked for in. */
  function askedFor(aside: Of<'quote' | 'pay' | 'pay with a key'>, form: Form): Asked {
    const grant = aside.grant % grants.length
    const walletAddress = aside.account === 'alice' ? alice : bob
    const item = grants[grant]?.findIndex((plan) => plan.walletAddress === walletAddress) ?? -1
    const { limit } = grants[grant]?.[item] ?? {}
    const { of, percent, offset } = aside.part
    const whole = of === 'limit' ? (limit?.value ?? 1_000n) : book.room(grant, item, clock.now())
    const part = (whole * BigInt(percent)) / 100n + BigInt(offset)
    const [amount, per] = aside.to === euroReceiver ? [eur, 2n] : [usd, 1n]
    const factor = limit?.counts === 'receiveAmount' && form === 'debit' ? per : 1n
    const value = least(part < 0n ? 0n : part * factor, form === 'receive' ? most / per : most)
    const asked = { walletAddress, receiver: aside.to }
    if (form === 'neither') return asked
    return form === 'debit'
      ? { ...asked, debitAmount: usd(value) }
      : { ...asked, receiveAmount: amount(value) }
  }

  async function payAside(aside: Of<'pay' | 'pay with a key'>): Promise<void> {
    const grant = aside.grant % grants.length
    const { walletAddress, receiver, debitAmount = usd(0) } = askedFor(aside, 'debit')
    const request = { walletAddress, incomingPayment: receiver, debitAmount }
    const key = aside.do === 'pay' ? {} : { key: `key-${aside.key}` }
    await sendAside(aside.do, grant, { client: clientOf(grant), request, ...key })
  }

  /** The same client instance asks for the same again, perhaps with another of its tokens. */
  async function repeat(aside: Of<'repeat'>): Promise<void> {
    const again = which(sent, aside.request)
    const theirs = grants.flatMap((_, grant) => (clientOf(grant) === again?.client ? grant : []))
    const grant = which(theirs, aside.grant)
    if (again !== undefined && grant !== undefined) await sendAside('repeat', grant, again)
  }

  async function reportAside(aside: Of<'begin' | 'cancel' | 'settle' | 'fail'>): Promise<void> {
    const all = book.lines.filter(isOfBob)
    const begun = all.filter(({ state }) => state === 'begun')
    const line = which(aside.payment % 2 === 0 && begun.length > 0 ? begun : all, aside.payment)
    if (line === undefined || book.find(line.id) !== line) return
    const share = (whole: bigint, percent: number) => least((whole * BigInt(percent)) / 100n, most)
    switch (aside.do) {
      case 'begin':
        return void (await begin(line))
      case 'cancel':
        return void (await cancel(line))
      case 'fail': {
        const sent = aside.sent === undefined ? line.sent : share(line.debit, aside.sent)
        return void (await fail(line, { sent, delivered: line.delivered }))
      }
      case 'settle': {
        const sums = {
          sent: share(line.debit, aside.sent),
          delivered: share(line.receive, aside.delivered),
        }
        return void (await settle(line, sums, aside.final))
      }
    }
  }

  async function take(aside: Aside): Promise<void> {
    switch (aside.do) {
      case 'quote':
        return void (await quote(aside.grant % grants.length, askedFor(aside, aside.form)))
      case 'pay':
      case 'pay with a key':
        return payAside(aside)
      case 'pay by a quote': {
        const place = quotes.length - 1 - (aside.quote % (quotes.length || 1))
        const asker = aside.by === 'who asked' ? quotes[place]?.grant : undefined
        const grant = asker ?? aside.grant % grants.length
        return payByQuote({ ...aside, quote: place, grant })
      }
      case 'repeat':
        return repeat(aside)
      default:
        return reportAside(aside)
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

  return {
    grant: (_, granted) =>
      alone(async () => {
        const grant = grants.length
        const client = grant % 3 === 2 ? 'cafe' : 'shop'
        const access = withBob(granted, grant)
        const before = clock.now()
        await wallet.grant(client, access)
        tokens.push({ expiresAt: clock.now() + tokenLifetimeMs, revoked: false })
        // To get a grant may take some seconds, of which the history does not know.
        clock.set(before)
        clients.push(client)
        grants.push(access.map(planOf))
        return String(grant)
      }),
    pay: (request) => alone(() => pay(request)),
    begin: (id) => report(id, begin),
    cancel: (id) => report(id, cancel),
    settle: (id, { sentAmount, deliveredAmount, final }) =>
      report(id, (line) => settle(line, sumsOf(sentAmount, deliveredAmount), final)),
    fail: (id, { sentAmount, deliveredAmount }) =>
      report(id, (line) => fail(line, sumsOf(sentAmount, deliveredAmount))),
    lapse: () => alone(lapseAndPurge),
    rotate: (name) => alone(async () => ({ accepted: await rotate(Number(name)) })),
    revoke: (name) =>
      alone(async () => {
        const grant = Number(name)
        const flying = book.lines.some(({ place, state }) => {
          return place.grant === grant && state === 'begun'
        })
        count('revoke', flying ? 'with_payments_in_flight' : 'done')
        const token = tokens[grant]
        if (token !== undefined) token.revoked = true
        await wallet.revoke(grant)
      }),
    setClock: (now) => alone(() => passTo(now)),
    problem: () =>
      alone(async () => {
        checkBudgets()
        const aside = asides[steps++]
        if (aside !== undefined) await take(aside)
        checkBudgets()
        // Every third time, in all states that there are: it is the slowest of these questions.
        if (steps % 3 === 0) await checkTold(steps % grants.length)
        return undefined
      }),
  }
}

const sumsOf = (sent: Amount, delivered: Amount): Sums => ({
  sent: BigInt(sent.value),
  delivered: BigInt(delivered.value),
})
