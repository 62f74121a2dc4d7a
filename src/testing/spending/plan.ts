import type { AccessItem, Amount, Instant } from 'open-payments-server'
import { allowsSame } from 'open-payments-server/core'
import { accountAt, type BookedPayment, emptyBook, type SpendingRules } from './book.js'
import { type Draft, fromTheEnd, grantNumber, retryMs } from './draft.js'
import {
  historyText,
  isInterruptible,
  isReport,
  type SpendingAction,
  type SpendingHistory,
  type SpendingStep,
} from './history.js'
import { expectationOf } from './model.js'
import { planAltered, planPayment, planTotals } from './plan-amounts.js'
import { amountOf, type SpendingScene } from './scene.js'
import { readable } from './text.js'
import { hasEnded, turnAt } from './windows.js'
import type { Wish } from './wish.js'

/** What a history is planned for. */
export interface HistoryPlan {
  readonly scene: SpendingScene
  readonly start: Instant
  /** The maximum number of steps after the first one. */
  readonly stepsMax: number
  readonly rules: SpendingRules
}

/** The maximum length of a history, so that a token can be made to outlive it. */
const longestMs = 90 * 366 * 86_400_000

/**
 * Turns wishes into a history: steps with numbers, amounts and instants. Each step is derived from the
 * expected outcome of the steps before it; wishes that are impossible by then are dropped.
 */
export function planHistory(
  wishes: readonly Wish[],
  { scene, start, stepsMax, rules }: HistoryPlan,
): SpendingHistory {
  const latest = Math.min(start + longestMs, Date.UTC(9990, 0))
  const begun = { book: emptyBook, known: [], requests: [], reports: [] }
  const draft: Draft = { scene, rules, latest, now: start, ...begun }
  const single = wishes.flatMap((wish) => (wish.type === 'in a row' ? wish.wishes : [wish]))
  const steps: SpendingStep[] = []
  for (const wish of single) {
    draft.known = draft.book.payments
    if (steps.length <= stepsMax) steps.push(...planStep(draft, wish))
  }
  const history = { scene, start, steps }
  return readable(history, () => historyText(history))
}

function planStep(draft: Draft, wish: Wish): SpendingStep[] {
  if (wish.type === 'store fails') {
    const { failure } = wish
    return planAction(draft, wish.wish).map((action) =>
      isInterruptible(action) ? { type: 'store fails', failure, action } : action,
    )
  }
  if (wish.type !== 'at once') return planAction(draft, wish)
  const actions = wish.wishes.flatMap((each) => planAction(draft, each))
  return actions.length < 2 ? actions : [{ type: 'at once', actions, commits: wish.commits }]
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
    case 'alter':
      return planAltered(draft, wish.back)
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
    case 'in a row':
    case 'store fails':
      return undefined
  }
}

/** Drops an interval that has ended: the library does not grant an item without remaining windows. */
function withTimeLeft(item: AccessItem, now: Instant, { intervalCounting }: SpendingRules) {
  const { interval, ...limits } = item.limits ?? {}
  if (interval === undefined || !hasEnded(turnAt(interval, now, intervalCounting))) return item
  return { ...item, limits }
}

/** Removes items that allow the same as another, which the library rejects. */
function unlike(items: readonly AccessItem[]): readonly AccessItem[] {
  return items.filter(
    (item, index) => !items.slice(0, index).some((other) => allowsSame(other, item)),
  )
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
  if (found.ok) return found.value?.window?.end
  if (hasEnded(found)) return undefined
  const [, first = ''] = items[place - 1]?.limits?.interval?.toUpperCase().split('/') ?? []
  return first.startsWith('P') ? undefined : Date.parse(first)
}
