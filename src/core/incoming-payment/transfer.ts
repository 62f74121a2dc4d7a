import type { Amount } from '../amount.js'
import {
  type Changed,
  changed,
  type Refused,
  refused,
  type Unchanged,
  unchanged,
} from '../decision.js'
import type { Instant } from '../instant.js'
import { retained, type Stored } from '../stored.js'

/** A receipt of funds, stored so that it counts only once even if the host reports it again. */
export interface Transfer extends Stored {
  readonly paymentId: string
  /** What arrived, in the asset of the wallet address. */
  readonly amount: Amount
}

/** The mark of a transfer that was not counted, and never will be. */
export interface ClosedTransfer extends Stored {
  /** The payment for which it was closed. */
  readonly paymentId: string
  readonly closed: true
}

/** The record of a transfer: kind `transfer`. It is written once and never changes: counted, or closed. */
export type TransferRecord = Transfer | ClosedTransfer

/** What a transfer needs of the payment that it is for. */
export interface PaymentOfTransfer {
  readonly id: string
  /** Until when the record of the payment is kept. */
  readonly paidRetainUntil: Instant
}

/**
 * Whether the record says that the transfer was counted.
 *
 * @example
 * ```ts
 * import { isCounted, type TransferRecord } from 'open-payments-server/core'
 *
 * const amountOf = (record: TransferRecord) => (isCounted(record) ? record.amount : undefined)
 * ```
 */
export function isCounted(record: TransferRecord): record is Transfer {
  return 'amount' in record
}

/**
 * Returns the record by which a transfer counts once.
 *
 * @example
 * ```ts
 * import { transferOf } from 'open-payments-server/core'
 *
 * const amount = { value: '100', assetCode: 'USD', assetScale: 2 }
 * const command = { commandId: 'command-2', recordId: 'wallet01hash-1', amount }
 * const counted = transferOf(incomingPayment, command) // committed together with the payment
 * ```
 */
export function transferOf(
  payment: PaymentOfTransfer,
  {
    commandId,
    recordId: id,
    amount,
  }: Pick<CloseTransfer, 'commandId' | 'recordId'> & {
    readonly amount: Amount
  },
): Transfer {
  const { value, assetCode, assetScale } = amount
  return {
    id,
    version: 1,
    commandId,
    ...retained(retainTransferUntil(payment)),
    paymentId: payment.id,
    amount: { value, assetCode, assetScale },
  }
}

/** The host asks whether a transfer was counted, and that it never will be if it was not. */
export interface CloseTransfer {
  readonly commandId: string
  /** The id of the record of the transfer. */
  readonly recordId: string
  /** The record with this id, if the transfer has been counted or closed. */
  readonly recorded?: TransferRecord | undefined
}

/**
 * Closes a transfer unless it was counted. Counting and closing are one record that is written once, so that exactly
 * one of them is ever true, in any order of calls, and whatever time passes between them.
 *
 * @param payment absent if it does not exist. Then nobody can know any more whether it counted a transfer.
 *
 * @example
 * ```ts
 * import { closeTransfer, isCounted } from 'open-payments-server/core'
 *
 * const command = { commandId: 'command-3', recordId: 'wallet01hash-1', recorded: undefined }
 * const closed = closeTransfer(incomingPayment, command, Date.now())
 * console.log(closed.ok ? isCounted(closed.record) : closed.reason)
 * ```
 */
export function closeTransfer(
  payment: PaymentOfTransfer | undefined,
  { commandId, recordId, recorded }: CloseTransfer,
  now: Instant,
): Changed<ClosedTransfer, never> | Unchanged<TransferRecord> | Refused<'payment_unknown'> {
  if (recorded !== undefined) return unchanged(recorded)
  // A transfer that it has counted can be removed a day later.
  if (payment === undefined || now >= payment.paidRetainUntil) {
    return refused(
      'payment_unknown',
      'the incoming payment does not exist, or its retention is over',
    )
  }
  return changed(closedTransfer(payment, { commandId, recordId }))
}

/**
 * Returns the mark of a transfer that is never counted for a payment. It is kept as long as a counted transfer would
 * be, so that it outlives the payment.
 *
 * @example
 * ```ts
 * import { closedTransfer } from 'open-payments-server/core'
 *
 * // Committed with the refusal `transfer_closed` of a transfer that is too late:
 * const mark = closedTransfer(incomingPayment, { commandId: 'command-3', recordId: 'wallet01hash-1' })
 * ```
 */
export function closedTransfer(
  payment: PaymentOfTransfer,
  { commandId, recordId: id }: Pick<CloseTransfer, 'commandId' | 'recordId'>,
): ClosedTransfer {
  return {
    id,
    version: 1,
    commandId,
    ...retained(retainTransferUntil(payment)),
    paymentId: payment.id,
    closed: true,
  }
}

/** Returns until when a transfer is kept: a day longer than its payment, so that repeats are recognized. */
export function retainTransferUntil({
  paidRetainUntil,
}: Pick<PaymentOfTransfer, 'paidRetainUntil'>): Instant {
  return paidRetainUntil + day
}

const day = 86_400_000
