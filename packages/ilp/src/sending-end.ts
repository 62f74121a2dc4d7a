import type { Amount, OutgoingPaymentView, ResourceServices } from 'open-payments-server'
import {
  type Doubt,
  doubtsOf,
  type Settlement,
  stopSettlement,
  totalsOf,
} from 'open-payments-server/attempts'
import { dividedUp, least } from './rates.js'
import type { Sending, SendingBook } from './sending-book.js'

/** A payment whose packets an operator should know about. */
export interface SendingInDoubt {
  readonly paymentId: string
  /** Absent if no packet was sent. */
  readonly peer?: string
  /**
   * Packets that are not known to have arrived or not, or only by the receiver's word. In the asset of the receiver,
   * oldest first. The reference of each is the condition of the packet.
   */
  readonly doubts: readonly Doubt[]
  /** What the books of the two peers may differ by at most, in their asset. */
  readonly amount: bigint
  /**
   * Present if somebody else has ended the payment, and not with what its packets say: what its record debits, and what
   * is due for what has arrived or is in doubt.
   */
  readonly mismatch?: { readonly debited: Amount; readonly due: Amount }
}

/** What ends a payment: the record of its packets, by its writer. */
export interface Ending {
  readonly payment: OutgoingPaymentView
  readonly writer: string
  readonly sending: Sending
}

interface Ports {
  readonly outgoingPayments: Pick<
    ResourceServices['outgoingPayments'],
    'get' | 'reportSent' | 'fail'
  >
  readonly sendings: SendingBook
  readonly now: () => number
}

/**
 * Reports the outcome of a payment. Only its writer ends it: it first records that nothing more is sent, so that a
 * process which takes over from now on reports the same totals.
 */
export async function end(ports: Ports, ending: Ending, reason: string): Promise<void> {
  const { outgoingPayments, sendings, now } = ports
  const { payment, writer } = ending
  const { paymentId } = payment
  const settlement = stopSettlement(ending.sending.settlement, reason.slice(0, 256), now())
  const sending = { ...ending.sending, settlement }
  if (!(await sendings.write(paymentId, writer, sending, isListed(sending)))) {
    throw takenOver(paymentId)
  }
  const { isComplete, ...report } = reportOf(payment, sending)
  const ended = isComplete
    ? await outgoingPayments.reportSent(paymentId, { ...report, final: true })
    : await outgoingPayments.fail(paymentId, {
        ...report,
        reason: settlement.stopped?.reason ?? reason,
      })
  if (ended.ok) return keepListed(sendings, paymentId, writer, sending)
  if (ended.refusal !== 'payment_over') throw new Error(`${paymentId}: ${ended.reason}`)
  const over = await outgoingPayments.get(paymentId)
  return keepListed(sendings, paymentId, writer, compared(sending, over))
}

/** Compares the record of the packets of a payment that has ended, perhaps by somebody else, with what it debits. */
export async function review(
  { outgoingPayments, sendings }: Ports,
  paymentId: string,
): Promise<void> {
  const writer = crypto.randomUUID()
  const sending = await sendings.take(paymentId, writer)
  if (sending === undefined) return sendings.forget(paymentId, writer)
  const over = await outgoingPayments.get(paymentId)
  return keepListed(sendings, paymentId, writer, compared(sending, over))
}

/** Keeps the record of a payment that is over while an operator should know about it. */
async function keepListed(
  sendings: SendingBook,
  paymentId: string,
  writer: string,
  sending: Sending,
): Promise<void> {
  if (!isListed(sending)) return sendings.forget(paymentId, writer)
  if (!(await sendings.write(paymentId, writer, sending, true))) throw takenOver(paymentId)
}

function compared(sending: Sending, payment: OutgoingPaymentView | undefined): Sending {
  if (payment === undefined) return sending
  const { debitAmount, receiveAmount, sentAmount } = payment
  const next = { ...sending, ended: { debitAmount, receiveAmount, sentAmount } }
  return mismatchIn(next) === undefined ? sending : next
}

export function takenOver(paymentId: string): Error {
  return new Error(`${paymentId}: another process has taken over the payment`)
}

/** Whether an operator should know about the packets of a payment. */
export function isListed(sending: Sending): boolean {
  return doubtsOf(sending.settlement).length > 0 || mismatchIn(sending) !== undefined
}

export function doubtIn(paymentId: string, sending: Sending): SendingInDoubt {
  const { route, settlement, packets } = sending
  const doubts = doubtsOf(settlement)
  const references = new Set(doubts.map(({ reference }) => reference))
  const amounts = [...references].map((reference) => BigInt(packets[reference] ?? 0))
  const mismatch = mismatchIn(sending)
  return {
    paymentId,
    ...(route !== undefined && { peer: route.peer }),
    doubts,
    amount: amounts.reduce((sum, each) => sum + each, 0n),
    ...(mismatch !== undefined && { mismatch }),
  }
}

function mismatchIn({ settlement, ended }: Sending): SendingInDoubt['mismatch'] {
  if (ended === undefined) return undefined
  const { proven, byWord, inDoubt } = totalsOf(settlement)
  const due = totalsFor(ended, proven + byWord, inDoubt).sentAmount
  return due.value === ended.sentAmount.value ? undefined : { debited: ended.sentAmount, due }
}

/** Returns the report that ends a payment: what is in doubt is debited, and stays listed. */
function reportOf(payment: OutgoingPaymentView, { settlement, route }: Sending) {
  const { proven, byWord, inDoubt } = totalsOf(settlement)
  const totals = totalsFor(payment, proven + byWord, inDoubt)
  const { sentAmount, deliveredAmount } = totals
  const known = totalsFor(payment, proven + byWord, 0n)
  const doubt = BigInt(sentAmount.value) - BigInt(known.sentAmount.value)
  return {
    ...totals,
    ...(doubt > 0n && { inDoubt: paymentDoubt(payment, settlement, route?.peer, doubt) }),
    isComplete:
      deliveredAmount.value === payment.receiveAmount.value ||
      sentAmount.value === payment.debitAmount.value,
  }
}

/** Returns the part of a payment that nobody knows about, as the record of the payment has it. */
function paymentDoubt(
  { createdAt, debitAmount }: OutgoingPaymentView,
  settlement: Settlement,
  peer = 'the peer',
  doubt: bigint,
) {
  const open = doubtsOf(settlement).filter(({ kind }) => kind === 'in_doubt')
  const since = Math.floor(open[0]?.since ?? createdAt)
  const reason = `no reply of ${peer}`.slice(0, 256)
  return { amount: valued(doubt, debitAmount), since, reason }
}

/**
 * Returns what the payer is debited for what was delivered, at the quoted price: the wallet keeps any difference to the
 * packets' cost. What is still in doubt when the payment must end is debited too, and stays listed.
 */
export function totalsFor(
  { debitAmount, receiveAmount }: Pick<OutgoingPaymentView, 'debitAmount' | 'receiveAmount'>,
  delivered: bigint,
  inDoubt: bigint,
) {
  const [most, asked] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
  const priceOf = (amount: bigint) => dividedUp(most * least(amount, asked), asked)
  return {
    sentAmount: valued(priceOf(delivered + inDoubt), debitAmount),
    deliveredAmount: valued(least(delivered, asked), receiveAmount),
  }
}

function valued(value: bigint, { assetCode, assetScale }: Amount): Amount {
  return { value: `${value}`, assetCode, assetScale }
}
