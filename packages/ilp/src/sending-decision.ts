import type { HostResult, OutgoingPaymentView, ResourceServices } from 'open-payments-server'
import { decideAttempt, recordReply, type Settlement } from 'open-payments-server/attempts'
import { type PacketBook, recoverAfterMs } from './book.js'
import { aligned } from './packet-record.js'
import type { Sending, SendingBook } from './sending-book.js'
import {
  compared,
  doubtIn,
  doubtOf,
  doubtsIn,
  explainedIn,
  isListed,
  mismatchIn,
  repeatedIn,
  type SendingInDoubt,
  withEnd,
} from './sending-end.js'
import { type Statement, statedFor } from './statement.js'

/**
 * What an operator, or the statement of the peer, decides about the packets of a payment that has ended.
 *
 * - `arrived`, `never`: all packets that nobody knows about, or if there is none, what is known by the word of the
 *   receiver or the peer alone, whose amounts `arrived` confirms.
 *   A packet that was denied, and is decided by its `reference` to have arrived, is listed as `excess`: another packet
 *   may have brought its amount again.
 *   If less is due now than the payer was debited, that is listed as `mismatch`, and what the payment has in doubt as
 *   `decideDoubt`.
 * - `corrected`: the payer's account has what is due for what has arrived, and the peers agree on what was repeated, so
 *   neither `mismatch` nor `excess` nor `repeated` is listed any more, nor `decideDoubt` once that was called.
 */
export type SendingDecision =
  | {
      readonly what: 'arrived' | 'never' | 'corrected'
      /** The operator, for the record: at most 64 characters. */
      readonly who: string
      /** The packet that is decided, by its condition: `arrived` or `never` as a whole. */
      readonly reference?: string
    }
  /**
   * All packets in the period of the statement that expired a minute ago or earlier: those that the peer proves
   * arrived, what it does not have never.
   */
  | {
      readonly what: 'stated'
      readonly who: string
      /** The ILP address of the peer that stated it, as in the book. */
      readonly peer: string
      readonly statement: Statement
    }

/** The result of a decision: what an operator should still know about the payment, if anything. */
export type SendingDecided = HostResult<{ readonly left?: SendingInDoubt }, SendingRefusal>

/** Why a decision is refused. Minor versions add members: give a `switch` a `default`. */
export type SendingRefusal =
  /** It is still sent, and decides its packets itself. */
  | 'payment_not_ended'
  /** No packets of it are recorded: it is unknown, or nothing in it is in doubt. */
  | 'payment_unknown'
  /** Another operator decides at the same time. */
  | 'payment_taken_over'
  | 'nothing_in_doubt'
  | 'attempt_unknown'
  | 'attempt_decided'
  /** The payment is still in doubt: call `outgoingPayments.decideDoubt` with what is listed. */
  | 'payment_in_doubt'
  /** The statement is of a peer over which the payment was not sent. */
  | 'other_peer'

interface Ports {
  readonly outgoingPayments: Pick<ResourceServices['outgoingPayments'], 'get'>
  readonly sendings: SendingBook
  readonly book: PacketBook
  readonly now: () => number
}

const whoMax = 64

/**
 * Decides in the record of a payment first, which has one writer and keeps the decision, and then in the book of the
 * peer. A decision that was interrupted between the two stays listed, and its repeat completes it.
 */
export async function decideSending(
  ports: Ports,
  paymentId: string,
  decision: SendingDecision,
): Promise<SendingDecided> {
  const { outgoingPayments, sendings, book, now } = ports
  const payment = await outgoingPayments.get(paymentId)
  if (payment?.status === 'created' || payment?.status === 'begun') {
    return refused('payment_not_ended', 'the payment is still sent')
  }
  const writer = crypto.randomUUID()
  const sending = await sendings.take(paymentId, writer)
  const peer = sending?.route?.peer
  if (sending === undefined) {
    await sendings.forget(paymentId, writer)
    return refused('payment_unknown', `no packets of ${paymentId} are recorded`)
  }
  const overtaken = refused('payment_taken_over', `another decision about ${paymentId} is made`)
  const decided = await decidedIn(ports, sending, decision, payment)
  if (!decided.ok && decided.refusal !== 'nothing_in_doubt') return decided
  let next = compared(decided.ok ? withOthers(sending, decided.sending) : sending, payment)
  if (!(await sendings.write(paymentId, writer, next, true))) return overtaken
  if (peer !== undefined) {
    next = { ...next, settlement: await aligned(book, peer, next.settlement, now()) }
  }
  next = compared(next, payment)
  if (!isListed(next)) await sendings.forget(paymentId, writer)
  else if (!(await sendings.write(paymentId, writer, next, true))) return overtaken
  if (!decided.ok) return decided
  const { changed } = decided
  return { ok: true, changed, ...(isListed(next) && { left: doubtIn(paymentId, next) }) }
}

/** What a packet did not bring after all, others have paid: the receiver has it, and nothing was repeated. */
function withOthers({ settlement, received }: Sending, next: Sending): Sending {
  const less = explainedIn(settlement) - explainedIn(next.settlement)
  if (received === undefined || next.received === undefined || less <= 0n) return next
  return { ...next, received: `${BigInt(received) - less}` }
}

async function decidedIn(
  ports: Ports,
  sending: Sending,
  decision: SendingDecision,
  payment: OutgoingPaymentView | undefined,
) {
  const who = decision.who.replace(/[\p{Cc}"\\]/gu, ' ').slice(0, whoMax)
  switch (decision.what) {
    case 'corrected':
      return corrected(sending, payment, { by: 'operator', who }, ports.now())
    case 'stated':
      return stated(ports, sending, { who, peer: decision.peer, statement: decision.statement })
    default: {
      const { what, reference } = decision
      return byOperator(sending, what, { by: 'operator', who }, reference, ports.now())
    }
  }
}

/** Decides what is listed by the statement of the peer. What is in doubt there too is not decided. */
async function stated(
  { book, now }: Ports,
  sending: Sending,
  { who, peer, statement }: Readonly<{ who: string; peer: string; statement: Statement }>,
) {
  const { route, settlement } = sending
  if (route?.peer !== peer) return refused('other_peer', `the payment was not sent over ${peer}`)
  // What has expired just now may still be credited there, whatever the statement says of its end.
  const to = Math.min(statement.to, now() - recoverAfterMs)
  const listed = new Set(doubtsIn(settlement).map(({ reference }) => reference))
  const never: string[] = []
  let next = settlement
  for (const { reference, amount, notAfter = 0 } of settlement.attempts) {
    const isStated = notAfter >= statement.from && notAfter < to
    if (!listed.has(reference) || !isStated) continue
    const key = { peer, direction: 'out', condition: reference } as const
    const there = statedFor(statement, key)
    if (there?.fulfillment !== undefined) {
      const { fulfillment: proof } = there
      await book.decide(key, 'fulfilled', { fulfillment: proof })
      next = decisionOr(next, recordReply(next, reference, proven(amount, proof), now()))
    } else if (there === undefined) never.push(reference)
  }
  // A proof first takes what the receiver's sum has given to another packet of the same decision.
  for (const reference of never) {
    const by = { by: 'operator', who } as const
    next = decisionOr(next, decideAttempt(next, reference, 'never', by, now()))
  }
  if (next === settlement) return refused('nothing_in_doubt', 'the statement decides nothing more')
  return { ok: true, changed: true, sending: { ...sending, settlement: next } } as const
}

function proven(amount: string, proof: string) {
  return { outcome: 'proven', arrived: BigInt(amount), proof } as const
}

type Decided = ReturnType<typeof recordReply> | ReturnType<typeof decideAttempt>

const decisionOr = (before: Settlement, decided: Decided) => (decided.ok ? decided.record : before)

function refused<Refusal extends string>(refusal: Refusal, reason: string) {
  return { ok: false, refusal, reason } as const
}

interface Operator {
  readonly by: 'operator'
  readonly who: string
}

/** Decides one packet, or all that nobody knows about, or if there is none, all that is known by word alone. */
function byOperator(
  sending: Sending,
  what: 'arrived' | 'never',
  operator: Operator,
  reference: string | undefined,
  now: number,
) {
  const doubts = doubtsIn(sending.settlement)
  const open = doubts.filter(({ kind }) => kind === 'in_doubt')
  const byWord = doubts.filter(({ kind }) => kind === 'by_word' || kind === 'denied')
  const isOpen = reference !== undefined || open.length > 0
  const chosen = (open.length > 0 ? open : byWord).map((each) => each.reference)
  const references = reference === undefined ? new Set(chosen) : [reference]
  let settlement = sending.settlement
  for (const each of references) {
    const decision = what === 'arrived' && !isOpen ? 'confirmed' : what
    const decided = decideAttempt(settlement, each, decision, operator, now)
    if (decided.ok) settlement = decided.record
    // Only a packet that nobody knows about cannot be confirmed, and none is.
    else if (decided.refusal !== 'attempt_open') return refused(decided.refusal, decided.reason)
  }
  if (reference === undefined && chosen.length === 0) {
    return refused('nothing_in_doubt', 'no packet of the payment is in doubt')
  }
  const changed = settlement !== sending.settlement
  return { ok: true, changed, sending: { ...sending, settlement } } as const
}

function corrected(
  sending: Sending,
  payment: OutgoingPaymentView | undefined,
  operator: Operator,
  now: number,
) {
  const isPending = doubtOf(sending) !== undefined
  if (isPending && payment?.inDoubt !== undefined) {
    return refused('payment_in_doubt', 'decideDoubt was not called for the payment')
  }
  const { received: _received, ...ended } = withEnd(sending, payment)
  const next = { ...ended, settlement: withoutExcess(sending.settlement, operator, now) }
  const isDue = mismatchIn(sending) !== undefined || next.settlement !== sending.settlement
  if (!isPending && !isDue && repeatedIn(sending) === 0n) {
    return refused('nothing_in_doubt', 'nothing of the payment was to be corrected')
  }
  return { ok: true, changed: true, sending: isDue ? withCorrection(next) : next } as const
}

/** The payer's account has what is due, or somebody bears the difference. */
function withCorrection(sending: Sending): Sending {
  const { ended } = sending
  const { debited, due } = mismatchIn(sending) ?? {}
  if (ended === undefined || debited === undefined || due === undefined) return sending
  const more = BigInt(due.value) - BigInt(debited.value)
  return { ...sending, ended: { ...ended, corrected: `${BigInt(ended.corrected ?? 0) + more}` } }
}

function withoutExcess(settlement: Settlement, operator: Operator, now: number): Settlement {
  let next = settlement
  for (const { kind, reference } of doubtsIn(settlement)) {
    if (kind !== 'excess') continue
    next = decisionOr(next, decideAttempt(next, reference, 'corrected', operator, now))
  }
  return next
}
