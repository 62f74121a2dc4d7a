import { randomUUID } from 'node:crypto'
import { type PayOverIlpOptions, payOverIlp } from 'open-payments-ilp'
import type {
  Amount,
  EventHandler,
  OutgoingPaymentView,
  ResourceServices,
} from 'open-payments-server'
import { type PacketRecord, packetRecord, type UnknownPackets } from './packet-record.js'
import type { Sending } from './rail.js'
import { type Receivers, sameAsset } from './receivers.js'
import type { SendingBook } from './sending-book.js'

export interface SenderOptions {
  readonly resources: ResourceServices
  readonly receivers: Receivers
  readonly rail: Sending
  readonly book: SendingBook
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** Creates the event handler of a process. After `stopping` is aborted it sends no more packets. */
export type PaymentSender = (stopping: AbortSignal) => EventHandler

/** The maximum attempts while the other wallet or the peer does not respond: about 15 s in total. */
const attemptsMax = 5
/** The maximum attempts while the outcome of a packet may still become known: about half an hour in total. */
const pendingAttemptsMax = 12
/** Well below the lease of an event, after which another process may take over the payment. */
const attemptMs = 30_000

/**
 * Sends each outgoing payment to another wallet, in ILP packets, after the event of its creation. The event is
 * redelivered, also to another process, until the payment is over.
 *
 * A process that ends between two packets leaves its record behind, and the next process continues. A packet without a
 * reply counts as sent, because the receiver may have it. If all nodes count a packet once, it is repeated until its
 * outcome is known. Otherwise, the remainder is sent without it, and the receiver tells whether it has arrived.
 */
export function paymentSender(options: SenderOptions): PaymentSender {
  const { outgoingPayments } = options.resources
  return (stopping) => async (event, delivery) => {
    if (event.type !== 'outgoing-payment.created') return
    const id = event.outgoingPaymentId
    const begun = await outgoingPayments.begin(id)
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    const payment = begun.ok ? begun.payment : await outgoingPayments.get(id)
    if (payment !== undefined) await send(options, payment, delivery, stopping)
  }
}

async function send(
  options: SenderOptions,
  payment: OutgoingPaymentView,
  delivery: Parameters<EventHandler>[1],
  stopping: AbortSignal,
): Promise<void> {
  const { rail, book, now = () => Date.now() } = options
  const { paymentId, debitAmount } = payment
  const writer = randomUUID()
  const progress = await book.take(paymentId, writer)
  const record = packetRecord({
    send: rail.from(debitAmount),
    probe: rail.probesFrom(debitAmount),
    countsRepeats: rail.countsRepeats,
    book,
    paymentId,
    writer,
    progress,
    now,
  })
  const attempt = { payment, writer, record }
  const later = (problem: string) => new Error(`${paymentId}: ${problem}`)
  const lastAttempt = delivery.attempt >= attemptsMax
  const lastAttemptToKnow = delivery.attempt >= pendingAttemptsMax

  await record.repeatPending()
  if ((await record.unknown()).mayRepeat && !lastAttemptToKnow) throw later(unknownOutcome)
  const problem = await sendRemainder(options, attempt, delivery.signal, stopping)
  if (problem?.isTemporary && (!lastAttempt || stopping.aborted)) throw later(problem.reason)

  const unknown = await record.unknown()
  const arrived = await arrivedOf(options, attempt, unknown)
  const mayArrive = arrived.value < arrivingOf(payment, unknown) && !unknown.haveExpired
  if ((mayArrive || arrived.isTemporary) && !lastAttemptToKnow) throw later(unknownOutcome)
  await end(options, attempt, arrived.value, problem?.reason)
}

const unknownOutcome = 'the outcome of a packet is unknown'

interface Attempt {
  readonly payment: OutgoingPaymentView
  /** Identifies the writer of the payment's record. */
  readonly writer: string
  readonly record: PacketRecord
}

/** Why a payment did not arrive, or not yet. */
interface Problem {
  readonly reason: string
  readonly isTemporary: boolean
}

/** Sends what was not sent yet, if the receiver still accepts it. */
async function sendRemainder(
  options: SenderOptions,
  attempt: Attempt,
  ended: AbortSignal,
  stopping: AbortSignal,
): Promise<Problem | undefined> {
  const { payment, record } = attempt
  const { debitAmount, receiveAmount } = payment
  const [{ sent, delivered }, unknown] = [record.progress(), await record.unknown()]
  const remainder = BigInt(receiveAmount.value) - delivered - arrivingOf(payment, unknown)
  const maxSourceAmount = mostSent(debitAmount, receiveAmount) - sent - unknown.sent
  if (remainder <= 0n || maxSourceAmount <= 0n) return undefined
  const final = (reason: string): Problem => ({ reason, isTemporary: false })
  const found = await options.receivers(payment.receiver)
  if (!found.ok) return { reason: found.reason, isTemporary: found.temporary ?? false }
  const { asset, ilp, wanted, receivedAmount } = found.receiver
  if (ilp === undefined || !sameAsset(asset, receiveAmount)) {
    return final('the asset of the receiver has changed')
  }
  if (wanted !== undefined && BigInt(wanted.value) < remainder) {
    return final('the receiver does not accept that much')
  }
  record.startFrom(BigInt(receivedAmount.value))
  const until = performance.now() + attemptMs
  const signal = {
    get aborted() {
      return stopping.aborted || ended.aborted || performance.now() >= until
    },
  }
  const rate = options.rail.rateOf(debitAmount, receiveAmount)
  const reason = await sendPackets(options, attempt, {
    receiver: { ...ilp, asset },
    amount: { deliver: remainder },
    maxSourceAmount,
    ...(rate && { rate }),
    signal,
  })
  return reason === undefined ? undefined : { reason, isTemporary: true }
}

/** Sends packets. Resolves to why the amount did not arrive, or to `undefined`. */
async function sendPackets(
  { resources }: SenderOptions,
  { payment, record }: Attempt,
  order: Omit<PayOverIlpOptions, 'send'>,
): Promise<string | undefined> {
  let reporting: Promise<void> | undefined
  async function show(): Promise<void> {
    const totals = totalsOf(payment, record.progress().delivered)
    // What clients read may lag behind: the report at the end counts.
    await resources.outgoingPayments.reportSent(payment.paymentId, totals).catch(() => {})
    reporting = undefined
  }
  const result = await payOverIlp({
    ...order,
    send: record.sendTo(order.receiver.sharedSecret),
    onProgress() {
      reporting ??= show()
    },
  })
  await reporting
  await record.close()
  return result.ok ? undefined : result.problem
}

/** Returns what packets deliver if they arrive, at least. In the same asset, that is what was sent. */
function arrivingOf(
  { debitAmount, receiveAmount }: OutgoingPaymentView,
  { sent, asked }: UnknownPackets,
): bigint {
  return sameAsset(debitAmount, receiveAmount) ? sent : asked
}

/** Returns how much of the packets whose outcome is unknown has arrived, as the receiver tells. */
async function arrivedOf(
  { receivers }: SenderOptions,
  { payment, record }: Attempt,
  unknown: UnknownPackets,
): Promise<{ readonly value: bigint; readonly isTemporary: boolean }> {
  const { delivered, receivedBefore } = record.progress()
  const none = { value: 0n, isTemporary: false }
  if (unknown.sent === 0n || receivedBefore === undefined) return none
  const found = await receivers(payment.receiver)
  const { receivedAmount } = found.ok ? found.receiver : found
  if (receivedAmount === undefined) return { ...none, isTemporary: !found.ok && !!found.temporary }
  if (!sameAsset(receivedAmount, payment.receiveAmount)) return none
  // At most the packets, because others may pay it, too.
  const more = BigInt(receivedAmount.value) - receivedBefore - delivered
  return more <= 0n ? none : { ...none, value: least(more, arrivingOf(payment, unknown)) }
}

/**
 * Returns what the packets of a payment may cost. A packet that is exchanged loses up to one unit, and the rate can
 * change after the quote. The wallet bears up to 1 % of that slippage; beyond, the payment waits and then fails with
 * what has arrived. The payer never pays more than the quoted price for it.
 */
function mostSent(debitAmount: Amount, receiveAmount: Amount): bigint {
  const debited = BigInt(debitAmount.value)
  return sameAsset(debitAmount, receiveAmount) ? debited : dividedUp(debited * 101n, 100n)
}

/** Reports the outcome of a payment, and removes its record. */
async function end(
  { resources, book }: SenderOptions,
  { payment, writer, record }: Attempt,
  arrived: bigint,
  problem = unknownOutcome,
): Promise<void> {
  const { outgoingPayments } = resources
  const { paymentId, debitAmount, receiveAmount } = payment
  const unknown = (await record.unknown()).sent
  const totals = totalsOf(payment, record.progress().delivered, { arrived, sent: unknown })
  const { sentAmount, deliveredAmount } = totals
  const ended =
    deliveredAmount.value === receiveAmount.value || sentAmount.value === debitAmount.value
      ? await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
      : await outgoingPayments.fail(paymentId, { ...totals, reason: problem })
  if (!ended.ok && ended.refusal !== 'payment_over')
    throw new Error(`${paymentId}: ${ended.reason}`)
  await book.forget(paymentId, writer)
}

/**
 * Returns what the payer is debited for what was delivered, at the quoted price: the wallet keeps any difference to the
 * packets' cost. Packets whose outcome is unknown are debited in full.
 */
function totalsOf(
  { debitAmount, receiveAmount }: OutgoingPaymentView,
  delivered: bigint,
  unknown = { arrived: 0n, sent: 0n },
) {
  const [most, asked] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
  const priceOf = (amount: bigint) => dividedUp(most * least(amount, asked), asked)
  const all = least(delivered + unknown.arrived, asked)
  const debited = greatest(priceOf(delivered) + unknown.sent, priceOf(all))
  return {
    sentAmount: valued(least(debited, most), debitAmount),
    deliveredAmount: valued(all, receiveAmount),
  }
}

function valued(value: bigint, { assetCode, assetScale }: Amount): Amount {
  return { value: `${value}`, assetCode, assetScale }
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function greatest(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** Divides and rounds up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
