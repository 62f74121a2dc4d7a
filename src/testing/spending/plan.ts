import type { AccessItem, Amount, Instant } from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import {
  accountAt,
  type Book,
  type BookedPayment,
  emptyBook,
  type SpendingRules,
  spentIn,
} from './book.js'
import {
  historyText,
  isReport,
  type PaymentRequest,
  type SpendingAction,
  type SpendingHistory,
  type SpendingReport,
  type SpendingStep,
} from './history.js'
import { expectationOf } from './model.js'
import { amountOf, receivedOf, type SpendingReceiver, type SpendingScene } from './scene.js'
import { readable } from './text.js'
import { turnAt } from './windows.js'
import type { PayWish, Share, Wish } from './wishes.js'

/** The state of the plan after the steps so far. */
interface Draft {
  readonly scene: SpendingScene
  readonly rules: SpendingRules
  readonly latest: Instant
  now: Instant
  book: Book
  /** The payments that exist when a step begins: concurrent actions can only refer to these. */
  known: readonly BookedPayment[]
  requests: readonly { readonly request: PaymentRequest; readonly at: Instant }[]
  /** The host's reports about payments. */
  reports: readonly SpendingReport[]
}

/** The maximum length of a history, so that a token can be made to outlive it. */
const longestMs = 90 * 366 * 86_400_000
/** How long a wallet must recognize a repeated request at least. */
const retryMs = 30 * 86_400_000

/**
 * Turns wishes into a history: steps with numbers, amounts and instants. Each step is derived from the
 * expected outcome of the steps before it; wishes that are impossible by then are dropped.
 */
export function planHistory(
  wishes: readonly Wish[],
  scene: SpendingScene,
  start: Instant,
  rules: SpendingRules,
): SpendingHistory {
  const latest = Math.min(start + longestMs, Date.UTC(9990, 0))
  const begun = { book: emptyBook, known: [], requests: [], reports: [] }
  const draft: Draft = { scene, rules, latest, now: start, ...begun }
  const steps = wishes.flatMap((wish): SpendingStep[] => {
    draft.known = draft.book.payments
    if (wish.type !== 'at once') return planAction(draft, wish)
    const actions = wish.wishes.flatMap((each) => planAction(draft, each))
    return actions.length < 2 ? actions : [{ type: 'at once', actions, commits: wish.commits }]
  })
  const history = { scene, start, steps }
  return readable(history, () => historyText(history))
}

function planAction(draft: Draft, wish: Wish): SpendingAction[] {
  const action = actionOf(draft, wish)
  if (action === undefined) return []
  if (action.type === 'wait') draft.now = action.until
  if (action.type === 'pay') {
    const { type: _, ...request } = action
    draft.requests = [...draft.requests, { request, at: draft.now }]
  }
  if (isReport(action)) draft.reports = [...draft.reports, action]
  const { answer, after } = expectationOf(draft.book, action, draft.now, draft.rules)
  if (answer !== 'refused') draft.book = after
  return [action]
}

function actionOf(draft: Draft, wish: Wish): SpendingAction | undefined {
  const { book, now } = draft
  switch (wish.type) {
    case 'grant': {
      const asked = unlike(wish.items.map((item) => withTimeLeft(item, now, draft.rules)))
      const granted = wish.halved ? asked.map(halved) : asked
      return { type: 'grant', grant: book.grants.length + 1, asked, granted }
    }
    case 'pay':
      return planPayment(draft, wish)
    case 'retry': {
      const made = fromTheEnd(draft.requests, wish.back)
      const recent = made !== undefined && now - made.at <= retryMs
      return recent ? { type: 'retry', request: made.request } : undefined
    }
    case 'again':
      return fromTheEnd(draft.reports, wish.back)
    case 'begin':
    case 'cancel': {
      const payment = paymentFor(draft, wish, 'held')?.request.payment
      return payment === undefined ? undefined : { type: wish.type, payment }
    }
    case 'report-sent':
    case 'fail': {
      const line = paymentFor(draft, wish, 'begun')
      if (line !== undefined) return planTotals(draft, wish, line)
      // The host must begin a payment before it reports amounts.
      const payment = paymentFor(draft, wish, 'held')?.request.payment
      return payment === undefined ? undefined : { type: 'begin', payment }
    }
    case 'lapse':
      return { type: 'lapse' }
    case 'rotate':
    case 'revoke':
      return { type: wish.type, grant: grantNumber(book, wish.grant) }
    case 'wait':
      return waitUntil(draft, now + wish.ms)
    case 'edge':
      return waitUntil(draft, edgeOf(draft, wish.grant, wish.item), wish.off)
    case 'hold':
      return waitUntil(draft, fromTheEnd(book.payments, wish.back)?.holdUntil, wish.off)
    case 'at once':
      return undefined
  }
}

/** Drops an interval that has ended: the library does not grant an item without remaining windows. */
function withTimeLeft(item: AccessItem, now: Instant, { intervalCounting }: SpendingRules) {
  const { interval, ...limits } = item.limits ?? {}
  if (interval === undefined || turnAt(interval, now, intervalCounting) !== 'over') return item
  return { ...item, limits }
}

/** Removes items that allow the same as another, which the library rejects. */
function unlike(items: readonly AccessItem[]): readonly AccessItem[] {
  return [...new Map(items.map((item) => [meaningOf(item), item])).values()]
}

/** Returns the same text for items that are written differently, such as with empty or with no limits. */
function meaningOf({ type, actions, identifier, limits = {} }: AccessItem): string {
  const { receiver, interval, debitAmount, receiveAmount } = limits
  const amounts = [debitAmount, receiveAmount].map(
    (amount) => amount && [amount.value, amount.assetCode, amount.assetScale],
  )
  return JSON.stringify([type, actions.toSorted(), identifier, receiver, interval, amounts])
}

function halved(item: AccessItem): AccessItem {
  const { debitAmount, receiveAmount } = item.limits ?? {}
  const half = (amount: Amount) => amountOf((BigInt(amount.value) + 1n) / 2n, amount)
  const limits = {
    ...item.limits,
    ...(debitAmount && { debitAmount: half(debitAmount) }),
    ...(receiveAmount && { receiveAmount: half(receiveAmount) }),
  }
  return item.limits === undefined ? item : { ...item, limits }
}

function grantNumber({ grants }: Book, number: number): number {
  return (number % grants.length) + 1
}

function fromTheEnd<Item>(items: readonly Item[], back: number): Item | undefined {
  return items[items.length - 1 - (back % Math.max(1, items.length))]
}

/** Returns a payment to which the action applies, or sometimes any payment. */
function paymentFor(
  { known }: Draft,
  { back, any }: { readonly back: number; readonly any: boolean },
  state: BookedPayment['state'],
): BookedPayment | undefined {
  return fromTheEnd(any ? known : known.filter((line) => line.state === state), back)
}

function waitUntil(
  { now, latest }: Draft,
  instant: Instant | undefined,
  off = 0,
): SpendingAction | undefined {
  if (instant === undefined) return undefined
  const until = instant + off
  return until > now && until <= latest ? { type: 'wait', until } : undefined
}

/** Returns the end of an item's current window or, outside a window, the start of the next if it is near. */
function edgeOf({ book, now, rules }: Draft, grant: number, item: number): Instant | undefined {
  const number = grantNumber(book, grant)
  const items = book.grants[number - 1]?.items ?? []
  const place = (item % Math.max(1, items.length)) + 1
  const found = accountAt(book, number, place, now, rules)
  if (found === 'over') return undefined
  if (found !== 'not yet') return found.account?.window?.end
  const [, first = ''] = items[place - 1]?.limits?.interval?.toUpperCase().split('/') ?? []
  return first.startsWith('P') ? undefined : Date.parse(first)
}

function planPayment(draft: Draft, wish: PayWish): SpendingAction {
  const { book, now, rules, scene, requests } = draft
  const grant = grantNumber(book, wish.grant)
  const items = book.grants[grant - 1]?.items ?? []
  const place = wish.item % Math.max(1, items.length)
  const found = accountAt(book, grant, place + 1, now, rules)
  const account = typeof found === 'string' ? undefined : found.account
  const receiver = chooseReceiver(scene, items[place], account?.limit, wish.receiver)
  const limit = BigInt(account?.limit.value ?? 1_000n)
  const rest = account === undefined ? limit : limit - spentIn(book, account)
  const { size } = wish
  const wanted =
    size.of === 'rest'
      ? rest + size.off
      : size.of === 'limit'
        ? limit / size.parts + size.off
        : size.value
  const { unitPrice = 1n } = receiver
  const perUnit = account?.counts === 'receiveAmount' ? unitPrice : 1n
  const debit = within(wanted * perUnit, unitPrice, (amountValueMax / unitPrice) * unitPrice)
  return {
    type: 'pay',
    payment: requests.length + 1,
    grant,
    by: wish.by,
    receiver: receiver.url,
    debitAmount: amountOf(debit, scene.asset),
    receiveAmount: amountOf(receivedOf(debit, receiver), receiver.asset),
  }
}

function within(value: bigint, least: bigint, most: bigint): bigint {
  if (value < least) return least
  return value > most ? most : value
}

/** Returns the receiver of the item, unless the wish selects another; 0 selects none. */
function chooseReceiver(
  { receivers }: SpendingScene,
  item: AccessItem | undefined,
  limit: Amount | undefined,
  wish: number,
): SpendingReceiver {
  const [first] = receivers
  if (wish > 0) return receivers[wish % receivers.length] ?? first
  const { receiver, receiveAmount } = item?.limits ?? {}
  const named = receivers.find(({ url }) => url === receiver)
  if (named !== undefined || receiveAmount === undefined) return named ?? first
  return receivers.find(({ asset }) => asset.assetCode === limit?.assetCode) ?? first
}

function planTotals(
  { scene }: Draft,
  { type, share, final }: Wish & { type: 'report-sent' | 'fail' },
  { request, sent }: BookedPayment,
): SpendingAction {
  const { payment, debitAmount, receiveAmount, receiver: url } = request
  const total = sentOf(share, sent, BigInt(debitAmount.value))
  const receiver = scene.receivers.find((each) => each.url === url) ?? scene.receivers[0]
  const totals = {
    payment,
    sentAmount: amountOf(total, debitAmount),
    deliveredAmount: amountOf(receivedOf(total, receiver), receiveAmount),
  }
  return type === 'fail' ? { type, ...totals } : { type, ...totals, final }
}

/** Returns the cumulative sent amount for a share, given the amount sent before. */
function sentOf(share: Share, before: bigint, debit: bigint): bigint {
  switch (share) {
    case 'nothing':
      return before
    case 'one unit':
      return before < debit ? before + 1n : before
    case 'half':
      return before + (debit - before) / 2n
    case 'all but one unit':
      return before < debit ? debit - 1n : debit
    case 'all':
      return debit
    case 'too much':
      return debit < amountValueMax ? debit + 1n : debit
  }
}
