import type { EventHandler } from 'open-payments-server'
import type { SettlementTotals } from 'open-payments-server/attempts'
import { decided, noteReceived, open, remainderOf, sendRemainder } from './sending-attempt.js'
import type { Sending } from './sending-book.js'
import { decideSending, type SendingDecided, type SendingDecision } from './sending-decision.js'
import { end, listedIn, review, type SendingInDoubt, takenOver } from './sending-end.js'
import type { PaymentSenderOptions, Sender } from './sending-options.js'

/** Sends the outgoing payments of a wallet over Interledger. */
export interface PaymentSender {
  /**
   * Returns the event handler of a process, which sends each outgoing payment after the event of its creation. Until
   * the payment is over, it resolves to when to deliver the event again, also to another process, which counts no
   * failure. After `stopping` is aborted it sends no more packets.
   */
  handler(stopping: AbortSignal): EventHandler
  /** Returns all payments with something that is not proven, for a `for await` loop. */
  inDoubt(): AsyncIterable<SendingInDoubt>
  /**
   * Decides, by an operator who knows, what became of packets of a payment that has ended, in the record of the payment
   * and in the book. The refund of what never arrived is yours: it is listed as `decideDoubt` or `mismatch`.
   */
  decide(paymentId: string, decision: SendingDecision): Promise<SendingDecided>
}

/** How long a payment waits for another wallet, or a peer, that does not respond. */
const awayMs = 120_000
/** How long a payment waits for what became of a packet, before it ends with a doubt. */
const unknownMs = 1_800_000
/** How often it tries at least, however late its event is delivered. */
const triesMin = 5

type Delivery = Parameters<EventHandler>[1]

/**
 * Sends outgoing payments to other wallets in ILP packets, each recorded before it leaves. What became of a packet
 * without a reply is decided by the peer, which closes it, or by what the receiver has received, read after the packet
 * has expired. Only what did not arrive is sent again, in packets with new conditions.
 *
 * @example
 * ```ts
 * import { type PaymentSenderOptions, paymentSender } from 'open-payments-ilp'
 * import { consumeEvents } from 'open-payments-server'
 *
 * function start(options: PaymentSenderOptions, stopping: AbortSignal) {
 *   return consumeEvents([wallet.resources.events], paymentSender(options).handler(stopping))
 * }
 * ```
 */
export function paymentSender(options: PaymentSenderOptions): PaymentSender {
  const { outgoingPayments, sendings, now = () => Date.now() } = options
  // Databases take whole milliseconds.
  const sender: Sender = { ...options, now: () => Math.floor(now()) }
  return {
    handler: (stopping) => async (event, delivery) => {
      if (event.type !== 'outgoing-payment.created') return
      const id = event.outgoingPaymentId
      const begun = await outgoingPayments.begin(id)
      if (!begun.ok && begun.refusal === 'payment_over') return review(sender, id)
      if (!begun.ok && begun.refusal !== 'payment_begun') return
      const retryAt = await send(sender, id, delivery, stopping)
      return retryAt === undefined ? undefined : { retryAt }
    },
    inDoubt: () => listedIn(sendings),
    decide: (paymentId, decision) => decideSending(sender, paymentId, decision),
  }
}

const unknownOutcome = 'the outcome of a packet is unknown'
const nothingArrives = 'no packet gets through'

/** Sends a payment as far as it goes now. Resolves to when to go on, or to nothing if it is over. */
async function send(
  sender: Sender,
  paymentId: string,
  delivery: Delivery,
  stopping: AbortSignal,
): Promise<number | undefined> {
  const { outgoingPayments, sendings, now } = sender
  const writer = crypto.randomUUID()
  const recorded = await sendings.take(paymentId, writer)
  // Read after the record was taken: a process that had it before may have ended the payment, and forgotten it.
  const payment = await outgoingPayments.get(paymentId)
  if (payment?.status !== 'begun') return over(review(sender, paymentId))
  const opened = await open(sender, payment, writer, recorded)
  if (!opened.ok) {
    const { sending, problem } = opened
    const waiting = waitingSince(sending.waiting, now())
    if (!problem.isTemporary || isGivenUp(waiting, awayMs, sender, stopping)) {
      return over(end(sender, { payment, writer, sending }, problem.reason))
    }
    if (!(await sendings.write(paymentId, writer, { ...sending, waiting }, false))) {
      throw takenOver(paymentId)
    }
    return nextAt(waiting.since, now())
  }
  const { attempt } = opened
  const { record } = attempt
  await record.close()
  const { proven } = record.totals()
  for (;;) {
    const last = record.totals()
    const problem = await sendRemainder(sender, attempt, delivery.signal, stopping)
    const wasInDoubt = record.totals().inDoubt > 0n
    if (wasInDoubt) await record.close()
    const { isOpen, until } = await decided(sender, attempt)
    const { waiting: before } = record.totals().proven > proven ? {} : record.sending()
    const maxMs = isOpen ? unknownMs : awayMs
    // What did not arrive is sent again, in packets with new conditions.
    const isLeft = !isOpen && wasInDoubt && remainderOf(payment, record) > 0n
    const again = problem === undefined && isLeft
    // While a peer closes each packet and fulfills none, a payment would send all that it may have, without a pause.
    const isInVain = again && last.inDoubt === 0n && knownIn(record.totals()) === knownIn(last)
    const mayWait = isOpen || isInVain || problem?.isTemporary
    const waiting = mayWait ? waitingSince(before, now()) : undefined
    await record.wait(waiting)
    if (waiting !== undefined && !isGivenUp(waiting, maxMs, sender, stopping)) {
      return nextAt(waiting.since, now(), until)
    }
    if (again && !isInVain) continue
    await noteReceived(sender, attempt)
    const sending = await record.ended()
    const reason = problem?.reason ?? (isInVain ? nothingArrives : unknownOutcome)
    return over(end(sender, { payment, writer, sending }, reason))
  }
}

function knownIn({ proven, byWord }: SettlementTotals): bigint {
  return proven + byWord
}

async function over(ended: Promise<void>): Promise<undefined> {
  await ended
}

type Waiting = NonNullable<Sending['waiting']>

function waitingSince(before: Sending['waiting'], now: number): Waiting {
  return { since: before?.since ?? now, tries: (before?.tries ?? 0) + 1 }
}

/** A process that is stopping gives up nothing, nor does one that comes late before it has tried as often. */
function isGivenUp(
  { since, tries }: Waiting,
  ms: number,
  { now }: Sender,
  stopping: AbortSignal,
): boolean {
  return !stopping.aborted && tries >= triesMin && now() - since >= ms
}

const [waitMinMs, waitMaxMs] = [1_000, 300_000]

/** Returns when to go on: each wait is as long as all before, and none goes beyond the instant that decides. */
function nextAt(since: number, now: number, until?: number): number {
  const wait = Math.min(Math.max(now - since, waitMinMs), waitMaxMs)
  const next = now + wait
  return Math.ceil(until !== undefined && until > now ? Math.min(next, until) : next)
}
