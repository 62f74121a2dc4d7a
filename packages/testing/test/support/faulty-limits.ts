import type { AccessItem, Amount, SpendingLimit } from 'open-payments-server'
import {
  type IntervalCounting,
  parseInterval,
  type RepeatingInterval,
  windowAt,
} from 'open-payments-server/core'
import type {
  OwnerRequest,
  SpendingAmendment,
  SpendingScene,
  WalletRequest,
} from '../../src/index.js'

/** Plausible mistakes of an implementation in counting spent amounts. */
export const mistakes = [
  'a late failure releases its amount into the current window',
  'a failed payment also releases what was sent',
  'a payment that completes with less releases its full amount',
  'a completed payment counts in full',
  'all items of a grant share one budget',
  'a window includes the instant at which it ends',
  'the first window is calculated from midnight',
  'a repeat pays again',
  'sums are floating-point numbers',
  'amounts are compared as text',
  'a total must stay below the limit',
  'a revoked grant still pays',
  'the client gets everything that it requested',
  'cancelling twice releases the amount twice',
  'failing twice releases the amount twice',
  'a payment can be begun twice',
  'a lapsed payment can still be begun',
  'a payment can send more than was reserved',
  'a payment reads the budget, waits, and then writes it',
  'months have 30 days',
  'a repeated report adds to the totals',
  'the receiver is not checked',
  'limits on the received amount are ignored',
  'monthly windows drift',
  'months are calculated backwards from the drifted end',
  'the totals of all reports are added up',
  'a repeated final report releases the amount twice',
  'the delivered amount is calculated from the sent amount',
  'a repeat with another amount returns the first payment',
  'a repeat with another amount pays again',
  'every account of the owner can pay',
  'the accounts of the owner share a budget',
  'a failed write keeps its reservation',
  'a key is kept only after the response',
  'a lowered limit applies only to later grants',
  'a removed item still pays',
  'an amendment returns what was spent',
  'an amendment raises a limit',
  'an amendment forgets the conditions before it',
  'a pause is ignored',
  'the maximum of one payment is ignored',
  'the receivers of the conditions are ignored',
  'a limit of the owner counts amounts, and not payments',
  'a payment that sent nothing stays in the number of payments',
  'a limit of an account counts the payments of each grant alone',
  'a limit of the owner returns nothing of a failed payment',
  'an added limit of the owner applies only to later grants',
  'an account keeps its first limits',
  'a refund counts back in the current window',
  'a doubt counts back at the end of its payment',
  'a refund counts back only what was delivered',
  'a refund counts back nothing',
  'a repeated refund counts back twice',
  'a doubt can be decided a second time',
  'a refund can be more than the doubt',
  'a payment that was refunded in full stays in the number of payments',
  'a grant counts what the owner pays',
  'the limits of an account always count what the owner pays',
  'the limits of an account never count what the owner pays',
  'the owner pays twice with one key',
  'a list of a client contains what the owner pays',
] as const

export type Mistake = (typeof mistakes)[number]

/** A request of a client, or of the owner, which has no grant. */
export type AnyRequest = WalletRequest | (OwnerRequest & { readonly grant?: never })

export interface Payment {
  readonly id: string
  readonly request: AnyRequest
  readonly received: bigint
  /** The totals of the owner's limits in which it counts. */
  readonly scopes?: readonly string[]
  readonly account?: { readonly key: string; readonly item: AccessItem; readonly place: number }
  readonly holdUntil: number
  state: 'created' | 'begun' | 'completed' | 'failed'
  sent: bigint
  delivered: bigint
  inDoubt?: bigint
  /** What the decision about the doubt has refunded. */
  refunded?: bigint
}

export interface Grant {
  /** An item that was removed is absent, and the others keep their places. */
  items: readonly (AccessItem | undefined)[]
  conditions: NonNullable<SpendingAmendment['conditions']>
  revoked: boolean
}

/** The state of a wallet that counts spent amounts in memory, and may make a mistake. */
export interface FaultyState {
  readonly scene: SpendingScene
  readonly intervalCounting: IntervalCounting
  readonly makes: (mistake: Mistake) => boolean
  readonly grants: Map<string, Grant>
  readonly payments: Map<string, Payment>
  readonly byKey: Map<string, Payment>
  readonly totals: Map<string, bigint>
  /** How many payments count in each limit of an owner. */
  readonly counts: Map<string, number>
  /** The limits of accounts. */
  readonly accounts: Map<string, readonly SpendingLimit[]>
  /** Whether the next write fails, before or after it takes effect. */
  failing: 'before' | 'after' | undefined
  now: number
}

const dayMs = 86_400_000

/** Charges a payment to the first item that can cover it, according to the totals in `read`. */
export function charge(
  state: FaultyState,
  request: WalletRequest,
  received: Amount,
  read: ReadonlyMap<string, bigint>,
) {
  const { makes, grants } = state
  const { items = [], revoked = true } = grants.get(request.grant) ?? {}
  if (revoked && !makes('a revoked grant still pays')) return undefined
  if (!meetsConditions(state, request)) return undefined
  const scopes = ownersScopes(state, request, true, read)
  if (scopes === undefined) return undefined
  const charged = chargeItem(state, items, request, received, read)
  if (charged !== undefined) chargeScopes(state, scopes, request, 1)
  return charged && { ...charged, scopes }
}

/** Charges what the owner pays to the limits of the account, if it is to count there. */
export function chargeOwner(
  state: FaultyState,
  request: OwnerRequest,
  received: Amount,
  read: ReadonlyMap<string, bigint>,
) {
  const { makes, grants } = state
  const always = makes('the limits of an account always count what the owner pays')
  const never = makes('the limits of an account never count what the owner pays')
  const isCounted = always || (request.countsInAccountLimits && !never)
  const scopes = ownersScopes(state, request, isCounted, read)
  if (scopes === undefined) return undefined
  chargeScopes(state, scopes, request, 1)
  const [[grant, { items }] = ['', { items: [] }]] = grants
  const charged = makes('a grant counts what the owner pays')
    ? chargeItem(state, items, { ...request, grant }, received, read)
    : undefined
  return { ...charged, scopes }
}

/** Returns the totals of the owner's limits in which a payment counts, or `undefined` if one is exceeded. */
function ownersScopes(
  state: FaultyState,
  { grant = '', walletAddress, debitAmount: { value } }: AnyRequest,
  isCounted: boolean,
  read: ReadonlyMap<string, bigint>,
): readonly string[] | undefined {
  const { grants, accounts, counts, makes } = state
  const alone = makes('a limit of an account counts the payments of each grant alone')
  const all = [
    ...(grants.get(grant)?.conditions.limits ?? []).map((limit) => [grant, limit] as const),
    ...((isCounted && accounts.get(walletAddress)) || []).map(
      (limit) => [alone ? `${walletAddress} of ${grant}` : walletAddress, limit] as const,
    ),
  ]
  const scopes = new Set<string>()
  for (const [of, { debitAmount, payments, interval }] of all) {
    const parsed = interval === undefined ? undefined : parseInterval(interval)
    const window = parsed?.ok ? windowAt(parsed.value, state.now) : undefined
    if (interval !== undefined && window === undefined) return undefined
    const scope = `owner ${of} ${window?.start} ${window?.end}`
    const total = (read.get(scope) ?? 0n) + BigInt(value)
    if (debitAmount !== undefined && total > BigInt(debitAmount.value)) return undefined
    const many = payments !== undefined && (counts.get(scope) ?? 0) + 1 > payments
    if (many && !makes('a limit of the owner counts amounts, and not payments')) return undefined
    scopes.add(scope)
  }
  return [...scopes]
}

function chargeScopes(
  { totals, counts }: FaultyState,
  scopes: readonly string[],
  { debitAmount: { value } }: AnyRequest,
  number: number,
) {
  for (const scope of scopes) {
    totals.set(scope, (totals.get(scope) ?? 0n) + BigInt(value))
    counts.set(scope, (counts.get(scope) ?? 0) + number)
  }
}

function chargeItem(
  state: FaultyState,
  items: readonly (AccessItem | undefined)[],
  request: WalletRequest,
  received: Amount,
  read: ReadonlyMap<string, bigint>,
): Pick<Payment, 'account'> | undefined {
  const { makes, totals } = state
  for (const [place, item] of items.entries()) {
    if (item === undefined) continue
    const { receiver, debitAmount, receiveAmount } = item.limits ?? {}
    const foreign = item.identifier !== request.walletAddress
    if (foreign && !makes('every account of the owner can pay')) continue
    const wrong = receiver !== undefined && receiver !== request.receiver
    if (wrong && !makes('the receiver is not checked')) continue
    const key = keyOf(state, request.grant, item, place)
    if (key === undefined) continue
    const limit = debitAmount ?? receiveAmount
    if (limit === undefined) return {}
    if (debitAmount === undefined && makes('limits on the received amount are ignored')) return {}
    const amount = debitAmount === undefined ? received : request.debitAmount
    if (amount.assetCode !== limit.assetCode) continue
    const total = (read.get(key) ?? 0n) + BigInt(amount.value)
    if (!fits(state, total, limit)) continue
    totals.set(key, makes('sums are floating-point numbers') ? BigInt(Number(total)) : total)
    return { account: { key, item, place } }
  }
  return undefined
}

function meetsConditions({ makes, grants, scene, now }: FaultyState, request: WalletRequest) {
  const { paymentMax, receivers, pausedUntil } = grants.get(request.grant)?.conditions ?? {}
  const paused = typeof pausedUntil === 'number' && now < pausedUntil
  if (paused && !makes('a pause is ignored')) return false
  const { walletAddress = '' } = scene.receivers.find(({ url }) => url === request.receiver) ?? {}
  const other = receivers !== undefined && !receivers.includes(walletAddress)
  if (other && !makes('the receivers of the conditions are ignored')) return false
  const more =
    paymentMax !== undefined && BigInt(request.debitAmount.value) > BigInt(paymentMax.value)
  return !more || makes('the maximum of one payment is ignored')
}

function fits({ makes }: FaultyState, total: bigint, limit: Amount): boolean {
  if (makes('sums are floating-point numbers')) return Number(total) <= Number(limit.value)
  if (makes('amounts are compared as text')) return total.toString() <= limit.value
  if (makes('a total must stay below the limit')) return total < BigInt(limit.value)
  return total <= BigInt(limit.value)
}

/** Returns the total in which a payment of an item counts now, or `undefined` if the limits refuse it. */
function keyOf(
  state: FaultyState,
  grant: string,
  item: AccessItem,
  place: number,
): string | undefined {
  const { interval } = item.limits ?? {}
  const items = state.grants.get(grant)?.items ?? []
  const oneOwner = state.makes('the accounts of the owner share a budget')
  const others = oneOwner && items.some((each) => each?.identifier !== item.identifier)
  const shared = others ? 0 : place
  const name = state.makes('all items of a grant share one budget') ? grant : `${grant} ${shared}`
  if (interval === undefined) return name
  const start = windowStart(state, interval)
  return start === undefined ? undefined : `${name} ${start}`
}

function windowStart(
  { makes, now, intervalCounting }: FaultyState,
  text: string,
): number | undefined {
  const parsed = parseInterval(text)
  if (!parsed.ok) return undefined
  let interval = parsed.value
  if (makes('the first window is calculated from midnight') && interval.form !== 'duration/end') {
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
      : makes('months are calculated backwards from the drifted end')
  if (drifts) return driftedStart(interval, now, intervalCounting)
  if (makes('a window includes the instant at which it ends')) {
    const before = windowAt(interval, now - 1, intervalCounting)
    if (before !== undefined) return before.start
  }
  return windowAt(interval, now, intervalCounting)?.start
}

/** Calculates each window from its neighbour, so that the last day of a short month carries over. */
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

/** Counts back what was refunded of a payment that has ended. */
export function refund(
  state: FaultyState,
  payment: Payment,
  refunded: bigint,
  undelivered: bigint,
): void {
  const { makes, totals, counts } = state
  const { account, scopes = [], request, sent, delivered } = payment
  if (makes('a refund counts back nothing')) return
  const wasCounted = sent + refunded > 0n || delivered + undelivered > 0n
  const stays = makes('a payment that was refunded in full stays in the number of payments')
  for (const scope of scopes) {
    totals.set(scope, (totals.get(scope) ?? 0n) - refunded)
    const isGone = wasCounted && sent === 0n && delivered === 0n && !stays
    if (isGone) counts.set(scope, (counts.get(scope) ?? 0) - 1)
  }
  if (account === undefined) return
  const { item, place } = account
  const today = keyOf(state, request.grant ?? '', item, place)
  const isLate = makes('a refund counts back in the current window')
  const key = isLate && today !== undefined ? today : account.key
  const debits = item.limits?.debitAmount !== undefined
  const onlyDelivered = makes('a refund counts back only what was delivered')
  const back = debits && !onlyDelivered ? refunded : undelivered
  totals.set(key, (totals.get(key) ?? 0n) - back)
}

/** Releases the part of a payment that was not sent. */
export function giveBack(
  state: FaultyState,
  { account, scopes = [], request, received, sent, delivered, inDoubt = 0n, state: end }: Payment,
): void {
  const { makes, totals, counts } = state
  const keeps =
    end === 'failed' && makes('a limit of the owner returns nothing of a failed payment')
  const stays = makes('a payment that sent nothing stays in the number of payments')
  for (const scope of keeps ? [] : scopes) {
    totals.set(scope, (totals.get(scope) ?? 0n) - BigInt(request.debitAmount.value) + sent)
    if (sent === 0n && delivered === 0n && !stays) counts.set(scope, (counts.get(scope) ?? 0) - 1)
  }
  if (account === undefined) return
  const { item, place } = account
  const today = keyOf(state, request.grant ?? '', item, place)
  const late = makes('a late failure releases its amount into the current window')
  const key = late && today !== undefined ? today : account.key
  const debits = item.limits?.debitAmount !== undefined
  const reserved = debits ? BigInt(request.debitAmount.value) : received
  const total = totals.get(key) ?? 0n
  const arrived = makes('the delivered amount is calculated from the sent amount')
    ? (sent * received) / BigInt(request.debitAmount.value)
    : delivered
  const doubted = makes('a doubt counts back at the end of its payment') ? inDoubt : 0n
  totals.set(key, total - reserved + (debits ? sent - doubted : arrived))
}
