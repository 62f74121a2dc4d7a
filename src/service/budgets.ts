import { permits } from '../core/access.js'
import type { Asset } from '../core/amount.js'
import type { PayingItem } from '../core/budget/paying-items.js'
import type { Budget, CountedLimit } from '../core/budget/record.js'
import type { BudgetCandidate } from '../core/budget.js'
import type { Instant } from '../core/instant.js'
import { hasOtherAsset } from '../core/limits.js'
import { isUnderGrant, type Requester } from '../core/outgoing-payment/authority.js'
import { budgetIdsOf, type PaymentRecord } from '../core/outgoing-payment/record.js'
import {
  accountLimits,
  isOfAccount,
  type OpenLimit,
  type SetLimit,
} from '../core/spending-limits.js'
import type { AccountLimits, BoundedFunction } from '../ports/host.js'
import type { RecordKey } from '../ports/store.js'
import { HostAnswerError } from '../util/errors.js'
import { hashText } from '../util/hash.js'
import type { ServiceContext } from './context.js'
import type { Read } from './load.js'

export function openBudgetKeys(
  limits: readonly { readonly open?: OpenLimit }[],
): readonly RecordKey[] {
  return limits.map(({ open }) => open && budgetKey(open)).filter((key) => key !== undefined)
}

export function budgetKeysOf(payment: PaymentRecord): readonly RecordKey[] {
  return budgetIdsOf(payment).map((budgetId) => budgetKey({ budgetId }))
}

export function budgetKey({ budgetId: id }: { readonly budgetId: string }): RecordKey {
  return { kind: 'budget', id }
}

export function budgetsIn(read: Read) {
  return (budgetId: string) => read<Budget>(budgetKey({ budgetId }))
}

export function candidatesIn(
  items: readonly PayingItem[],
  walletAddress: string,
  read: Read,
): readonly BudgetCandidate[] {
  return items
    .filter(({ item }) => permits([item], 'outgoing-payment', 'create', walletAddress))
    .map((paying) => {
      const budget = paying.open && read<Budget>(budgetKey(paying.open))
      return budget === undefined ? paying : { budget, ...paying }
    })
}

export function countedIn(limits: readonly SetLimit[], read: Read): readonly CountedLimit[] {
  return limits.map((limit) => {
    const budget = limit.open && read<Budget>(budgetKey(limit.open))
    return budget === undefined ? limit : { budget, ...limit }
  })
}

/** Resolves to the limits that the owner of an account has set for all payments that apps make. */
export async function limitsOfAccount(
  {
    context: { grantNamespace },
    accountLimits: ask,
  }: {
    readonly context: Pick<ServiceContext, 'grantNamespace'>
    readonly accountLimits?: BoundedFunction<AccountLimits> | undefined
  },
  { walletAddress, ...asset }: Asset & { readonly walletAddress: string },
  at: Instant,
): Promise<readonly SetLimit[]> {
  const limits = (await ask?.(walletAddress)) ?? []
  if (limits.length === 0) return []
  if (hasOtherAsset(limits, asset)) {
    throw new HostAnswerError('accountLimits', 'a limit must be in the asset of the account')
  }
  // A wallet address may be too long for an id.
  const accountHash = await hashText(walletAddress)
  const account = { namespace: await grantNamespace(), walletAddress, accountHash }
  return accountLimits(limits, account, at)
}

/**
 * Returns the name under which writes of payments share commits: all writes of one grant change the same budget, and
 * those of an account whose owner has set limits do, whatever their grants. Without either, no budget counts the
 * payment, so its write has a commit of its own.
 */
export function sharedCommit(
  payment: { readonly walletAddress: string } & Requester,
  isAccountLimited: boolean,
): string | undefined {
  if (isAccountLimited) return `account ${payment.walletAddress}`
  return isUnderGrant(payment) ? `grant ${payment.grantId}` : undefined
}

/** Returns the same for a payment that exists. */
export function sharedCommitOf(payment: PaymentRecord): string | undefined {
  const { limitBudgetIds = [] } = payment
  return sharedCommit(payment, limitBudgetIds.some(isOfAccount))
}
