import type { GrantedItem } from './access.js'
import { type Amount, type Asset, amountValueMax, sameAsset, valueOr } from './amount.js'
import { ok, type Refused, type Result, refused } from './decision.js'
import type { Instant } from './instant.js'
import type { SpendingWindow } from './interval.js'
import { type Allowance, allow, allowanceAt, type CountedAmount, type Spending } from './limits.js'
import { refusedPublicly } from './public-reasons.js'
import { retained, type Stored } from './stored.js'

/**
 * The amounts spent under one granted item in one window, or over the life of the grant if the item has no
 * interval. Its size does not depend on the number of payments.
 */
export interface Budget extends Stored {
  readonly grantId: string
  readonly itemId: string
  /** Start of the window; absent if the budget covers the life of the grant. */
  readonly windowStart?: Instant
  /** End of the window, exclusive; absent if the budget covers the life of the grant. */
  readonly windowEnd?: Instant
  /** Totals of the amounts that ended payments sent and open payments reserve. */
  readonly spent: SpentAmounts
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
  readonly budget?: Budget
}

export interface Charge {
  readonly commandId: string
  /** Prefix of the budget's id: the namespace of the server. */
  readonly namespace: string
  readonly grantId: string
}

/** The item and budget that a payment is charged to. */
export interface ChargedBudget {
  readonly item: GrantedItem
  /** The budget with this payment included. */
  readonly budget: Budget
}

/**
 * Charges a payment to the first granted item that covers it and has enough budget left. Reserves both amounts
 * in full, so that every amount is counted before it is sent.
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
): Result<ChargedBudget, Refused<'limits_exceeded'>> {
  let refusal: Refused<'limits_exceeded'> = refused(
    'limits_exceeded',
    'no granted item allows payments from this wallet address',
  )
  for (const { item, budget } of candidates) {
    const allowed = allow(item, spending, now)
    const next = allowed.ok
      ? reserve(budget, item, allowed.value, spending, charge, now, policy)
      : allowed
    if (next.ok) return ok({ item, budget: next.value })
    refusal = next
  }
  return refusal
}

/** Returns the id of the budget that counts payments under an item. */
export function budgetId(
  { namespace, grantId }: Omit<Charge, 'commandId'>,
  { itemId }: Pick<GrantedItem, 'itemId'>,
  { window }: Allowance,
): string {
  return `${namespace}${grantId}.${itemId}.${window === undefined ? 'life' : window.start}`
}

function reserve(
  budget: Budget | undefined,
  item: GrantedItem,
  allowance: Allowance,
  spending: Spending,
  charge: Charge,
  now: Instant,
  policy: BudgetPolicy,
): Result<Budget, Refused<'limits_exceeded'>> {
  const { limit, window } = allowance
  if (limit !== undefined) {
    const { counts, maximum } = limit
    const total = counted(budget, limit) + spentValue(spending[counts])
    if (total > valueOr(0n, maximum.value)) {
      return refusedPublicly('limits_exceeded', `limits.${counts}`, 'leaves less than this payment')
    }
  }
  const base = budget ?? {
    id: budgetId(charge, item, allowance),
    grantId: charge.grantId,
    itemId: item.itemId,
    ...(window === undefined ? {} : { windowStart: window.start, windowEnd: window.end }),
  }
  const spent = totalSpent([...(budget === undefined ? [] : [budget.spent]), spending])
  const fields = { ...base, ...retention(window?.end, now, policy) }
  return ok(nextBudget(fields, budget, spent, charge.commandId))
}

/** What has been spent of a limited amount: everything if the total is in another asset, so that it fails closed. */
function counted(budget: Budget | undefined, { counts, maximum }: NonNullable<Allowance['limit']>) {
  return budget === undefined ? 0n : (valueIn(maximum, budget.spent[counts]) ?? amountValueMax)
}

/**
 * Reads a total in an asset. Returns `undefined` for a total in another one. Zero is in every asset, so after payments
 * that sent nothing, another asset can be limited and paid.
 */
function valueIn(asset: Asset, total: Amount | null): bigint | undefined {
  if (total === null) return undefined
  const value = spentValue(total)
  return value === 0n || sameAsset(total, asset) ? value : undefined
}

/** Whether everything that a budget counts is within an allowance, such as after an amendment. */
export function isWithinAllowance(budget: Budget | undefined, { limit }: Allowance): boolean {
  return limit === undefined || counted(budget, limit) <= valueOr(0n, limit.maximum.value)
}

/**
 * A granted item for outgoing payments at an instant, with the id of the budget that counts its payments. Outside all
 * windows of its interval it has neither allowance nor budget.
 */
export interface PayingItem {
  readonly item: GrantedItem
  readonly open?: { readonly allowance: Allowance; readonly budgetId: string }
}

/** Returns the items for outgoing payments of a token or grant, in the order in which they were granted. */
export function payingItems(
  access: readonly GrantedItem[],
  charge: Omit<Charge, 'commandId'>,
  now: Instant,
): readonly PayingItem[] {
  return access.flatMap((item): PayingItem | readonly [] => {
    if (item.type !== 'outgoing-payment') return []
    const allowed = allowanceAt(item, now)
    if (!allowed.ok) return { item }
    const allowance = allowed.value
    return { item, open: { allowance, budgetId: budgetId(charge, item, allowance) } }
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
  return open === undefined ? closedBudget(item) : budgetStatus(open.allowance, budget)
}

/** Returns what an item has spent in its open window, and what is left of the limited amount. */
export function budgetStatus(
  { window, limit }: Allowance,
  budget: Budget | undefined,
): BudgetStatus {
  const left = limit && maxOf(0n, valueOr(0n, limit.maximum.value) - counted(budget, limit))
  // While nothing is spent, only the asset of the limit is known.
  const nothing = limit ? { [limit.counts]: zero(limit.maximum) } : {}
  return {
    isOpen: true,
    ...(window && { window }),
    spent: budget === undefined ? nothing : totalSpent([nothing, budget.spent]),
    left: limit ? { [limit.counts]: { ...limit.maximum, value: String(left) } } : {},
  }
}

/** Returns the status of an item outside all windows of its interval. */
export function closedBudget({ limits = {} }: GrantedItem): BudgetStatus {
  const { debitAmount, receiveAmount } = limits
  return {
    isOpen: false,
    spent: {},
    left: {
      ...(debitAmount && { debitAmount: zero(debitAmount) }),
      ...(receiveAmount && { receiveAmount: zero(receiveAmount) }),
    },
  }
}

function zero(amount: Amount): Amount {
  return { ...amount, value: '0' }
}

function maxOf(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** The amounts that a payment reserves in its budget. */
export type HeldAmounts = { readonly [Name in CountedAmount]: bigint }

/**
 * Releases the amounts that a payment no longer reserves, in the budget of the window in which it was created.
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
  return nextBudget(budget, budget, spent, commandId)
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
  const next = { ...budget, ...retention(undefined, now, policy) }
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
 * gone.
 */
function retention(windowEnd: Instant | undefined, now: Instant, { retentionMs }: BudgetPolicy) {
  return windowEnd === undefined
    ? { dueAt: now + retentionMs }
    : retained(Math.max(windowEnd, now) + retentionMs)
}
