import { randomUUID } from 'node:crypto'
import type { Amount, EventHandler, OutgoingPayment, ResourceServices } from 'open-payments-server'
import { type PayOverIlpOptions, payOverIlp, type Sent } from '../ilp/sender.js'
import { packetRecord } from './packet-record.js'
import type { Rail } from './rail.js'
import { applyReport } from './rail-reports.js'
import { type Receivers, sameAsset } from './receivers.js'
import type { Progress, SendingBook } from './sending-book.js'

export interface SenderOptions {
  readonly resources: ResourceServices
  readonly receivers: Receivers
  readonly rail: Pick<Rail, 'from'>
  readonly book: SendingBook
}

/** Creates the event handler of a process. After `stopping` is aborted it sends no more packets. */
export type PaymentSender = (stopping: AbortSignal) => EventHandler

/** The maximum attempts while the other wallet or the peer does not respond: about 15 s in total. */
const attemptsMax = 5
/** Well below the lease of an event, after which another process may take over the payment. */
const attemptMs = 30_000

/**
 * Sends each outgoing payment after the event of its creation: within this wallet with `applyReport`, to
 * another wallet in ILP packets. The event is redelivered, also to another process, until the payment is
 * over.
 *
 * A process that ends between two packets leaves its record behind. If the record has the outcome of every
 * packet, the next process sends the remainder. Otherwise it sends nothing more: it counts packets without a
 * reply as sent and ends the payment. The receiver is therefore never paid twice, and the payer may be
 * debited for a packet that did not arrive; a real wallet asks its peer for the outcome.
 */
export function paymentSender(options: SenderOptions): PaymentSender {
  const { incomingPayments, outgoingPayments } = options.resources
  return (stopping) => async (event, delivery) => {
    if (event.type !== 'outgoing-payment.created') return
    const id = event.outgoingPaymentId
    const begun = await outgoingPayments.begin(id)
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    const payment = begun.ok ? begun.payment : await outgoingPayments.get(id)
    if (payment === undefined) return
    if (incomingPayments.idOf(payment.receiver) === undefined) {
      await sendToOtherWallet(options, payment, delivery, stopping)
      return
    }
    const applied = await applyReport(options.resources, id, undefined)
    if (applied?.ok === false && applied.refusal === 'transfer_mismatch') {
      throw new Error(`${id}: its transfer was already reported with another amount`)
    }
  }
}

async function sendToOtherWallet(
  options: SenderOptions,
  payment: OutgoingPayment,
  delivery: Parameters<EventHandler>[1],
  stopping: AbortSignal,
): Promise<void> {
  const { book, receivers } = options
  const attempt = { payment, writer: randomUUID() }
  const before = await book.take(payment.id, attempt.writer)
  if (before.left > before.sent) {
    return end(options, attempt, before, 'a packet was in flight when the process ended')
  }
  const found = await receivers(payment.receiver)
  const lastAttempt = delivery.attempt >= attemptsMax
  if (!found.ok) {
    if (found.temporary && !lastAttempt) throw new Error(`${payment.id}: ${found.reason}`)
    return end(options, attempt, before, found.reason)
  }
  const { asset, ilp } = found.receiver
  if (ilp === undefined || !sameAsset(asset, payment.receiveAmount)) {
    return end(options, attempt, before, 'the asset of the receiver has changed')
  }
  const until = performance.now() + attemptMs
  const signal = {
    get aborted() {
      return stopping.aborted || delivery.signal.aborted || performance.now() >= until
    },
  }
  const details = { ...ilp, asset }
  const { progress, problem } = await sendPackets(options, attempt, details, before, signal)
  // If the outcome of every packet is known, the remainder can be sent later.
  const resumable = progress.left === progress.sent && !lastAttempt
  if (problem !== undefined && resumable) throw new Error(`${payment.id}: ${problem}`)
  return end(options, attempt, progress, problem)
}

interface Attempt {
  readonly payment: OutgoingPayment
  /** Identifies the writer of the payment's record. */
  readonly writer: string
}

async function sendPackets(
  { resources, rail, book }: SenderOptions,
  { payment, writer }: Attempt,
  receiver: PayOverIlpOptions['receiver'],
  before: Progress,
  signal: Pick<AbortSignal, 'aborted'>,
): Promise<{ readonly progress: Progress; readonly problem?: string }> {
  const { id, debitAmount, receiveAmount } = payment
  const deliver = BigInt(receiveAmount.value) - before.delivered
  const maxSourceAmount = mostSent(debitAmount, receiveAmount) - before.sent
  if (deliver <= 0n) return { progress: before }
  const { sharedSecret } = receiver
  const send = rail.from(debitAmount)
  const record = packetRecord({ send, sharedSecret, book, paymentId: id, writer, progress: before })
  const acknowledge = ({ sent, delivered }: Sent) =>
    record.acknowledge({ sent: before.sent + sent, delivered: before.delivered + delivered })
  let reporting: Promise<void> | undefined
  async function show(delivered: bigint): Promise<void> {
    // What clients read may lag behind: the report at the end counts.
    await resources.outgoingPayments.reportSent(id, totalsOf(payment, delivered)).catch(() => {})
    reporting = undefined
  }
  const result = await payOverIlp({
    send: record.send,
    receiver,
    amount: { deliver },
    maxSourceAmount,
    signal,
    onProgress(progress) {
      acknowledge(progress)
      reporting ??= show(before.delivered + progress.delivered)
    },
  })
  acknowledge(result)
  await reporting
  const progress = await record.close()
  return result.ok ? { progress } : { progress, problem: result.problem }
}

/**
 * Returns what the packets of a payment may cost. A packet that is exchanged loses up to one unit, and the rate can
 * change after the quote: the wallet bears up to 1 %, and the payer never more than the quoted price.
 */
function mostSent(debitAmount: Amount, receiveAmount: Amount): bigint {
  const debited = BigInt(debitAmount.value)
  return sameAsset(debitAmount, receiveAmount) ? debited : dividedUp(debited * 101n, 100n)
}

/** Reports the outcome of a payment, and removes its record. */
async function end(
  { resources, book }: SenderOptions,
  { payment, writer }: Attempt,
  progress: Progress,
  problem?: string,
): Promise<void> {
  const { outgoingPayments } = resources
  const { id: paymentId, debitAmount, receiveAmount } = payment
  const totals = totalsOf(payment, progress.delivered, progress.left - progress.sent)
  const { sentAmount, deliveredAmount } = totals
  const ended =
    deliveredAmount.value === receiveAmount.value || sentAmount.value === debitAmount.value
      ? await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
      : await outgoingPayments.fail(paymentId, { ...totals, ...(problem && { reason: problem }) })
  if (!ended.ok && ended.refusal !== 'payment_over')
    throw new Error(`${paymentId}: ${ended.reason}`)
  await book.forget(paymentId, writer)
}

/**
 * Returns what the payer is debited for what was delivered, at the quoted price: the wallet keeps any difference to the
 * packets' cost. Packets without a reply count in full.
 */
function totalsOf({ debitAmount, receiveAmount }: OutgoingPayment, arrived: bigint, open = 0n) {
  const [most, asked] = [BigInt(debitAmount.value), BigInt(receiveAmount.value)]
  const delivered = least(arrived, asked)
  const debited = least(dividedUp(most * delivered, asked) + open, most)
  return {
    sentAmount: valued(debited, debitAmount),
    deliveredAmount: valued(delivered, receiveAmount),
  }
}

function valued(value: bigint, { assetCode, assetScale }: Amount): Amount {
  return { value: `${value}`, assetCode, assetScale }
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** Divides and rounds up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
