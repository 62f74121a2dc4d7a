import { parseInterval, type RepeatingInterval, windowAt } from '../../src/entry-core.js'
import type { AccessItem, Amount, IntervalCounting } from '../../src/index.js'
import type { SpendingScene, WalletRequest } from '../../src/testing/index.js'

/** Mistakes in counting what was spent that an implementation may plausibly contain. */
export const mistakes = [
  'a late failure gives back to the window of today',
  'what was sent of a failed payment is given back too',
  'a payment that is completed for less gives back all of it',
  'a completed payment is counted whole',
  'all items of a grant share one budget',
  'a window still holds the instant at which it ends',
  'the first window is reckoned from midnight',
  'a repeat pays again',
  'sums are floating point',
  'amounts are compared as text',
  'a limit has to be kept strictly',
  'a revoked grant still pays',
  'the owner is granted what was asked',
  'withdrawing twice gives back twice',
  'failing twice gives back twice',
  'a payment is begun by everybody who tries',
  'what has lapsed can still be begun',
  'more can be sent than was reserved',
  'looks at the budget, waits, and writes it',
  'months have 30 days',
  'a repeated report adds to the totals',
  'the receiver is not looked at',
  'what is received is not limited',
  'monthly windows drift',
  'months are reckoned back from the drifted end',
  'reports are added up',
  'a repeated final report gives back twice',
  'what was delivered is reckoned from what was sent',
  'a repeat with another amount is taken for the first',
  'a repeat with another amount pays again',
  'every account of the owner pays',
  'the accounts of the owner share a budget',
  'a failed write keeps its reservation',
  'a key is kept only after the response',
] as const

export type Mistake = (typeof mistakes)[number]

export interface Payment {
  readonly id: string
  readonly request: WalletRequest
  readonly received: bigint
  readonly account?: { readonly key: string; readonly item: AccessItem; readonly place: number }
  readonly holdUntil: number
  state: 'created' | 'begun' | 'completed' | 'failed'
  sent: bigint
  delivered: bigint
}

/** A wallet that counts what was spent in memory, and may make a mistake. */
export interface CarelessState {
  readonly scene: SpendingScene
  readonly intervalCounting: IntervalCounting
  readonly makes: (mistake: Mistake) => boolean
  readonly grants: Map<string, { items: readonly AccessItem[]; revoked: boolean }>
  readonly payments: Map<string, Payment>
  readonly byKey: Map<string, Payment>
  readonly totals: Map<string, bigint>
  /** Whether the next write fails, before or after it takes effect. */
  failing: 'before' | 'after' | undefined
  now: number
}

const dayMs = 86_400_000

/** Charges a payment to the first item that can cover it, by the totals that were read. */
export function charge(
  state: CarelessState,
  request: WalletRequest,
  received: Amount,
  read: ReadonlyMap<string, bigint>,
) {
  const { makes, grants, totals } = state
  const { items = [], revoked = true } = grants.get(request.grant) ?? {}
  if (revoked && !makes('a revoked grant still pays')) return undefined
  for (const [place, item] of items.entries()) {
    const { receiver, debitAmount, receiveAmount } = item.limits ?? {}
    const foreign = item.identifier !== request.walletAddress
    if (foreign && !makes('every account of the owner pays')) continue
    const wrong = receiver !== undefined && receiver !== request.receiver
    if (wrong && !makes('the receiver is not looked at')) continue
    const key = keyOf(state, request.grant, item, place)
    if (key === undefined) continue
    const limit = debitAmount ?? receiveAmount
    if (limit === undefined) return {}
    if (debitAmount === undefined && makes('what is received is not limited')) return {}
    const amount = debitAmount === undefined ? received : request.debitAmount
    if (amount.assetCode !== limit.assetCode) continue
    const total = (read.get(key) ?? 0n) + BigInt(amount.value)
    if (!fits(state, total, limit)) continue
    totals.set(key, makes('sums are floating point') ? BigInt(Number(total)) : total)
    return { account: { key, item, place } }
  }
  return undefined
}

function fits({ makes }: CarelessState, total: bigint, limit: Amount): boolean {
  if (makes('sums are floating point')) return Number(total) <= Number(limit.value)
  if (makes('amounts are compared as text')) return total.toString() <= limit.value
  if (makes('a limit has to be kept strictly')) return total < BigInt(limit.value)
  return total <= BigInt(limit.value)
}

/** Returns where a payment of an item would be counted now, or `undefined` if the limits refuse it. */
function keyOf(
  state: CarelessState,
  grant: string,
  item: AccessItem,
  place: number,
): string | undefined {
  const { interval } = item.limits ?? {}
  const items = state.grants.get(grant)?.items ?? []
  const oneOwner = state.makes('the accounts of the owner share a budget')
  const others = oneOwner && items.some(({ identifier }) => identifier !== item.identifier)
  const shared = others ? 0 : place
  const name = state.makes('all items of a grant share one budget') ? grant : `${grant} ${shared}`
  if (interval === undefined) return name
  const start = windowStart(state, interval)
  return start === undefined ? undefined : `${name} ${start}`
}

function windowStart(
  { makes, now, intervalCounting }: CarelessState,
  text: string,
): number | undefined {
  const parsed = parseInterval(text)
  if (!parsed.ok) return undefined
  let interval = parsed.value
  if (makes('the first window is reckoned from midnight') && interval.form !== 'duration/end') {
    interval = { ...interval, start: Math.floor(interval.start / dayMs) * dayMs }
  }
  if (makes('months have 30 days') && interval.form !== 'start/end') {
    const { months, days } = interval.duration
    const duration = { ...interval.duration, months: 0, days: days + 30 * months }
    interval = { ...interval, duration }
  }
  const drifts =
    interval.form === 'start/duration'
      ? makes('monthly windows drift')
      : makes('months are reckoned back from the drifted end')
  if (drifts) return driftedStart(interval, now, intervalCounting)
  if (makes('a window still holds the instant at which it ends')) {
    const before = windowAt(interval, now - 1, intervalCounting)
    if (before !== undefined) return before.start
  }
  return windowAt(interval, now, intervalCounting)?.start
}

/** Reckons each window from the one beside it, so that the last day of a short month stays. */
function driftedStart(
  interval: RepeatingInterval,
  now: number,
  intervalCounting: IntervalCounting,
): number | undefined {
  if (interval.form === 'start/end') return windowAt(interval, now, intervalCounting)?.start
  const forwards = interval.form === 'start/duration'
  const { count = -1 } = interval
  let left = count < 0 ? 5_000 : count + (intervalCounting === 'repetitions' ? 1 : 0)
  let edge = forwards ? interval.start : interval.end
  for (; left > 0; left--) {
    const one = forwards
      ? { ...interval, start: edge, count: 1 }
      : { ...interval, end: edge, count: 1 }
    const window = windowAt(one, forwards ? edge : edge - 1, 'occurrences')
    if (window === undefined) return undefined
    if (now >= window.start && now < window.end) return window.start
    edge = forwards ? window.end : window.start
    if (forwards ? edge > now : edge <= now) return undefined
  }
  return undefined
}

/** Releases the part of a payment that was not sent. */
export function giveBack(
  state: CarelessState,
  { account, request, received, sent, delivered }: Payment,
): void {
  if (account === undefined) return
  const { makes, totals } = state
  const { item, place } = account
  const today = keyOf(state, request.grant, item, place)
  const late = makes('a late failure gives back to the window of today')
  const key = late && today !== undefined ? today : account.key
  const debits = item.limits?.debitAmount !== undefined
  const reserved = debits ? BigInt(request.debitAmount.value) : received
  const total = totals.get(key) ?? 0n
  const arrived = makes('what was delivered is reckoned from what was sent')
    ? (sent * received) / BigInt(request.debitAmount.value)
    : delivered
  totals.set(key, total - reserved + (debits ? sent : arrived))
}
