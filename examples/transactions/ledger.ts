import type {
  IncomingPaymentView,
  MayPay,
  ReceivedFunds,
  ResourceServer,
} from 'open-payments-server'
import { feeOf, type Posting, transferOf } from '../host-transaction/settle-outgoing.js'
import { settlementAccount } from '../host-transaction/tables.js'

export type Resources = Pick<ResourceServer, 'within'>

/** A row of `ledger_entries`. The rows of a transfer sum to zero. */
export interface Entry {
  transfer_id: string
  account_id: string
  amount: string
}

/** A row of `ledger_holds`. */
export interface Hold {
  payment_id: string
  account_id: string
  amount: string
  /** The payment has ended: the row is a mark, and nothing may be held for the payment any more. */
  released?: boolean
}

/** Refuses a payment that has ended: the call comes late, and nobody waits for its answer. */
export const hasEnded = { ok: false, refusal: 'payment_not_allowed' } as const

/** Returns the row that holds what a payment debits. */
export function holdOf({
  outgoingPaymentId,
  walletAddress,
  debitAmount,
}: Parameters<MayPay>[0]): Hold {
  return {
    payment_id: outgoingPaymentId,
    account_id: walletAddress,
    amount: debitAmount.value,
  }
}

/** Returns the rows that credit the account of an incoming payment. */
export function creditOf(
  { walletAddress }: IncomingPaymentView,
  { transferId, amount }: ReceivedFunds,
): Entry[] {
  return moved(transferId, settlementAccount(amount.assetCode), walletAddress, amount.value)
}

/** Returns the rows that debit the account of an outgoing payment by what a report has added, and credit the fee. */
export function debitOf(posting: Posting): Entry[] {
  const { payment, debit } = posting
  const fee = feeOf(posting)
  const { walletAddress, sentAmount } = payment
  const lines = [
    [settlementAccount(sentAmount.assetCode), debit - fee],
    [walletAddress, -debit],
    ['fees', fee],
  ] as const
  return lines
    .filter(([, amount]) => amount !== 0n)
    .map(([account_id, amount]) => ({
      transfer_id: transferOf(posting),
      account_id,
      amount: `${amount}`,
    }))
}

function moved(transfer_id: string, from: string, to: string, value: string): Entry[] {
  return [
    { transfer_id, account_id: to, amount: value },
    { transfer_id, account_id: from, amount: `-${value}` },
  ]
}
