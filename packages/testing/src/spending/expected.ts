import type { AccessItem, Amount, Instant } from 'open-payments-server'
import type { CountedAmount, SpendingWindow } from 'open-payments-server/core'
import type { PaymentRequest, SpendingAction, SpendingAmendment } from './history.js'

/** The scope in which payments are summed: one window of an access item, or the whole life of its grant. */
export interface Account {
  /** The number of the grant, from 1. */
  readonly grant: number
  /** The position of the item in the grant, from 1. */
  readonly item: number
  readonly counts: CountedAmount
  /** The most that the payments in this scope may take of what `counts` names. */
  readonly limit: Amount
  readonly window?: SpendingWindow
}

/** A payment that the wallet accepted. */
export interface ExpectedPayment {
  readonly request: PaymentRequest
  /** The id that the wallet gave it. */
  readonly id?: string
  /** Absent if no amount is limited. */
  readonly account?: Account
  /** The windows of the owner's limits in which it counts. */
  readonly scopes: readonly string[]
  readonly holdUntil: Instant
  readonly state: 'held' | 'begun' | 'completed' | 'failed'
  /** The totals of the last report. */
  readonly sent: bigint
  readonly delivered: bigint
  /** What was in doubt at the last report, also if it has been decided since. */
  readonly inDoubt: bigint
  /** What the decision about the doubt has taken from the totals. Absent until then. */
  readonly refund?: { readonly sent: bigint; readonly delivered: bigint }
}

export interface ExpectedGrant {
  /** An item that the owner removed has no actions. */
  readonly items: readonly AccessItem[]
  readonly revoked: boolean
  readonly conditions: Conditions
}

/** Returns a grant by its number; `undefined` for the owner, who has none. */
export function grantAt(
  grants: readonly ExpectedGrant[],
  grant: number | undefined,
): ExpectedGrant | undefined {
  return grant === undefined ? undefined : grants[grant - 1]
}

type Conditions = NonNullable<SpendingAmendment['conditions']>

/**
 * What the wallet must know after the history so far: grants and payments. It stores no totals; they are always summed
 * from the payments.
 */
export interface Model {
  readonly grants: readonly ExpectedGrant[]
  /** The limits that the owner has set for accounts. */
  readonly accounts: readonly LimitedAccount[]
  readonly payments: readonly ExpectedPayment[]
}

export type LimitedAccount = Omit<
  Extract<SpendingAction, { readonly type: 'limit-account' }>,
  'type'
>

export const emptyModel: Model = { grants: [], accounts: [], payments: [] }

/** Returns how much of an amount a payment takes: what may still be sent, or what was sent once final. */
export function takenBy(
  { request, state, sent, delivered, refund }: ExpectedPayment,
  counts: CountedAmount,
): bigint {
  const actual =
    counts === 'debitAmount' ? sent - (refund?.sent ?? 0n) : delivered - (refund?.delivered ?? 0n)
  if (state === 'completed' || state === 'failed') return actual
  const reserved = BigInt(request[counts].value)
  return actual > reserved ? actual : reserved
}

/** Sentences about what is wrong. */
export interface Problems {
  readonly ok: false
  readonly problems: readonly string[]
}

export function wrong(...problems: readonly string[]): Problems {
  return { ok: false, problems }
}
