import type { Budget } from '../core/budget.js'
import { budgetIdsOf, type PaymentRecord } from '../core/outgoing-payment/record.js'
import type { OpenLimit } from '../core/spending-limits.js'
import type { RecordKey } from '../ports/store.js'
import { hashText } from '../util/hash.js'
import type { ServiceContext } from './context.js'
import type { Read } from './load.js'

/** Returns the keys of the budgets of limits whose windows are open. */
export function openBudgetKeys(
  limits: readonly { readonly open?: OpenLimit }[],
): readonly RecordKey[] {
  return limits.flatMap(({ open }) => (open ? [budgetKey(open)] : []))
}

/** Returns the keys of the budgets that count a payment. */
export function budgetKeysOf(payment: PaymentRecord): readonly RecordKey[] {
  return budgetIdsOf(payment).map((budgetId) => budgetKey({ budgetId }))
}

export function budgetKey({ budgetId: id }: { readonly budgetId: string }): RecordKey {
  return { kind: 'budget', id }
}

/** Reads budgets by their ids. */
export function budgetsIn(read: Read) {
  return (budgetId: string) => read<Budget>(budgetKey({ budgetId }))
}

/** Resolves to what identifies the budgets of an account. A wallet address may be too long for an id. */
export async function budgetAccount(
  { grantNamespace }: Pick<ServiceContext, 'grantNamespace'>,
  walletAddress: string,
) {
  const namespace = await grantNamespace()
  return { namespace, walletAddress, accountHash: await hashText(walletAddress) }
}

/**
 * Returns the name under which writes of payments share commits: all writes of one grant change the same budget, and
 * those of an account whose owner has set limits do, whatever their grants.
 */
export function sharedCommit(
  { grantId, walletAddress }: Pick<PaymentRecord, 'grantId' | 'walletAddress'>,
  isAccountLimited: boolean,
): string {
  return isAccountLimited ? `account ${walletAddress}` : `grant ${grantId}`
}

/** Returns the same for a payment that exists. */
export function sharedCommitOf(payment: PaymentRecord): string {
  const { limitBudgetIds = [] } = payment
  return sharedCommit(
    payment,
    limitBudgetIds.some((id) => ofAccount.test(id)),
  )
}

/** The namespace has 8 characters, and neither it nor the id of a grant contains a dot. */
const ofAccount = /^.{8}account\./
