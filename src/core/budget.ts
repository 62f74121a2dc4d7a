import type { GrantedItem } from './access.js'
import { type Amount, type Asset, amountValueMax, isWithin, sameAsset, valueOr } from './amount.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import type { SpendingWindow } from './interval.js'
import {
  type AccountLimitRefusal,
  type Allowance,
  allow,
  allowanceAt,
  type CountedAmount,
  type LimitsRefusal,
  nextWindow,
  type Spending,
} from './limits.js'
import { refusedPublicly, withDetails } from './public-reasons.js'
import type { LimitSource, OpenLimit, SetLimit } from './spending-limits.js'
import { retained, type Stored } from './stored.js'

/**
 * The amounts spent in one window, or without an end if there is no interval: under one granted item, or, for the
 * limits that an owner sets, under one grant or from one account. Its size does not depend on the number of payments.
 */
export interface Budget extends Stored {
  /** Absent if the budget counts all payments of an account. */
  readonly grantId?: string
  /** The granted item; absent if the budget counts for a limit that an owner has set. */
  readonly itemId?: string
  /** The account; absent if the budget counts payments under one grant. */
  readonly walletAddress?: string
  /** Start of the window; absent if the budget has none. */
  readonly windowStart?: Instant
  /** End of the window, exclusive; absent if the budget has none. */
  readonly windowEnd?: Instant
  /** Totals of the amounts that ended payments sent and open payments reserve. */
  readonly spent: SpentAmounts
  /**
   * The number of payments that are open or have sent something. Absent for a granted item, which does not limit it.
   */
  readonly payments?: number
}

/**
 * The totals that payments debit from the payer and deliver to receivers. A total is `null` if it cannot be
 * expressed as one amount: the payments have different assets, or the sum exceeds 64 bits. The total of a limited
 * amount is never `null`, because all payments under a limit are in its asset.
 */
export type SpentAmounts = { readonly [Name in CountedAmount]: Amount | null }

/** How long a budget is kept, in milliseconds. */
export interface BudgetPolicy {
  readonly retentionMs: number
}

/** A granted item that may cover a payment, and its current budget, absent before the first payment. */
export interface BudgetCandidate {
  readonly item: GrantedItem
  /** The limit of the item in its open window. Default: the decision determines it. */
  readonly open?: OpenLimit
  readonly budget?: Budget
}

/** The grant under which payments are charged. */
export interface ChargedGrant {
  /** Prefix of the budget's id: the namespace of the server. */
  readonly namespace: string
  readonly grantId: string
}

export interface Charge extends ChargedGrant {
  readonly commandId: string
}

/** A limit that an owner has set, and its current budget, absent before the first payment. */
export interface CountedLimit extends SetLimit {
  readonly budget?: Budget
}

/** The item and budgets that a payment is charged to. */
export interface ChargedBudget {
  readonly item: GrantedItem
  /** The budget of the item with this payment included. */
  readonly budget: Budget
  /** The budgets of the limits that the owner has set, each with this payment included. */
  readonly limitBudgets: readonly Budget[]
}

/** Why no budget covers a payment: a limit of the client, of the owner for the grant, or of the account. */
export type ChargeRefusal = LimitsRefusal | 'conditions_exceeded' | AccountLimitRefusal

/**
 * Charges a payment to the first granted item that covers it and has enough budget left, and to each limit that the
 * owner has set. Reserves both amounts in full, so that every amount is counted before it is sent.
 *
 * @example
 * ```ts
 * import { decideSpending } from 'open-payments-server/core'
 *
 * const charge = { commandId: 'command-1', namespace: 'wallet01', grantId: 'grant-1' }
 * const policy = { retentionMs: 86_400_000 }
 * const decided = decideSpending([{ item }], spending, charge, Date.now(), policy)
 * console.log(decided.ok ? decided.value.budget.spent : decided.reason)
 * ```
 */
export function decideSpending(
  candidates: readonly BudgetCandidate[],
  spending: Spending,
  charge: Charge,
  now: Instant,
  policy: BudgetPolicy,
  limits: readonly CountedLimit[] = [],
): Result<ChargedBudget, Refused<ChargeRefusal>> {
  let refusal: Refused<ChargeRefusal> = refused(
    'limits_exceeded',
    'no granted item allows payments from this wallet address',
  )
  for (const { item, open, budget } of candidates) {
    const allowed = allow(item, spending, now, open)
    if (!allowed.ok) {
      refusal = allowed
      continue
    }
    const ofClient = { open: open ?? clientLimit(charge, item, allowed.value), budget }
    const charged = chargeTo([ofClient], spending, charge, now, policy)
    if (!charged.ok) {
      refusal = charged
      continue
    }
    const [ofItem] = charged.value
    if (ofItem === undefined) continue
    // The limits of the owner count the payment whatever item covers it.
    const others = chargeTo(limits, spending, charge, now, policy)
    return others.ok ? ok({ item, budget: ofItem, limitBudgets: others.value }) : others
  }
  return refusal
}

/** Returns the id of the budget that counts payments under an item. */
export function budgetId(
  { namespace, grantId }: ChargedGrant,
  { itemId }: Pick<GrantedItem, 'itemId'>,
  { window }: Allowance,
): string {
  return `${namespace}${grantId}.${itemId}.${window === undefined ? 'life' : window.start}`
}

/** Returns the limit that the client has requested with an item, in its open window. */
function clientLimit(charge: ChargedGrant, item: GrantedItem, allowance: Allowance): OpenLimit {
  const { itemId, limits = {}, intervalCounting } = item
  return {
    source: 'client',
    scope: { grantId: charge.grantId, itemId },
    budgetId: budgetId(charge, item, allowance),
    ...allowance,
    ...(limits.interval !== undefined && { interval: limits.interval }),
    ...(intervalCounting !== undefined && { intervalCounting }),
  }
}

/** A limit with its budget. Without `open`, no window of its interval is open. */
type Chargeable =
  | { readonly open: OpenLimit; readonly budget?: Budget | undefined }
  | (CountedLimit & { readonly open?: undefined })

/**
 * Charges a payment to the budgets of limits, each budget once. Refuses with the first limit that does not permit the
 * payment; then nothing is charged.
 */
function chargeTo(
  limits: readonly Chargeable[],
  spending: Spending,
  { commandId }: Charge,
  now: Instant,
  policy: BudgetPolicy,
): Result<readonly Budget[], Refused<ChargeRefusal>> {
  const charged = new Map<string, Budget>()
  for (const limit of limits) {
    const { open, budget } = limit
    if (open === undefined) return exceeded(limit.source, limit.limit, now)
    const refusal = refuseByLimit(open, budget, spending, now)
    if (refusal !== undefined) return refusal
    charged.set(open.budgetId, chargedBudget(open, budget, spending, commandId, now, policy))
  }
  return ok([...charged.values()])
}

function refuseByLimit(
  open: OpenLimit,
  budget: Budget | undefined,
  spending: Spending,
  now: Instant,
): Refused<ChargeRefusal> | undefined {
  const { source, limitedAmount, payments } = open
  if (limitedAmount !== undefined) {
    const { counts, maximum } = limitedAmount
    if (source !== 'client' && !isWithin(spending[counts], maximum))
      return exceeded(source, {}, now)
    if (
      counted(budget, limitedAmount) + spentValue(spending[counts]) >
      valueOr(0n, maximum.value)
    ) {
      if (source !== 'client') return exceeded(source, open, now)
      const refusal = refusedPublicly(
        'limits_exceeded',
        `limits.${counts}`,
        'leaves less than this payment',
      )
      const left = { ...leftAmount(limitedAmount, budget) }
      return withDetails(refusal, { left, ...nextWindow(open, now) })
    }
  }
  const isFull = payments !== undefined && !(countOf(budget) < payments)
  return isFull && source !== 'client' ? exceeded(source, open, now) : undefined
}

/**
 * Refuses a payment for a limit that the owner has set. The client does not learn which limit it is.
 *
 * @param interval absent if waiting does not help.
 */
function exceeded(
  source: Exclude<OpenLimit['source'], 'client'>,
  interval: Parameters<typeof nextWindow>[0],
  now: Instant,
): Refused<ChargeRefusal> {
  const refusal = source === 'owner' ? 'conditions_exceeded' : 'account_limit_exceeded'
  const problem = "has a limit of the account's owner that is exceeded"
  return withDetails(refusedPublicly(refusal, 'walletAddress', problem), nextWindow(interval, now))
}

/** The number of payments. An unreadable one counts as too many. */
function countOf(budget: Budget | undefined): number {
  if (budget === undefined) return 0
  const { payments } = budget
  return payments !== undefined && payments >= 0 ? payments : Number.POSITIVE_INFINITY
}

function chargedBudget(
  { source, scope, budgetId: id, window }: OpenLimit,
  budget: Budget | undefined,
  spending: Spending,
  commandId: string,
  now: Instant,
  policy: BudgetPolicy,
): Budget {
  const base = budget ?? {
    id,
    ...scope,
    ...(window !== undefined && { windowStart: window.start, windowEnd: window.end }),
  }
  const spent = totalSpent([...(budget === undefined ? [] : [budget.spent]), spending])
  const payments = source === 'client' ? {} : { payments: countOf(budget) + 1 }
  const fields = { ...base, ...retention(base, now, policy), ...payments }
  return nextBudget(fields, budget, spent, commandId)
}

type LimitedAmount = NonNullable<Allowance['limitedAmount']>

/** What has been spent of a limited amount: everything if the total is in another asset, so that it fails closed. */
function counted(budget: Budget | undefined, { counts, maximum }: LimitedAmount) {
  return budget === undefined ? 0n : (valueIn(maximum, budget.spent[counts]) ?? amountValueMax)
}

/**
 * Reads a total in an asset. Returns `undefined` for a total in another one. Zero is an amount of
 * any asset, so a grant can limit and pay another asset after payments that sent nothing.
 */
function valueIn(asset: Asset, total: Amount | null): bigint | undefined {
  if (total === null) return undefined
  const value = spentValue(total)
  return value === 0n || sameAsset(total, asset) ? value : undefined
}

/** Whether everything that a budget counts is within a limit, such as after an amendment. */
export function isWithinLimit(
  budget: Budget | undefined,
  { limitedAmount, payments }: Pick<OpenLimit, 'limitedAmount' | 'payments'>,
): boolean {
  return (
    (limitedAmount === undefined ||
      counted(budget, limitedAmount) <= valueOr(0n, limitedAmount.maximum.value)) &&
    (payments === undefined || countOf(budget) <= payments)
  )
}

/** What is left of a limited amount. */
function leftAmount(limited: LimitedAmount, budget: Budget | undefined): Amount {
  const left = valueOr(0n, limited.maximum.value) - counted(budget, limited)
  return { ...limited.maximum, value: String(maxOf(0n, left)) }
}

/**
 * A granted item for outgoing payments at an instant, with the id of the budget that counts its payments. Outside all
 * windows of its interval it has neither allowance nor budget.
 */
export interface PayingItem {
  readonly item: GrantedItem
  readonly open?: OpenLimit
}

/** Returns the items for outgoing payments of a token or grant, in the order in which they were granted. */
export function payingItems(
  access: readonly GrantedItem[],
  charge: ChargedGrant,
  now: Instant,
): readonly PayingItem[] {
  return access.flatMap((item): PayingItem | readonly [] => {
    if (item.type !== 'outgoing-payment') return []
    const allowed = allowanceAt(item, now)
    if (!allowed.ok) return { item }
    return { item, open: clientLimit(charge, item, allowed.value) }
  })
}

/** What an item has spent and has left at an instant. */
export interface BudgetStatus {
  /** Whether the item can pay: false outside all windows of its interval. */
  readonly isOpen: boolean
  readonly window?: SpendingWindow
  readonly spent: Partial<SpentAmounts>
  readonly left: Partial<Readonly<Record<CountedAmount, Amount>>>
}

/** Returns what a paying item has spent and has left. */
export function itemStatus({ item, open }: PayingItem, budget: Budget | undefined): BudgetStatus {
  return open === undefined ? closedBudget(item) : budgetStatus(open, budget)
}

/** Returns what an item has spent in its open window, and what is left of the limited amount. */
export function budgetStatus(
  { window, limitedAmount: limited }: Allowance,
  budget: Budget | undefined,
): BudgetStatus {
  // While nothing is spent, only the asset of the limit is known.
  const nothing = limited ? { [limited.counts]: zero(limited.maximum) } : {}
  return {
    isOpen: true,
    ...(window !== undefined && { window }),
    spent: budget === undefined ? nothing : totalSpent([nothing, budget.spent]),
    left: limited ? { [limited.counts]: leftAmount(limited, budget) } : {},
  }
}

/** Returns the status of an item outside all windows of its interval. */
export function closedBudget({ limits = {} }: GrantedItem): BudgetStatus {
  const { debitAmount, receiveAmount } = limits
  return {
    isOpen: false,
    spent: {},
    left: {
      ...(debitAmount !== undefined && { debitAmount: zero(debitAmount) }),
      ...(receiveAmount !== undefined && { receiveAmount: zero(receiveAmount) }),
    },
  }
}

/** What is left of a limit, in the window that is open. */
export interface LimitStatus {
  readonly source: LimitSource
  /** The granted item of a limit of the client. */
  readonly itemId?: string
  /** Whether the limit permits payments now: false outside all windows of its interval. */
  readonly isOpen: boolean
  /** The open window; absent without an interval, and outside all of its windows. */
  readonly window?: SpendingWindow
  /** What is left of each maximum of the limit; nothing outside all windows. */
  readonly left: Partial<Readonly<Record<CountedAmount, Amount>>> & { readonly payments?: number }
}

/** Returns what is left of a limit that the owner has set. */
export function limitStatus({ source, limit, open, budget }: CountedLimit): LimitStatus {
  const { debitAmount, payments } = limit
  if (open === undefined) {
    const left = {
      ...(debitAmount !== undefined && { debitAmount: zero(debitAmount) }),
      ...(payments !== undefined && { payments: 0 }),
    }
    return { source, isOpen: false, left }
  }
  const { window, left } = budgetStatus(open, budget)
  const count = payments !== undefined && { payments: Math.max(0, payments - countOf(budget)) }
  return {
    source,
    isOpen: true,
    ...(window !== undefined && { window }),
    left: { ...left, ...count },
  }
}

/** Returns what is left of the limit that the client has requested with an item. */
export function itemLimitStatus(paying: PayingItem, budget: Budget | undefined): LimitStatus {
  const { isOpen, window, left } = itemStatus(paying, budget)
  const { itemId } = paying.item
  return { source: 'client', itemId, isOpen, ...(window !== undefined && { window }), left }
}

function zero(amount: Amount): Amount {
  return { ...amount, value: '0' }
}

function maxOf(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** How a payment counts in each of its budgets: its amounts, and whether it counts as a payment. */
export type HeldAmounts = { readonly [Name in CountedAmount]: bigint } & {
  readonly payments: 0 | 1
}

/**
 * Releases what a payment no longer reserves, in a budget of the window in which it was created.
 *
 * @returns `undefined` if the reserved amounts have not changed.
 */
export function release(
  budget: Budget,
  held: HeldAmounts,
  holds: HeldAmounts,
  commandId: string,
): Budget | undefined {
  const debit = held.debitAmount - holds.debitAmount
  const receive = held.receiveAmount - holds.receiveAmount
  if (debit === 0n && receive === 0n) return undefined
  const spent = {
    debitAmount: less(budget.spent.debitAmount, debit),
    receiveAmount: less(budget.spent.receiveAmount, receive),
  }
  const { payments } = budget
  const released =
    payments === undefined
      ? budget
      : { ...budget, payments: payments - held.payments + holds.payments }
  return nextBudget(released, budget, spent, commandId)
}

/** Reads what is spent. An unreadable amount counts as the maximum, so that it leaves nothing to spend. */
function spentValue({ value }: Amount): bigint {
  return valueOr(amountValueMax, value)
}

function less(spent: Amount | null, value: bigint): Amount | null {
  return spent && { ...spent, value: (spentValue(spent) - value).toString() }
}

/** Adds totals. An amount that is absent from all of them is `null`. */
export function totalSpent(parts: readonly Partial<SpentAmounts>[]): SpentAmounts {
  return {
    debitAmount: sum(parts.map(({ debitAmount }) => debitAmount)),
    receiveAmount: sum(parts.map(({ receiveAmount }) => receiveAmount)),
  }
}

function sum(amounts: readonly (Amount | null | undefined)[]): Amount | null {
  const given = amounts.filter((amount) => amount !== undefined)
  const asset = given.find((amount) => amount !== null && spentValue(amount) > 0n) ?? given[0]
  if (!asset) return null
  let total = 0n
  for (const amount of given) {
    const value = valueIn(asset, amount)
    if (value === undefined) return null
    total += value
  }
  return total > amountValueMax ? null : { ...asset, value: total.toString() }
}

/** Postpones the next retention check of a lifetime budget, one without a window. */
export function keep(
  budget: Budget,
  commandId: string,
  now: Instant,
  policy: BudgetPolicy,
): Budget {
  const next = { ...budget, ...retention(budget, now, policy) }
  return { ...next, version: budget.version + 1, commandId }
}

function nextBudget(
  fields: Omit<Budget, 'version' | 'commandId' | 'spent'>,
  before: Budget | undefined,
  spent: SpentAmounts,
  commandId: string,
): Budget {
  return { ...fields, version: (before?.version ?? 0) + 1, commandId, spent }
}

/**
 * Returns when a budget is next due, and until when it is kept: for `retentionMs` after the end of its window. A budget
 * for the life of a grant is kept as long as the grant, so each time it is due, a sweep looks whether the grant is
 * gone. A budget of an account without a window is kept: only the host knows when the account is gone.
 */
function retention(
  { grantId, windowEnd }: Pick<Budget, 'grantId' | 'windowEnd'>,
  now: Instant,
  { retentionMs }: BudgetPolicy,
) {
  if (windowEnd !== undefined) return retained(Math.max(windowEnd, now) + retentionMs)
  return grantId === undefined ? {} : { dueAt: now + retentionMs }
}
