import { itemsOf } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import { payingItems } from '../core/budget/paying-items.js'
import type { Budget } from '../core/budget/record.js'
import { itemLimitStatus, type LimitStatus, limitStatus } from '../core/budget/status.js'
import { type Refused, refused } from '../core/decision.js'
import { clientId } from '../core/grant/record.js'
import { confirmationRequired } from '../core/outgoing-payment/confirmation.js'
import { type CreationPolicy, reserveOutgoingPayment } from '../core/outgoing-payment/create.js'
import { rightsOf } from '../core/outgoing-payment/granted-rights.js'
import { ownerLimits } from '../core/spending-limits.js'
import type { AccountLimits, MayPay, WalletAddresses } from '../ports/host.js'
import { newId } from '../protocol/credential.js'
import { activeAccount } from './accounts.js'
import { budgetKey, candidatesIn, countedIn, limitsOfAccount, openBudgetKeys } from './budgets.js'
import { newCall, type ServiceContext } from './context.js'
import { loadGrant, loadRecords, readerOf } from './load.js'
import { askMayPay } from './may-pay.js'
import type { QuoteOperations } from './quote.js'

/** A payment that a client could request. It has at most one of the two amounts. */
export interface PaymentPreviewRequest {
  readonly grantId: string
  /** The label of the token to pay with, if the grant has several. */
  readonly label?: string
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  readonly debitAmount?: Amount
  readonly receiveAmount?: Amount
  /** Whether `policy.mayPay` is asked, with `isPreview: true`. Default false. */
  readonly asksMayPay?: boolean
}

export interface PreviewDependencies {
  readonly context: ServiceContext
  readonly walletAddresses: WalletAddresses
  readonly quotes: QuoteOperations
  readonly mayPay?: MayPay | undefined
  readonly accountLimits?: AccountLimits | undefined
  readonly policy: CreationPolicy
}

/** Why a payment would be refused. */
export type PreviewRefusal =
  | 'grant_unknown'
  | 'token_unknown'
  | 'wallet_address_unknown'
  | 'wallet_address_inactive'
  | 'receiver_invalid'
  | 'amount_missing'
  | 'amount_too_small'
  | 'amount_invalid'
  | 'quote_expired'
  | 'grant_paused'
  | 'conditions_exceeded'
  | 'limits_exceeded'
  | 'account_limit_exceeded'
  | 'funds_insufficient'
  | 'payment_not_allowed'
  | 'confirmation_required'

/** The decision about a payment, and the limits that it would count in. */
export type Previewed =
  | {
      readonly ok: true
      readonly debitAmount: Amount
      readonly receiveAmount: Amount
      readonly receiverWalletAddress?: string
      readonly limits: readonly LimitStatus[]
    }
  | (Refused<PreviewRefusal> & { readonly limits: readonly LimitStatus[] })

/** Decides about a payment, with canonical URLs, as its creation would at this instant. Writes nothing. */
export async function preview(
  deps: PreviewDependencies,
  { grantId, label, walletAddress, receiver, asksMayPay, ...amounts }: PaymentPreviewRequest,
): Promise<Previewed> {
  const { context, quotes, policy, mayPay } = deps
  const { now, commandId } = newCall(context)
  const namespace = await context.grantNamespace()

  const grant = await loadGrant(context, grantId)
  if (grant === undefined) return unlimited(refused('grant_unknown', 'the grant does not exist'))
  const rights = rightsOf(grant, now)
  if (rights === undefined) {
    return unlimited(refused('token_unknown', 'the grant is not approved, or has ended'))
  }
  const { access, conditions } = rights

  const client = clientId(grant.client)
  const priced = await quotes.price({ walletAddress, receiver, ...amounts }, client)
  if (!priced.ok) return unlimited(priced)
  const { expiresAt = Number.POSITIVE_INFINITY, ...price } = priced.value
  if (expiresAt <= now) return unlimited(refused('quote_expired', 'the price has already expired'))

  const ofAccount = await limitsOfAccount(deps, { ...price.debitAmount, walletAddress }, now)
  const items = payingItems(itemsOf(access, label), { namespace, grantId }, now)
  const set = [...ownerLimits(conditions?.limits, { namespace, grantId }, now), ...ofAccount]
  const read = readerOf(await loadRecords(context.store, openBudgetKeys([...items, ...set])))
  const candidates = candidatesIn(items, walletAddress, read)
  const counted = countedIn(set, read)
  const limits = [
    ...items
      .filter(({ item }) => candidates.some((candidate) => candidate.item === item))
      .map((each) => itemLimitStatus(each, each.open && read<Budget>(budgetKey(each.open)))),
    ...counted.map(limitStatus),
  ]

  const id = newId(await context.namespace(), now, context.random)
  const decision = reserveOutgoingPayment(
    {
      ...{ id, commandId, client, grantId, namespace, walletAddress, requestHash: '' },
      ...{ ...price, receiver, candidates, limits: counted },
      ...(conditions !== undefined && { conditions }),
      askedAt: context.clock.now(),
    },
    now,
    policy,
  )
  if (!decision.ok) return { ...decision, limits }
  const { record } = decision
  const refusal =
    asksMayPay && mayPay ? await askMayPay(context, mayPay, record, conditions, true) : undefined
  if (refusal === undefined) return { ok: true, ...price, limits }
  return refusal.refusal === 'confirmation_required'
    ? { ...confirmationRequired(refusal), limits }
    : { ...refusal, limits }
}

function unlimited<Refusal extends string>(refusal: Refused<Refusal>) {
  return { ...refusal, limits: [] }
}

/** Resolves to what is left of the limits that the owner has set for a grant. */
export async function limitsOfGrant(
  { context }: Pick<PreviewDependencies, 'context'>,
  grantId: string,
): Promise<readonly LimitStatus[]> {
  const { now } = newCall(context)
  const namespace = await context.grantNamespace()
  const grant = await loadGrant(context, grantId)
  return statuses(context, ownerLimits(grant?.conditions?.limits, { namespace, grantId }, now))
}

/** Resolves to what is left of the limits that the owner of an account has set for all its payments. */
export async function limitsLeftOfAccount(
  deps: Pick<PreviewDependencies, 'context' | 'walletAddresses' | 'accountLimits'>,
  walletAddress: string,
): Promise<readonly LimitStatus[]> {
  const { now } = newCall(deps.context)
  const account = await activeAccount(deps.walletAddresses, walletAddress)
  if (!account.ok) return []
  return statuses(
    deps.context,
    await limitsOfAccount(deps, { ...account.value, walletAddress }, now),
  )
}

async function statuses({ store }: ServiceContext, limits: Parameters<typeof countedIn>[0]) {
  const read = readerOf(await loadRecords(store, openBudgetKeys(limits)))
  return countedIn(limits, read).map(limitStatus)
}
