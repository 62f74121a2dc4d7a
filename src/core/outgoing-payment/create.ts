import type { Budget, BudgetPolicy, CountedLimit } from '../budget/record.js'
import {
  type BudgetCandidate,
  type Charge,
  type ChargeRefusal,
  chargeTo,
  decideSpending,
} from '../budget.js'
import { type Changed, changed, ok, type Refused, type Result } from '../decision.js'
import type { Instant } from '../instant.js'
import type { GrantConditions, Spending } from '../limits.js'
import { type Quote, type QuoteRefusal, usableQuote } from '../quote.js'
import type { JsonObject, ListEntry } from '../stored.js'
import { type AllOrNone, isUnderGrant, type Requester, type UnderGrant } from './authority.js'
import {
  type OutgoingPayment,
  type OutgoingPaymentEvent,
  type OutgoingPaymentPolicy,
  outgoingPaymentEvent,
  type ReservedPayment,
} from './record.js'
import { askTimes, type ReservationPolicy } from './reservation.js'

/** `Omit` for each member of a union. */
type WithoutMembers<Union, Name extends PropertyKey> = Union extends unknown
  ? Omit<Union, Name>
  : never

/** What is paid, and to whom: as in a quote, or at a price that was determined for the request. */
export type Terms =
  | { readonly type: 'quote'; readonly quoteId: string }
  | { readonly type: 'price'; readonly price: Spending }

/** A client requests a payment, or the owner of the account orders it. */
export type RequestPayment = WithoutMembers<
  CreateOutgoingPayment,
  'quoteId' | keyof Spending | keyof CreationRecords
> & {
  readonly terms: Terms
  /**
   * The time at which the host is asked about the payment, which is then only reserved. Absent if the host does not
   * decide.
   */
  readonly askedAt?: Instant | undefined
}

export interface CreationRecords {
  /** The quote of the terms; absent if there is none with this id. */
  readonly quote: Quote | undefined
  /** The granted items that allow payments from the wallet address, in the order in which they were granted. */
  readonly candidates: readonly BudgetCandidate[]
  /** All limits that the owner has set, for the grant and for the account. */
  readonly limits: readonly CountedLimit[]
}

/** The policies of a creation. Apart, because a budget is kept longer than its payments. */
export interface CreationPolicy {
  readonly payments: OutgoingPaymentPolicy
  readonly reservations: ReservationPolicy
  readonly budgets: BudgetPolicy
}

/** Decides whether a payment that does not exist is created or reserved: by its terms, then by its grant or owner. */
export function decideCreation(
  request: RequestPayment,
  { quote, candidates, limits }: CreationRecords,
  now: Instant,
  policy: CreationPolicy,
):
  | CreatedPayment<AllOrNone<UnderGrant>>
  | CreatedReservation<AllOrNone<UnderGrant>>
  | Refused<QuoteRefusal | ChargeRefusal> {
  const { terms, askedAt } = request
  const agreed: Result<Spending, Refused<QuoteRefusal>> = terms.type === 'price'
    ? ok(terms.price)
    : usableQuote(quote, request, now)
  if (!agreed.ok) return agreed
  const { receiver, receiverWalletAddress, debitAmount, receiveAmount } = agreed.value
  const command: CreateOutgoingPayment = {
    receiver,
    debitAmount,
    receiveAmount,
    candidates,
    limits,
    ...(terms.type === 'quote' && { quoteId: terms.quoteId }),
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    ...request,
  }
  const { payments, budgets } = policy
  return askedAt === undefined
    ? createOutgoingPayment(command, now, {
        holdMs: payments.holdMs,
        retentionMs: budgets.retentionMs,
      })
    : reserveOutgoingPayment({ askedAt, ...command }, now, policy)
}

/**
 * A client creates a payment, from a quote or at a price that is determined now. Without `client` and `grantId`, the
 * owner of the account does: no granted item has to cover it, and only `limits` count it.
 */
export type CreateOutgoingPayment = Requester &
  Omit<Charge, 'grantId'> &
  Spending & {
    readonly id: string
    readonly walletAddress: string
    readonly quoteId?: string
    readonly requestHash: string
    readonly metadata?: JsonObject
    /** Data of the host, which clients do not see. */
    readonly data?: JsonObject
    readonly lists: readonly ListEntry[]
    /** The granted items that allow payments from the wallet address, in the order in which they were granted. */
    readonly candidates: readonly BudgetCandidate[]
    /** The resource owner's conditions for payments under the grant. */
    readonly conditions?: GrantConditions
    /** All limits that the owner has set and that count it: in `conditions`, and for the account. Default: none. */
    readonly limits?: readonly CountedLimit[]
  }

/** The command of a client. */
export type CreateUnderGrant = Extract<CreateOutgoingPayment, { readonly grantId: string }>

/** A new payment and the budgets that count it. */
export interface CreatedPayment<Authority extends AllOrNone<UnderGrant> = UnderGrant>
  extends Changed<Extract<OutgoingPayment, Authority>, OutgoingPaymentEvent> {
  /** The budget, including the amounts that the payment reserves; `undefined` if the owner creates it. */
  readonly budget: Authority extends UnderGrant ? Budget : undefined
  /** The budgets of the limits that the owner has set, each including these amounts. */
  readonly limitBudgets: readonly Budget[]
}

/**
 * Creates an outgoing payment, and reserves its full amounts in the budgets of the current windows.
 *
 * @param policy `retentionMs` is that of the budgets: a payment is kept from its end.
 *
 * @example
 * ```ts
 * import { createOutgoingPayment } from 'open-payments-server/core'
 *
 * const created = createOutgoingPayment(
 *   {
 *     ...spending,
 *     commandId: 'command-1',
 *     namespace: 'wallet01',
 *     id: 'wallet01payment-1',
 *     grantId: 'wallet01grant-1',
 *     walletAddress: 'https://wallet.example/alice',
 *     client: 'https://shop.example',
 *     requestHash: 'hash-1',
 *     lists: [],
 *     candidates: [{ item }],
 *   },
 *   Date.now(),
 *   { holdMs: 86_400_000, retentionMs: 365 * 86_400_000 },
 * )
 * console.log(created.ok ? created.budget.spent : created.reason)
 * ```
 */
export function createOutgoingPayment(
  command: CreateUnderGrant,
  now: Instant,
  policy: Pick<OutgoingPaymentPolicy, 'holdMs'> & BudgetPolicy,
): CreatedPayment | Refused<ChargeRefusal>
export function createOutgoingPayment(
  command: CreateOutgoingPayment,
  now: Instant,
  policy: Pick<OutgoingPaymentPolicy, 'holdMs'> & BudgetPolicy,
): CreatedPayment<AllOrNone<UnderGrant>> | Refused<ChargeRefusal>
export function createOutgoingPayment(
  command: CreateOutgoingPayment,
  now: Instant,
  policy: Pick<OutgoingPaymentPolicy, 'holdMs'> & BudgetPolicy,
): CreatedPayment<AllOrNone<UnderGrant>> | Refused<ChargeRefusal> {
  const counted = countInBudgets(command, now, policy)
  if (!counted.ok) return counted
  const { payment, budget, limitBudgets } = counted.value
  const holdUntil = now + policy.holdMs
  const times = { holdUntil, dueAt: holdUntil }
  const { lists } = command
  // In Node 20, a literal that begins with a spread takes 1 µs for each member that the spread object lacks.
  const record: OutgoingPayment = { state: 'created', lists, ...times, ...payment }
  const event = outgoingPaymentEvent('outgoing-payment.created', record, now)
  return { budget, limitBudgets, ...changed(record, event) }
}

export interface CreatedReservation<Authority extends AllOrNone<UnderGrant> = UnderGrant>
  extends Changed<Extract<ReservedPayment, Authority>, OutgoingPaymentEvent>,
    Pick<CreatedPayment<Authority>, 'budget' | 'limitBudgets'> {}

type UnlistedPayment = WithoutMembers<CreateOutgoingPayment, 'lists'>

/**
 * Reserves a payment, as `createOutgoingPayment` would create it for a request that arrives now. The command that
 * reserves it asks the host.
 *
 * @param command `askedAt` is when it asks: later than the request arrived, by as long as the payment took to price.
 */
export function reserveOutgoingPayment(
  command: WithoutMembers<CreateUnderGrant, 'lists'> & { readonly askedAt: Instant },
  now: Instant,
  policy: Pick<CreationPolicy, 'reservations' | 'budgets'>,
): CreatedReservation | Refused<ChargeRefusal>
export function reserveOutgoingPayment(
  command: UnlistedPayment & { readonly askedAt: Instant },
  now: Instant,
  policy: Pick<CreationPolicy, 'reservations' | 'budgets'>,
): CreatedReservation<AllOrNone<UnderGrant>> | Refused<ChargeRefusal>
export function reserveOutgoingPayment(
  command: UnlistedPayment & { readonly askedAt: Instant },
  now: Instant,
  { reservations, budgets }: Pick<CreationPolicy, 'reservations' | 'budgets'>,
): CreatedReservation<AllOrNone<UnderGrant>> | Refused<ChargeRefusal> {
  const counted = countInBudgets(command, now, budgets)
  if (!counted.ok) return counted
  const { payment, budget, limitBudgets } = counted.value
  const times = askTimes(command.askedAt, reservations)
  const record: ReservedPayment = { state: 'reserved', ...times, ...payment }
  return { budget, limitBudgets, ...changed(record) }
}

/**
 * Counts a new payment in the budgets of the current windows, if its grant and its owner allow it. Its record then
 * lacks only its state and its times.
 */
function countInBudgets(command: UnlistedPayment, now: Instant, policy: BudgetPolicy) {
  const charged = charge(command, now, policy)
  if (!charged.ok) return charged
  const { authority, budget, limitBudgets } = charged.value
  const { quoteId, receiverWalletAddress, metadata, data } = command
  const payment = {
    id: command.id,
    version: 1,
    commandId: command.commandId,
    ...authority,
    requestHash: command.requestHash,
    walletAddress: command.walletAddress,
    receiver: command.receiver,
    debitAmount: command.debitAmount,
    receiveAmount: command.receiveAmount,
    sent: '0',
    delivered: '0',
    createdAt: now,
    updatedAt: now,
    ...(quoteId !== undefined && { quoteId }),
    ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
    ...(metadata !== undefined && { metadata }),
    ...(data !== undefined && { data }),
    ...(limitBudgets.length > 0 && { limitBudgetIds: limitBudgets.map(({ id }) => id) }),
  }
  return ok({ payment, budget, limitBudgets })
}

/** Charges a payment to the granted item that covers it, if there is a grant, and to the limits that count it. */
function charge(
  command: UnlistedPayment,
  now: Instant,
  policy: BudgetPolicy,
): Result<
  {
    readonly authority: AllOrNone<UnderGrant>
    readonly budget: Budget | undefined
    readonly limitBudgets: readonly Budget[]
  },
  Refused<ChargeRefusal>
> {
  if (!isUnderGrant(command)) {
    const counted = chargeTo(command.limits ?? [], command, command, now, policy)
    if (!counted.ok) return counted
    return ok({ authority: {}, budget: undefined, limitBudgets: counted.value })
  }
  const charged = decideSpending(command.candidates, command, command, now, policy, command)
  if (!charged.ok) return charged
  const { item, budget, limitBudgets } = charged.value
  const { client, grantId } = command
  const authority = { client, grantId, itemId: item.itemId, budgetId: budget.id }
  return ok({ authority, budget, limitBudgets })
}
