import { foreignIdentifier, insufficient, itemsOf, permits } from '../core/access.js'
import type { Amount } from '../core/amount.js'
import { payingItems } from '../core/budget/paying-items.js'
import type { Budget } from '../core/budget/record.js'
import { itemLimitStatus, type LimitStatus, limitStatus } from '../core/budget/status.js'
import { ok, type Refused, type Result, refused } from '../core/decision.js'
import { clientId } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import { isUnderGrant, type Requester } from '../core/outgoing-payment/authority.js'
import { awaitConfirmation, confirmationRequired } from '../core/outgoing-payment/confirmation.js'
import { type CreationPolicy, reserveOutgoingPayment } from '../core/outgoing-payment/create.js'
import { type GrantedRights, rightsOf } from '../core/outgoing-payment/granted-rights.js'
import { unexpired } from '../core/quote.js'
import { ownerLimits, waitingLimit } from '../core/spending-limits.js'
import type { JsonObject } from '../core/stored.js'
import type {
  AccountLimits,
  Bounded,
  BoundedFunction,
  MayPay,
  WalletAddresses,
} from '../ports/host.js'
import { newUuid } from '../protocol/uuid.js'
import { given } from '../util/given.js'
import { activeAccount } from './accounts.js'
import {
  budgetKey,
  budgetsIn,
  candidatesIn,
  countedIn,
  limitsOfAccount,
  openBudgetKeys,
} from './budgets.js'
import { newCall, type ServiceContext } from './context.js'
import { loadGrant, loadRecords, readerOf } from './load.js'
import { askMayPay } from './may-pay.js'
import type { QuoteOperations } from './quote.js'

/**
 * A payment that a client could request, or the owner could order. It has at most one of the two amounts. What belongs
 * to an order is not allowed with `grantId`.
 */
export interface PaymentPreviewRequest {
  /** The grant under which the client would pay. Absent if the owner of the account would, with `create`. */
  readonly grantId?: string
  /** The label of the token to pay with, if the grant has several. */
  readonly label?: string
  /** As in `create`: the data that `mayPay` gets, and whether the limits of the account count the payment. */
  readonly data?: JsonObject
  readonly countsInAccountLimits?: boolean
  /** The wallet address to debit. */
  readonly walletAddress: string
  /** URL of the incoming payment to pay. */
  readonly receiver: string
  /** What the payer would be debited in all, your fees included, in the asset of the account. */
  readonly debitAmount?: Amount
  /** What would arrive at the receiver, in the receiver's asset. */
  readonly receiveAmount?: Amount
  /** Whether `policy.mayPay` is asked, with `isPreview: true`. Default false. */
  readonly asksMayPay?: boolean
}

export interface PreviewDependencies {
  readonly context: ServiceContext
  readonly walletAddresses: Bounded<WalletAddresses>
  readonly quotes: QuoteOperations
  readonly mayPay?: MayPay | undefined
  readonly accountLimits?: BoundedFunction<AccountLimits> | undefined
  readonly policy: CreationPolicy
}

/**
 * Why a payment would be refused, in the order in which creation looks. Minor versions add members: give a `switch` a
 * `default`.
 */
export type PreviewRefusal =
  | 'grant_unknown'
  | 'token_unknown'
  | 'access_insufficient'
  | 'identifier_foreign'
  | 'wallet_address_unknown'
  | 'wallet_address_inactive'
  | 'amount_invalid'
  | 'amount_missing'
  | 'amount_too_small'
  | 'receiver_invalid'
  | 'quote_expired'
  | 'limits_exceeded'
  | 'grant_paused'
  | 'conditions_exceeded'
  | 'account_limit_exceeded'
  | 'payment_not_allowed'
  | 'funds_insufficient'
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
  request: PaymentPreviewRequest,
): Promise<Previewed> {
  const { context, quotes, policy, mayPay } = deps
  const { walletAddress, receiver, debitAmount, receiveAmount, data } = request
  const { now, commandId } = newCall(context)
  const namespace = await context.grantNamespace()
  const asks = request.asksMayPay ? mayPay : undefined

  const payer = await payerOf(deps, request, now)
  if (!payer.ok) return unlimited(payer)
  const { requester, access, conditions } = payer.value
  const amounts = given({ debitAmount, receiveAmount })
  const priced = await quotes.price({ walletAddress, receiver, ...amounts }, requester.client)
  if (!priced.ok) return unlimited(priced)
  const current = unexpired(priced.value, now)
  if (!current.ok) return unlimited(current)
  const price = current.value

  const isLimited = isUnderGrant(requester) || request.countsInAccountLimits === true
  const account = { ...price.debitAmount, walletAddress }
  const ofAccount = isLimited ? await limitsOfAccount(deps, account, now) : []
  const grant = isUnderGrant(requester) && { namespace, grantId: requester.grantId }
  const items = grant ? payingItems(access, grant, now) : []
  const set = [...(grant ? ownerLimits(conditions?.limits, grant, now) : []), ...ofAccount]
  const waiting = asks && grant ? [budgetKey(waitingLimit(namespace, grant.grantId))] : []
  const keys = [...openBudgetKeys([...items, ...set]), ...waiting]
  const read = readerOf(await loadRecords(context.store, keys))
  const candidates = candidatesIn(items, walletAddress, read)
  const counted = countedIn(set, read)
  const limits = [
    ...items
      .filter(({ item }) => candidates.some((candidate) => candidate.item === item))
      .map((each) => itemLimitStatus(each, each.open && read<Budget>(budgetKey(each.open)))),
    ...counted.map(limitStatus),
  ]

  const id = newUuid(now, context.random)
  const decision = reserveOutgoingPayment(
    {
      ...{ id, commandId, ...requester, namespace, walletAddress, requestHash: '' },
      ...{ ...price, receiver, candidates, limits: counted },
      ...given({ conditions, data }),
      askedAt: context.clock.now(),
    },
    now,
    policy,
  )
  if (!decision.ok) return { ...decision, limits }
  const { record } = decision
  const refusal = asks ? await askMayPay(context, asks, record, conditions, true) : undefined
  if (refusal === undefined) return { ok: true, ...price, limits }
  if (refusal.refusal !== 'confirmation_required') return { ...refusal, limits }
  const command = { commandId, namespace, confirmation: refusal, lists: [] }
  const waits = awaitConfirmation(record, command, budgetsIn(read), now, policy.budgets)
  return { ...(waits.ok ? confirmationRequired(refusal) : waits), limits }
}

/** What allows the payment: the rights of a grant, or none if its owner orders it. */
interface PreviewedPayer extends GrantedRights {
  readonly requester: Requester
}

async function payerOf(
  { context }: PreviewDependencies,
  { grantId, label, walletAddress }: PaymentPreviewRequest,
  now: Instant,
): Promise<Result<PreviewedPayer, Refused<PreviewRefusal>>> {
  if (grantId === undefined) return ok({ requester: {}, access: [] })
  const grant = await loadGrant(context, grantId)
  if (grant === undefined) return refused('grant_unknown', 'the grant does not exist')
  const rights = rightsOf(grant, now)
  if (rights === undefined) {
    return refused('token_unknown', 'the grant is not approved, or has ended')
  }
  const access = itemsOf(rights.access, label)
  if (access.length === 0) {
    return refused('token_unknown', 'the grant has no live token with this label')
  }
  const type = 'outgoing-payment'
  if (!permits(access, type, 'create')) return insufficient(type, 'create')
  if (!permits(access, type, 'create', walletAddress)) return foreignIdentifier('walletAddress')
  const requester = { client: clientId(grant.client), grantId }
  return ok({ requester, access, conditions: rights.conditions })
}

function unlimited<Refusal extends string>(refusal: Refused<Refusal>) {
  return { ...refusal, limits: [] }
}

export async function limitsOfGrant(
  { context }: Pick<PreviewDependencies, 'context'>,
  grantId: string,
): Promise<readonly LimitStatus[]> {
  const { now } = newCall(context)
  const namespace = await context.grantNamespace()
  const grant = await loadGrant(context, grantId)
  return statuses(context, ownerLimits(grant?.conditions?.limits, { namespace, grantId }, now))
}

/** Resolves to what is left of the limits that the owner of an account has set for all payments that apps make. */
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
