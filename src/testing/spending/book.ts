import type { AccessItem, Amount, Instant, IntervalCounting } from 'open-payments-server'
import { type CountedAmount, ok, type Result, type SpendingWindow } from 'open-payments-server/core'
import type { PaymentRequest } from './history.js'
import { valueText, windowText } from './text.js'
import { type Closed, hasEnded, turnAt } from './windows.js'

/** The rules of the wallet besides the limits. */
export interface SpendingRules {
  /** How the wallet counts the repetitions of an interval. */
  readonly intervalCounting: IntervalCounting
  /** How long a payment may wait until the host begins it, in milliseconds. */
  readonly holdMs: number
}

/** The scope in which payments are summed: one window of an access item, or the whole life of its grant. */
export interface Account {
  readonly grant: number
  /** The position of the item in the grant, from 1. */
  readonly item: number
  readonly counts: CountedAmount
  readonly limit: Amount
  readonly window?: SpendingWindow
}

/** A payment that the wallet accepted. */
export interface BookedPayment {
  readonly request: PaymentRequest
  /** The id that the wallet gave it. */
  readonly id?: string
  /** Absent if no amount is limited. */
  readonly account?: Account
  readonly holdUntil: Instant
  readonly state: 'held' | 'begun' | 'completed' | 'failed'
  readonly sent: bigint
  readonly delivered: bigint
}

export interface BookedGrant {
  readonly items: readonly AccessItem[]
  readonly revoked: boolean
}

/**
 * The history so far: grants, and payments line by line. It stores no totals; they are always summed from the
 * lines.
 */
export interface Book {
  readonly grants: readonly BookedGrant[]
  readonly payments: readonly BookedPayment[]
}

export const emptyBook: Book = { grants: [], payments: [] }

export function paymentIn({ payments }: Book, number: number): BookedPayment | undefined {
  return payments.find(({ request }) => request.payment === number)
}

/** Returns the book with one payment changed. */
export function amended(book: Book, number: number, change: Partial<BookedPayment>): Book {
  const payments = book.payments.map((line) =>
    line.request.payment === number ? { ...line, ...change } : line,
  )
  return { ...book, payments }
}

/** Returns how much of an amount a payment takes: what may still be sent, or what was sent once final. */
function takenBy(
  { request, state, sent, delivered }: BookedPayment,
  counts: CountedAmount,
): bigint {
  const actual = counts === 'debitAmount' ? sent : delivered
  if (state === 'completed' || state === 'failed') return actual
  const reserved = BigInt(request[counts].value)
  return actual > reserved ? actual : reserved
}

/** Returns how much all payments of an account take together. */
export function spentIn({ payments }: Book, account: Account): bigint {
  return payments
    .filter((line) => line.account !== undefined && sameAccount(line.account, account))
    .reduce((sum, line) => sum + takenBy(line, account.counts), 0n)
}

/**
 * Returns how much of an amount the payments of all open windows of a grant take together. It is `undefined` if the book
 * does not contain it: a payment was charged to an item without a limit, or is in another asset.
 */
export function spentUnder(
  { payments }: Book,
  grant: number,
  counts: CountedAmount,
  asset: Omit<Amount, 'value'>,
  now: Instant,
): bigint | undefined {
  let total = 0n
  for (const line of payments) {
    if (line.request.grant !== grant) continue
    if (line.account === undefined) return undefined
    const { window } = line.account
    if (window !== undefined && !(window.start <= now && now < window.end)) continue
    const { assetCode, assetScale } = line.request[counts]
    if (assetCode !== asset.assetCode || assetScale !== asset.assetScale) return undefined
    total += takenBy(line, counts)
  }
  return total
}

function sameAccount(a: Account, b: Account): boolean {
  return a.grant === b.grant && a.item === b.item && a.window?.start === b.window?.start
}

/** An account and what has been spent from it. */
export interface Spent {
  readonly account: Account
  readonly spent: bigint
}

/** Returns every account that has payments, in the order of the first payment of each. */
export function accountsIn(book: Book): readonly Spent[] {
  const accounts: Account[] = []
  for (const { account } of book.payments) {
    if (account === undefined || accounts.some((known) => sameAccount(known, account))) continue
    accounts.push(account)
  }
  return accounts.map((account) => ({ account, spent: spentIn(book, account) }))
}

/** Describes every account that exceeds its limit. */
export function overspentIn(book: Book): readonly string[] {
  return accountsIn(book).flatMap(({ account, spent }) =>
    spent > BigInt(account.limit.value) ? [overspentText(account, spent)] : [],
  )
}

export function overspentText(account: Account, spent: bigint): string {
  const { grant, item, limit, window } = account
  const over = spent - BigInt(limit.value)
  return (
    `grant ${grant}, item ${item}, ${windowText(window)}: limit ${valueText(BigInt(limit.value), limit)}, ` +
    `spent ${valueText(spent, limit)}, over by ${valueText(over, limit)}`
  )
}

/** Returns the account of an item at an instant (`undefined` if nothing is limited), or why the item is closed. */
export function accountAt(
  book: Book,
  grant: number,
  item: number,
  now: Instant,
  { intervalCounting }: SpendingRules,
): Result<Account | undefined, Closed> {
  const limits = book.grants[grant - 1]?.items[item - 1]?.limits ?? {}
  const { interval, debitAmount, receiveAmount } = limits
  const turn = interval === undefined ? undefined : turnAt(interval, now, intervalCounting)
  if (turn !== undefined && !turn.ok) return turn
  const window = turn === undefined ? {} : { window: turn.value }
  if (debitAmount !== undefined) {
    return ok({ grant, item, counts: 'debitAmount', limit: debitAmount, ...window })
  }
  if (receiveAmount === undefined) return ok(undefined)
  return ok({ grant, item, counts: 'receiveAmount', limit: receiveAmount, ...window })
}

/** Sentences about what is wrong. */
export interface Problems {
  readonly ok: false
  readonly problems: readonly string[]
}

/** Returns the account that must be charged for a payment (`undefined` if nothing is limited), or why none can be. */
export function chargeFor(
  book: Book,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
): Result<Account | undefined, Problems> {
  const { items = [], revoked = true } = book.grants[request.grant - 1] ?? {}
  if (revoked) return wrong(`grant ${request.grant} was revoked`)
  const problems: string[] = []
  for (const [index, item] of items.entries()) {
    const tried = tryItem(book, item, index + 1, request, now, rules)
    if (tried.ok) return tried
    problems.push(...tried.problems)
  }
  return wrong(...problems)
}

export function wrong(...problems: readonly string[]): Problems {
  return { ok: false, problems }
}

function tryItem(
  book: Book,
  { type, actions, identifier, limits = {} }: AccessItem,
  number: number,
  request: PaymentRequest,
  now: Instant,
  rules: SpendingRules,
): Result<Account | undefined, Problems> {
  const name = `grant ${request.grant}, item ${number}`
  const fits = type === 'outgoing-payment' && actions.includes('create')
  if (!fits || identifier !== request.walletAddress) {
    return wrong(`${name} does not cover this payment`)
  }
  if (limits.receiver !== undefined && limits.receiver !== request.receiver) {
    return wrong(`${name} limits payments to another receiver`)
  }
  const found = accountAt(book, request.grant, number, now, rules)
  if (hasEnded(found)) return wrong(`${name}: its last window has ended`)
  if (!found.ok) return wrong(`${name}: its first window has not started`)
  const account = found.value
  if (account === undefined) return found
  const { limit, counts } = account
  const { value, ...asset } = request[counts]
  if (asset.assetCode !== limit.assetCode || asset.assetScale !== limit.assetScale) {
    return wrong(`${name} has limits in another asset`)
  }
  const spent = spentIn(book, account) + BigInt(value)
  return spent > BigInt(limit.value) ? wrong(overspentText(account, spent)) : found
}

/** Returns whether a grant can no longer pay: it was revoked, or all its windows have ended. */
export function isOver(book: Book, grant: number, now: Instant, rules: SpendingRules): boolean {
  const { items = [], revoked = true } = book.grants[grant - 1] ?? {}
  if (revoked) return true
  return items.every((_, index) => hasEnded(accountAt(book, grant, index + 1, now, rules)))
}
