import { randomUUID } from 'node:crypto'
import type { Amount, EventHandler, OutgoingPayment, ResourceServices } from 'open-payments-server'
import { readPrepare } from '../ilp/packet.js'
import { type PayOverIlpOptions, payOverIlp } from '../ilp/sender.js'
import { type PacketRecord, packetRecord } from './packet-record.js'
import type { Rail } from './rail.js'
import { applyReport } from './rail-reports.js'
import { type Receivers, sameAsset } from './receivers.js'
import type { SendingBook } from './sending-book.js'

export interface SenderOptions {
  readonly resources: ResourceServices
  readonly receivers: Receivers
  readonly rail: Pick<Rail, 'from'>
  readonly book: SendingBook
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** Creates the event handler of a process. After `stopping` is aborted it sends no more packets. */
export type PaymentSender = (stopping: AbortSignal) => EventHandler

/** The maximum attempts while the other wallet or the peer does not respond: about 15 s in total. */
const attemptsMax = 5
/** The maximum attempts while the outcome of a packet is unknown: about half an hour in total. */
const pendingAttemptsMax = 12
/** Well below the lease of an event, after which another process may take over the payment. */
const attemptMs = 30_000

/**
 * Sends each outgoing payment after the event of its creation: within this wallet with `applyReport`, to
 * another wallet in ILP packets. The event is redelivered, also to another process, until the payment is
 * over.
 *
 * A process that ends between two packets leaves its record behind. The next process first repeats the packets whose
 * outcome is unknown, which are counted once, and then sends the remainder. Only if their outcome stays unknown, it ends
 * the payment and counts them as sent: the payer may be debited for a packet that did not arrive, and the receiver is
 * never paid twice.
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
  const { rail, book, receivers } = options
  const { id: paymentId } = payment
  const writer = randomUUID()
  const progress = await book.take(paymentId, writer)
  const send = rail.from(payment.debitAmount)
  const { now = Date.now } = options
  const record = packetRecord({ send, book, paymentId, writer, progress, now })
  const attempt = { payment, writer, record }

  await record.repeatPending()
  const known = () => record.progress().pending.length === 0
  if (!known()) {
    const problem = 'the outcome of a packet is unknown'
    if (delivery.attempt < pendingAttemptsMax) throw new Error(`${paymentId}: ${problem}`)
    return end(options, attempt, problem)
  }
  if (record.progress().delivered >= BigInt(payment.receiveAmount.value)) {
    return end(options, attempt)
  }
  const found = await receivers(payment.receiver)
  const lastAttempt = delivery.attempt >= attemptsMax
  if (!found.ok) {
    if (found.temporary && !lastAttempt) throw new Error(`${paymentId}: ${found.reason}`)
    return end(options, attempt, found.reason)
  }
  const { asset, ilp } = found.receiver
  if (ilp === undefined || !sameAsset(asset, payment.receiveAmount)) {
    return end(options, attempt, 'the asset of the receiver has changed')
  }
  const until = performance.now() + attemptMs
  const signal = {
    get aborted() {
      return stopping.aborted || delivery.signal.aborted || performance.now() >= until
    },
  }
  const problem = await sendPackets(options, attempt, { ...ilp, asset }, signal)
  const isOver = problem === undefined || (lastAttempt && known())
  if (!isOver) throw new Error(`${paymentId}: ${problem}`)
  return end(options, attempt, problem)
}

interface Attempt {
  readonly payment: OutgoingPayment
  /** Identifies the writer of the payment's record. */
  readonly writer: string
  readonly record: PacketRecord
}

/** Sends the remainder of a payment. Resolves to why it did not arrive, or to `undefined`. */
async function sendPackets(
  { resources }: SenderOptions,
  { payment, record }: Attempt,
  receiver: PayOverIlpOptions['receiver'],
  signal: Pick<AbortSignal, 'aborted'>,
): Promise<string | undefined> {
  const { id, debitAmount, receiveAmount } = payment
  const before = record.progress()
  let reporting: Promise<void> | undefined
  async function show(): Promise<void> {
    const { delivered } = record.progress()
    // What clients read may lag behind: the report at the end counts.
    await resources.outgoingPayments.reportSent(id, totalsOf(payment, delivered)).catch(() => {})
    reporting = undefined
  }
  const result = await payOverIlp({
    send: record.sendTo(receiver.sharedSecret),
    receiver,
    amount: { deliver: BigInt(receiveAmount.value) - before.delivered },
    maxSourceAmount: mostSent(debitAmount, receiveAmount) - before.sent,
    signal,
    onProgress() {
      reporting ??= show()
    },
  })
  await reporting
  await record.close()
  return result.ok ? undefined : result.problem
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
  problem?: string,
): Promise<void> {
  const { outgoingPayments } = resources
  const { id: paymentId, debitAmount, receiveAmount } = payment
  const { delivered, pending } = record.progress()
  const open = pending.reduce((sum, { packet }) => {
    const prepare = readPrepare(Buffer.from(packet, 'base64'))
    return sum + BigInt(prepare?.amount ?? 0)
  }, 0n)
  const totals = totalsOf(payment, delivered, open)
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
