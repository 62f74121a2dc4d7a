import type { SpendingLimit } from 'open-payments-server'
import { ok, type Result, type SpendingWindow } from 'open-payments-server/core'
import {
  type ExpectedPayment,
  grantAt,
  type Model,
  type Problems,
  takenBy,
  wrong,
} from './expected.js'
import { instantText, type PaymentRequest, valueText, windowText } from './history.js'
import { hasEnded, windowAt } from './windows.js'

/** A limit that an owner has set: for a grant, or for all grants of an account. */
interface OwnersLimit {
  readonly limit: SpendingLimit
  /** Whose payments it counts. */
  readonly of: string
}

type Payer = Pick<PaymentRequest, 'grant' | 'countsInAccountLimits' | 'walletAddress'>

function limitsFor(
  { grants, accounts }: Model,
  { grant, countsInAccountLimits, walletAddress }: Payer,
): readonly OwnersLimit[] {
  const { limits: ofGrant = [] } = grantAt(grants, grant)?.conditions ?? {}
  const { limits: ofAccount = [] } =
    accounts.find((each) => each.walletAddress === walletAddress) ?? {}
  // The owner has set the limits of the account for apps.
  if (grant === undefined && countsInAccountLimits !== true) return []
  return [
    ...ofGrant.map((limit) => ({ limit, of: `grant ${grant}` })),
    ...ofAccount.map((limit) => ({ limit, of: walletAddress })),
  ]
}

/** Returns the window of a limit, `undefined` if it has one window without an end, or that it is closed. */
function openAt({ interval }: SpendingLimit, now: number) {
  return interval === undefined ? ok(undefined) : windowAt(interval, now, 'occurrences')
}

/** Limits of the same payments in the same window count the same. */
function scopeOf({ of }: OwnersLimit, window: SpendingWindow | undefined): string {
  return `${of} ${window === undefined ? 'always' : `${window.start}-${window.end}`}`
}

/** What the payments of a scope debit together, and how many there are that have sent something or still may. */
function countedIn({ payments }: Model, scope: string) {
  const counted = payments.filter(({ scopes }) => scopes.includes(scope))
  const spent = counted.reduce((sum, payment) => sum + takenBy(payment, 'debitAmount'), 0n)
  return { spent, number: counted.filter((payment) => !hasSentNothing(payment)).length }
}

function hasSentNothing(payment: ExpectedPayment): boolean {
  const hasEnded = payment.state === 'failed' || payment.state === 'completed'
  return hasEnded && takenBy(payment, 'debitAmount') + takenBy(payment, 'receiveAmount') === 0n
}

/** Returns the scopes in which a payment counts, or why the limits of its owner do not permit it. */
export function scopesFor(
  model: Model,
  request: PaymentRequest,
  now: number,
): Result<readonly string[], Problems> {
  const scopes = new Set<string>()
  for (const set of limitsFor(model, request)) {
    const { limit, of } = set
    const found = openAt(limit, now)
    if (!found.ok) return wrong(`${of}: a limit of the owner has no window at ${instantText(now)}`)
    const scope = scopeOf(set, found.value)
    const { spent, number } = countedIn(model, scope)
    const { debitAmount, payments } = limit
    const total = spent + BigInt(request.debitAmount.value)
    const when = found.value === undefined ? 'in all' : `in ${windowText(found.value)}`
    if (debitAmount !== undefined && total > BigInt(debitAmount.value)) {
      const most = valueText(BigInt(debitAmount.value), debitAmount)
      const much = valueText(total, debitAmount)
      return wrong(`${of}: the owner allows ${most} ${when}, and the payments are ${much}`)
    }
    if (payments !== undefined && number + 1 > payments) {
      return wrong(`${of}: the owner allows ${payments} payments ${when}, and this is another one`)
    }
    scopes.add(scope)
  }
  return ok([...scopes])
}

/** Returns what is left of the tightest limit for a payment, and when the first window of a limit ends. */
export function leftFor(model: Model, payer: Payer, now: number) {
  let left: bigint | undefined
  let end: number | undefined
  for (const set of limitsFor(model, payer)) {
    const found = openAt(set.limit, now)
    if (!found.ok) continue
    if (found.value !== undefined && (end === undefined || found.value.end < end)) {
      end = found.value.end
    }
    if (set.limit.debitAmount === undefined) continue
    const { spent } = countedIn(model, scopeOf(set, found.value))
    const rest = BigInt(set.limit.debitAmount.value) - spent
    if (left === undefined || rest < left) left = rest
  }
  return { left, end }
}

/** Whether an amendment leaves each of the limits before it, at most as high. */
export function areNarrower(
  before: readonly SpendingLimit[],
  after: readonly SpendingLimit[],
): boolean {
  return before.every(({ interval, debitAmount, payments }) => {
    const next = after.find((each) => each.interval === interval)
    if (next === undefined) return false
    const { debitAmount: amount, payments: number } = next
    const isLower =
      debitAmount === undefined ||
      (amount !== undefined && BigInt(amount.value) <= BigInt(debitAmount.value))
    return isLower && (payments === undefined || (number !== undefined && number <= payments))
  })
}

/** Removes the intervals of limits that have ended, and all limits but the first with an interval. */
export function withTimeLeft(
  limits: readonly SpendingLimit[],
  now: number,
): readonly SpendingLimit[] {
  const open = limits.map(({ interval, ...limit }): SpendingLimit => {
    const isOver = interval === undefined || hasEnded(windowAt(interval, now, 'occurrences'))
    return isOver ? limit : { ...limit, interval }
  })
  return open.filter(
    ({ interval }, index) => open.findIndex((each) => each.interval === interval) === index,
  )
}
