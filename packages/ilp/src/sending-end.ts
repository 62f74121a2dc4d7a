import type {
  Amount,
  DoubtDecision,
  OutgoingPaymentView,
  ResourceServices,
} from 'open-payments-server'
import {
  type Doubt,
  doubtsOf,
  reportSettled,
  type Settlement,
  settledOf,
  stopSettlement,
  totalsAt,
  totalsOf,
} from 'open-payments-server/attempts'
import { least } from './rates.js'
import type { EndedPayment, Sending, SendingBook } from './sending-book.js'

/** A payment whose packets an operator should know about. */
export interface SendingInDoubt {
  readonly paymentId: string
  /** Absent if no packet was sent. */
  readonly peer?: string
  /**
   * Packets that are not known to have arrived or not, or only by the word of the receiver or the peer, and what a
   * receiver acknowledges beyond what its packet carried. In the asset of the receiver, oldest first. The reference of
   * each is the condition of the packet.
   */
  readonly doubts: readonly Doubt[]
  /** What the books of the two peers may differ by at most, in their asset. */
  readonly amount: bigint
  /** The part of it that does not count in the book of this wallet, by the word of the receiver or the peer alone. */
  readonly denied: bigint
  /**
   * The part of `amount` that no packet has brought, although the receiver has it: something has repeated a request,
   * and the peer has counted it twice, or others have paid the receiver meanwhile. Absent for 0.
   */
  readonly repeated?: bigint
  /**
   * Present if the payer was debited something else than what is due for what has arrived or is in doubt: somebody else
   * has ended the payment, or what was debited by a word was decided never to have arrived. Both are without what the
   * record of the payment has in doubt.
   */
  readonly mismatch?: { readonly debited: Amount; readonly due: Amount }
  /**
   * The argument of `outgoingPayments.decideDoubt`. Present once every packet of a payment that ended with a part in
   * doubt is decided, until you have called that and decide `corrected`.
   */
  readonly decideDoubt?: DoubtDecision
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
  const reported = await reportSettled(paymentsOf(ports), paymentId, settledOf(settlement))
  // Somebody else has reported more than its packets say. That stays debited, and is listed as the mismatch.
  const isReceded = !reported.ok && reported.refusal === 'totals_receded'
  const ended = isReceded
    ? await outgoingPayments.fail(paymentId, { reason: reason.slice(0, 256) })
    : reported
  if (!ended.ok && ended.refusal !== 'payment_over') {
    throw new Error(`${paymentId}: ${ended.reason}`)
  }
  const over = ended.ok ? ended.payment : await outgoingPayments.get(paymentId)
  return keepListed(sendings, paymentId, writer, compared(sending, over))
}

/** Reports what is proven while a payment is sent. */
export function reportProgress(ports: Ports, paymentId: string, { settlement }: Sending) {
  const { totals } = settledOf(settlement)
  const running = { state: 'again', retryAt: 0, why: 'may_take_effect', totals } as const
  return reportSettled(paymentsOf(ports), paymentId, running)
}

/** The refund of a payment that has ended is the host's, with its ledger: what is due is listed. */
function paymentsOf({ outgoingPayments: { get, reportSent, fail } }: Ports) {
  const over = { ok: false, refusal: 'payment_over', reason: 'the payment has ended' } as const
  return { get, reportSent, fail, decideDoubt: async () => over as never }
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

/** Notes what the record of a payment that has ended debits, if that is not what is due, or may not stay so. */
export function compared(sending: Sending, payment: OutgoingPaymentView | undefined): Sending {
  const next = withEnd(sending, payment)
  const isDue = mismatchIn(next) !== undefined || doubtOf(next) !== undefined
  if (isDue || next.ended?.corrected !== undefined) return next
  const { ended: _ended, ...rest } = next
  return rest
}

export function withEnd(sending: Sending, payment: OutgoingPaymentView | undefined): Sending {
  if (payment === undefined) return sending
  const { debitAmount, receiveAmount, sentAmount, deliveredAmount, inDoubt } = payment
  const corrected = sending.ended?.corrected
  const ended = {
    ...{ debitAmount, receiveAmount, sentAmount, deliveredAmount },
    ...(inDoubt !== undefined && { inDoubt }),
    ...(corrected !== undefined && { corrected }),
  }
  return { ...sending, ended }
}

export function takenOver(paymentId: string): Error {
  return new Error(`${paymentId}: another process has taken over the payment`)
}

/** Whether an operator should know about the packets of a payment. */
export function isListed(sending: Sending): boolean {
  return (
    doubtsIn(sending.settlement).length > 0 ||
    mismatchIn(sending) !== undefined ||
    doubtOf(sending) !== undefined ||
    repeatedIn(sending) > 0n
  )
}

/** Returns what the receiver has beyond all that the packets can have brought, in the asset of the peer. */
export function repeatedIn({ settlement, before, received, sent, packets }: Sending): bigint {
  if (before === undefined || received === undefined) return 0n
  const known = explainedIn(settlement)
  const more = BigInt(received) - known - BigInt(before)
  if (more <= 0n || known === 0n) return 0n
  const cost = Object.values(packets).reduce((sum, each) => sum + BigInt(each), BigInt(sent))
  return (more * cost + known - 1n) / known
}

/** What the packets can have brought. What a receiver says beyond its proofs hides nothing that it has. */
export function explainedIn(settlement: Settlement): bigint {
  const { proven, inDoubt } = totalsOf(settlement)
  const bySum = settlement.attempts.reduce((sum, { outcome }) => {
    const isBySum = outcome.state === 'decided' && outcome.by === 'sum'
    return isBySum ? sum + BigInt(outcome.arrived) : sum
  }, 0n)
  return proven + bySum + inDoubt
}

/** What is in doubt, and what is known by a word alone: that of the receiver, or of a peer that has closed packets. */
export function doubtsIn(settlement: Settlement): readonly Doubt[] {
  const closed = settlement.attempts.flatMap(({ reference, amount, outcome }): readonly Doubt[] => {
    const isClosed = outcome.state === 'decided' && outcome.by === 'close'
    const reason = 'closed by the peer'
    return isClosed ? [{ kind: 'denied', reference, amount, since: outcome.at, reason }] : []
  })
  // What is withdrawn is the mismatch, in the asset of the payer.
  const doubts = doubtsOf(settlement).filter(({ kind }) => kind !== 'withdrawn')
  return [...doubts, ...closed].sort((a, b) => a.since - b.since)
}

/** Returns all payments with something that an operator should know. */
export async function* listedIn(sendings: SendingBook): AsyncIterable<SendingInDoubt> {
  let after: string | undefined
  do {
    const page = await sendings.listed(after)
    for (const { paymentId, sending } of page) yield doubtIn(paymentId, sending)
    after = page.at(-1)?.paymentId
  } while (after !== undefined)
}

/**
 * Returns what a peer, and receivers behind it, have denied, in the asset of the peer. A part of a packet stays in its
 * book.
 */
export async function deniedAt(sendings: SendingBook, peer: string): Promise<bigint> {
  let sum = 0n
  for await (const { denied, peer: other } of listedIn(sendings)) if (other === peer) sum += denied
  return sum
}

export function doubtIn(paymentId: string, sending: Sending): SendingInDoubt {
  const { route, settlement, packets } = sending
  const doubts = doubtsIn(settlement)
  const amountOf = (some: readonly string[]) =>
    some.reduce((sum, reference) => sum + BigInt(packets[reference] ?? 0), 0n)
  const { attempts } = settlement
  const proven = attempts.filter(({ outcome }) => outcome.state === 'proven')
  // What is in excess counts in both books: by its proof, or by the word of an operator who has compared them.
  const differing = doubts.filter(({ kind }) => kind !== 'excess')
  const references = new Set(differing.map(({ reference }) => reference))
  for (const { reference } of proven) references.delete(reference)
  const counted = new Set(
    doubts.filter(({ kind }) => kind !== 'denied').map(({ reference }) => reference),
  )
  const mismatch = mismatchIn(sending)
  const decideDoubt = doubtOf(sending)
  const repeated = repeatedIn(sending)
  return {
    paymentId,
    ...(route !== undefined && { peer: route.peer }),
    doubts,
    amount: amountOf([...references]) + repeated,
    denied: amountOf([...references].filter((each) => !counted.has(each))),
    ...(repeated > 0n && { repeated }),
    ...(mismatch !== undefined && { mismatch }),
    ...(decideDoubt !== undefined && { decideDoubt }),
  }
}

/** Returns what the payer's account was debited, and what is due for the packets, if they differ. */
export function mismatchIn({ settlement, ended }: Sending): SendingInDoubt['mismatch'] {
  if (ended === undefined) return undefined
  const { proven, byWord, inDoubt, excess } = totalsOf(settlement)
  const arrived = ended.inDoubt === undefined ? proven + byWord + inDoubt : proven + byWord
  const debited = debitedIn(ended) - BigInt(ended.inDoubt?.amount.value ?? 0)
  const due = dueFor(ended, arrived)
  // What is listed as `excess` may have been debited or not. What is in doubt covers what arrives of it.
  const lowest = ended.inDoubt === undefined ? dueFor(ended, arrived - excess) : 0n
  if (debited >= lowest && debited <= due) return undefined
  const of = (value: bigint) => ({ ...ended.debitAmount, value: `${value}` })
  return { debited: of(debited), due: of(debited > due ? due : lowest) }
}

function debitedIn({ sentAmount, corrected = '0' }: EndedPayment): bigint {
  return BigInt(sentAmount.value) + BigInt(corrected)
}

function dueFor(ended: EndedPayment, arrived: bigint): bigint {
  return BigInt(totalsAt(ended, arrived).sentAmount.value)
}

/** Returns how the part in doubt of a payment is to be decided, once every packet is. */
export function doubtOf({ settlement, ended }: Sending): SendingInDoubt['decideDoubt'] {
  const { proven, byWord, inDoubt } = totalsOf(settlement)
  if (ended?.inDoubt === undefined || inDoubt > 0n) return undefined
  const { decidedBy } = ended.inDoubt
  const { sentAmount, deliveredAmount } = totalsAt(ended, proven + byWord)
  const over = debitedIn(ended) - BigInt(sentAmount.value)
  const refunded = over > 0n ? least(over, BigInt(ended.inDoubt.amount.value)) : 0n
  const delivered = least(BigInt(deliveredAmount.value), BigInt(ended.deliveredAmount.value))
  return {
    refunded: { ...ended.debitAmount, value: `${refunded}` },
    deliveredAmount: { ...deliveredAmount, value: `${delivered}` },
    ...(decidedBy !== undefined && { decidedBy }),
  }
}
