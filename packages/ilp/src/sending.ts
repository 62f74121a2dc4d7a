import type {
  Amount,
  Asset,
  EventHandler,
  IlpPaymentMethod,
  OutgoingPaymentView,
  ResourceServices,
} from 'open-payments-server'
import { openSettlement } from 'open-payments-server/attempts'
import { sameAsset } from './address.js'
import type { PacketBook } from './book.js'
import { type PacketRecord, packetRecord } from './packet-record.js'
import type { Peer, Rail, RateOf } from './rail.js'
import { convertedUp, dividedUp } from './rates.js'
import { payOverIlp } from './sender.js'
import type { Route, Sending, SendingBook } from './sending-book.js'
import { decideSending, type SendingDecided, type SendingDecision } from './sending-decision.js'
import { doubtIn, end, review, type SendingInDoubt, takenOver, totalsFor } from './sending-end.js'

/** An incoming payment in another wallet, as its resource server returns it. */
export interface Receiver {
  readonly asset: Asset
  readonly receivedAmount: Amount
  /** The amount that is still missing, if the payment has an amount. */
  readonly wanted?: Amount
  /** How to pay it over Interledger. Absent if it cannot be paid so. */
  readonly ilp?: Pick<IlpPaymentMethod, 'ilpAddress' | 'sharedSecret'>
}

/**
 * Reads the receiver of a payment at its wallet. With `temporary`, the wallet may respond later; without, the receiver
 * will never accept money. `receivedAmount`: what it has received, if that could be read.
 */
export type Receivers = (url: string) => Promise<
  | { readonly ok: true; readonly receiver: Receiver }
  | {
      readonly ok: false
      readonly reason: string
      readonly temporary?: true
      readonly receivedAmount?: Amount
    }
>

export interface PaymentSenderOptions {
  readonly rail: Pick<Rail, 'peerFor'>
  readonly rateOf: RateOf
  readonly book: PacketBook
  readonly sendings: SendingBook
  readonly outgoingPayments: Pick<
    ResourceServices['outgoingPayments'],
    'begin' | 'get' | 'reportSent' | 'fail'
  >
  readonly receivers: Receivers
  /**
   * The most that the receiver of a payment may deny, in its asset, before nothing more is sent to it. A receiver that
   * withholds replies and understates what it has received takes this much, and one window of packets. Default: what
   * the payment delivers.
   */
  readonly trustMax?: (payment: OutgoingPaymentView) => bigint
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number
}

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
   * and in the book. The refund of what never arrived is yours: see `outgoingPayments.decideDoubt`.
   */
  decide(paymentId: string, decision: SendingDecision): Promise<SendingDecided>
}

/** How long a payment waits for another wallet, or a peer, that does not respond. */
const awayMs = 120_000
/** How long a payment waits for what became of a packet, before it ends with a doubt. */
const unknownMs = 1_800_000
/** How often it tries at least, however late its event is delivered. */
const triesMin = 5
/** Well below the lease of an event, after which another process may take over the payment. */
const attemptMs = 30_000

type Delivery = Parameters<EventHandler>[1]

/** Why a payment did not arrive, or not yet. */
interface Problem {
  readonly reason: string
  readonly isTemporary: boolean
}

/** A payment in the process that sends it now. */
interface Attempt {
  readonly payment: OutgoingPaymentView
  readonly record: PacketRecord
  readonly peer: Peer
  readonly route: Route
}

type Sender = PaymentSenderOptions & { readonly now: () => number }

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
  const sender: Sender = { now: () => Date.now(), ...options }
  const { outgoingPayments, sendings } = options
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
    async *inDoubt() {
      let after: string | undefined
      do {
        const page = await sendings.listed(after)
        for (const { paymentId, sending } of page) yield doubtIn(paymentId, sending)
        after = page.at(-1)?.paymentId
      } while (after !== undefined)
    },
    decide: (paymentId, decision) => decideSending(sender, paymentId, decision),
  }
}

const unknownOutcome = 'the outcome of a packet is unknown'

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
    const problem = await sendRemainder(sender, attempt, delivery.signal, stopping)
    const wasInDoubt = record.totals().inDoubt > 0n
    if (wasInDoubt) await record.close()
    const { isOpen, until } = await decided(sender, attempt)
    const { waiting: before } = record.totals().proven > proven ? {} : record.sending()
    const maxMs = isOpen ? unknownMs : awayMs
    const waiting = isOpen || problem?.isTemporary ? waitingSince(before, now()) : undefined
    await record.wait(waiting)
    if (waiting !== undefined && !isGivenUp(waiting, maxMs, sender, stopping)) {
      return nextAt(waiting.since, now(), until)
    }
    // What did not arrive is sent again, in packets with new conditions.
    const again = !isOpen && wasInDoubt && remainderOf(payment, record) > 0n
    if (problem === undefined && again) continue
    const sending = record.sending()
    return over(end(sender, { payment, writer, sending }, problem?.reason ?? unknownOutcome))
  }
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

type Opened =
  | { readonly ok: true; readonly attempt: Attempt }
  | { readonly ok: false; readonly problem: Problem; readonly sending: Sending }

/** Continues with the record of a payment, or begins one: with the receiver's details, and what it had before. */
async function open(
  sender: Sender,
  payment: OutgoingPaymentView,
  writer: string,
  recorded: Sending | undefined,
): Promise<Opened> {
  const { sendings, rail, rateOf, book, now } = sender
  const { paymentId, receiveAmount } = payment
  const begun = recorded ?? newSending(payment, now())
  const closed = (problem: Problem): Opened => ({ ok: false, problem, sending: begun })
  const { stopped } = begun.settlement
  if (stopped !== undefined) return closed(final(stopped.reason))
  const found = await routed(sender, payment, begun)
  if (!found.ok) return closed(found.problem)
  const { sending, route } = found
  // Another peer knows nothing about the packets that this one got.
  const peer = rail.peerFor(route.peer)
  const rate = peer && rateOf(peer.asset, receiveAmount)
  if (peer?.ilpAddress !== route.peer || rate === undefined) {
    if (recorded?.route === undefined) return closed(final('no peer has a route to the receiver'))
    // Its packets may have arrived, so it cannot end as if nothing was sent.
    throw new Error(`${paymentId}: the peer of its packets, or the rate, is gone`)
  }
  const trustMax = sender.trustMax?.(payment) ?? BigInt(receiveAmount.value)
  const of = { paymentId, writer, sending, route, peer, rate, trustMax }
  const record = packetRecord({ book, sendings, now, ...of })
  return { ok: true, attempt: { payment, record, peer, route } }
}

function newSending({ receiveAmount, receiver }: OutgoingPaymentView, now: number): Sending {
  const amount = BigInt(receiveAmount.value)
  const settlement = openSettlement({ amount, now, otherSide: receiver })
  return { settlement, packets: {}, sent: '0' }
}

/** Returns where the packets of a payment go, and with the first of them, what the receiver had before. */
async function routed(
  { receivers, rail }: Sender,
  payment: OutgoingPaymentView,
  sending: Sending,
): Promise<
  | { readonly ok: true; readonly sending: Sending; readonly route: Route }
  | { readonly ok: false; readonly problem: Problem }
> {
  const failed = (problem: Problem) => ({ ok: false, problem }) as const
  if (sending.route !== undefined) return { ok: true, sending, route: sending.route }
  const found = await receivers(payment.receiver)
  if (!found.ok) return failed({ reason: found.reason, isTemporary: found.temporary ?? false })
  const { asset, ilp, receivedAmount } = found.receiver
  if (ilp === undefined || !sameAsset(asset, payment.receiveAmount))
    return failed(final(otherAsset))
  const { ilpAddress, sharedSecret } = ilp
  const peer = rail.peerFor(ilpAddress)
  if (peer === undefined) return failed(final('no peer has a route to the receiver'))
  const settlement = { ...sending.settlement, base: receivedAmount.value }
  const route = { peer: peer.ilpAddress, ilpAddress, sharedSecret }
  return { ok: true, sending: { ...sending, route, settlement }, route }
}

const final = (reason: string): Problem => ({ reason, isTemporary: false })
const otherAsset = 'the asset of the receiver has changed'

/** Asks the receiver about the packets without a reply, if there are any. */
async function decided(
  { receivers, now }: Sender,
  { payment, record }: Attempt,
): Promise<{ readonly isOpen: boolean; readonly until?: number }> {
  if (record.totals().inDoubt === 0n) return { isOpen: false }
  const askedAt = now()
  const found = await receivers(payment.receiver)
  const { receivedAmount } = found.ok ? found.receiver : found
  const isReadable =
    receivedAmount !== undefined && sameAsset(receivedAmount, payment.receiveAmount)
  const received = isReadable ? BigInt(receivedAmount.value) : 0n
  const evidence = { by: 'sum', askedAt, received } as const
  const { undecided, until } = await record.conclude(isReadable ? evidence : undefined)
  return { isOpen: undecided !== undefined, ...(until !== undefined && { until }) }
}

/** What is left to deliver if everything in doubt arrives. */
function remainderOf({ receiveAmount }: OutgoingPaymentView, record: PacketRecord): bigint {
  const { proven, byWord, inDoubt } = record.totals()
  return BigInt(receiveAmount.value) - proven - byWord - inDoubt
}

/** Sends what was not sent yet, if the receiver still accepts it. */
async function sendRemainder(
  sender: Sender,
  { payment, record, peer, route }: Attempt,
  ended: AbortSignal,
  stopping: AbortSignal,
): Promise<Problem | undefined> {
  const { rateOf, receivers } = sender
  const { receiveAmount } = payment
  const remainder = remainderOf(payment, record)
  const maxSourceAmount = mostSent(payment, peer.asset, rateOf) - record.spent()
  if (remainder <= 0n || maxSourceAmount <= 0n) return undefined
  const found = await receivers(payment.receiver)
  if (!found.ok) return { reason: found.reason, isTemporary: found.temporary ?? false }
  const { asset, ilp, wanted } = found.receiver
  if (ilp === undefined || !sameAsset(asset, receiveAmount)) {
    return final(otherAsset)
  }
  if (wanted !== undefined && BigInt(wanted.value) < remainder) {
    return final('the receiver does not accept that much')
  }
  const until = performance.now() + attemptMs
  const rate = rateOf(peer.asset, receiveAmount)
  const result = await payOverIlp({
    send: record.send,
    receiver: { ...route, asset },
    amount: { deliver: remainder },
    maxSourceAmount,
    ...(rate !== undefined && { rate }),
    signal: {
      get aborted() {
        return stopping.aborted || ended.aborted || performance.now() >= until
      },
    },
    onProgress: progressOf(sender, payment, record),
  })
  await record.written()
  return result.ok || record.totals().inDoubt > 0n
    ? undefined
    : { reason: `the packets did not arrive: ${result.problem}`, isTemporary: true }
}

/** Reports what is proven while the payment is sent, one report at a time. */
function progressOf(
  { outgoingPayments }: Sender,
  payment: OutgoingPaymentView,
  record: PacketRecord,
): () => void {
  let isReporting = false
  return () => {
    if (isReporting) return
    const totals = totalsFor(payment, record.totals().proven, 0n)
    // By rounding, a part can have the whole price. Its report would complete the payment.
    if (totals.sentAmount.value === payment.debitAmount.value) return
    isReporting = true
    outgoingPayments
      .reportSent(payment.paymentId, totals)
      // What clients read may lag behind: the report at the end counts.
      .catch(() => undefined)
      .finally(() => {
        isReporting = false
      })
  }
}

/**
 * Returns what the packets of a payment may cost, in the asset of the peer. The wallet bears up to 1 % of what rounding
 * and a rate that changes after the quote cost, unless nothing is exchanged. The payer never pays more than the quoted
 * price for what arrives.
 */
function mostSent(
  { debitAmount, receiveAmount }: OutgoingPaymentView,
  link: Asset,
  rateOf: RateOf,
): bigint {
  const rate = rateOf(debitAmount, link) ?? { numerator: 0n, denominator: 1n }
  const most = convertedUp(BigInt(debitAmount.value), rate)
  const isPar = [debitAmount, receiveAmount].every((each) => each.assetCode === link.assetCode)
  return isPar ? most : dividedUp(most * 101n, 100n)
}
