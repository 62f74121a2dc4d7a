import type {
  Amount,
  Asset,
  EventHandler,
  IlpPaymentMethod,
  OutgoingPaymentView,
  ResourceServices,
} from 'open-payments-server'
import { type Doubt, decideAttempt, doubtsOf, openSettlement } from 'open-payments-server/attempts'
import { sameAsset } from './address.js'
import type { PacketBook } from './book.js'
import { type PacketRecord, packetRecord } from './packet-record.js'
import type { Peer, Rail, Rate, RateOf } from './rail.js'
import { payOverIlp } from './sender.js'
import type { Sending, SendingBook } from './sending-book.js'

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

/** A payment with packets that are not known to have arrived or not, or only by the receiver's word. */
export interface SendingInDoubt {
  readonly paymentId: string
  readonly peer: string
  /** In the asset of the receiver, oldest first. The reference of each is the condition of the packet. */
  readonly doubts: readonly Doubt[]
  /** What the books of the two peers may differ by at most, in their asset. */
  readonly amount: bigint
}

export interface PaymentSender {
  /**
   * Returns the event handler of a process, which sends each outgoing payment after the event of its creation. The
   * event is redelivered, also to another process, until the payment is over. After `stopping` is aborted it sends no
   * more packets.
   */
  handler(stopping: AbortSignal): EventHandler
  /** Returns all payments with something that is not proven, for a `for await` loop. */
  inDoubt(): AsyncIterable<SendingInDoubt>
  /**
   * Decides, by an operator who knows, what became of all packets of a payment that has ended with something in doubt.
   * The refund of what never arrived is yours.
   *
   * @param who the operator, for the record.
   * @returns whether it was decided. A payment that has not ended is still sent, and decides them itself.
   */
  decide(paymentId: string, what: 'arrived' | 'never', who: string): Promise<boolean>
}

/** The maximum attempts while the other wallet or the peer does not respond: about 15 s in total. */
const attemptsMax = 5
/** The maximum attempts while the outcome of a packet may still become known: about half an hour in total. */
const pendingAttemptsMax = 12
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
  readonly writer: string
  readonly record: PacketRecord
  readonly peer: Peer
  readonly receiver: Sending['receiver']
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
  const { outgoingPayments, sendings, book, now = () => Date.now() } = options
  return {
    handler: (stopping) => async (event, delivery) => {
      if (event.type !== 'outgoing-payment.created') return
      const id = event.outgoingPaymentId
      const begun = await outgoingPayments.begin(id)
      if (!begun.ok && begun.refusal !== 'payment_begun') return
      const payment = begun.ok ? begun.payment : await outgoingPayments.get(id)
      if (payment !== undefined) await send(sender, payment, delivery, stopping)
    },
    async *inDoubt() {
      let after: string | undefined
      do {
        const page = await sendings.listed(after)
        for (const { paymentId, sending } of page) yield doubtIn(paymentId, sending)
        after = page.at(-1)?.paymentId
      } while (after !== undefined)
    },
    async decide(paymentId, what, who) {
      // Without its record, a payment that has not ended would be sent again from the beginning.
      const payment = await outgoingPayments.get(paymentId)
      if (payment?.status === 'created' || payment?.status === 'begun') return false
      const writer = crypto.randomUUID()
      const sending = await sendings.take(paymentId, writer)
      if (sending === undefined) return false
      let { settlement } = sending
      for (const { reference } of doubtsOf(settlement)) {
        const by = { by: 'operator', who } as const
        const decided = decideAttempt(settlement, reference, what, by, now())
        if (decided.ok) settlement = decided.record
        const decision = what === 'arrived' ? 'unproven' : 'released'
        await book.decide({ peer: sending.peer, direction: 'out', condition: reference }, decision)
      }
      // What arrived after a decision is known.
      const isDoubtful = doubtsOf(settlement).some(({ kind }) => kind !== 'excess')
      if (!(await sendings.write(paymentId, writer, { ...sending, settlement }, isDoubtful)))
        return false
      if (!isDoubtful) await sendings.forget(paymentId, writer)
      return true
    },
  }
}

function doubtIn(paymentId: string, { peer, settlement, packets }: Sending): SendingInDoubt {
  const doubts = doubtsOf(settlement)
  const references = new Set(doubts.map(({ reference }) => reference))
  const amounts = [...references].map((reference) => BigInt(packets[reference] ?? 0))
  return { paymentId, peer, doubts, amount: amounts.reduce((sum, each) => sum + each, 0n) }
}

const unknownOutcome = 'the outcome of a packet is unknown'

async function send(
  sender: Sender,
  payment: OutgoingPaymentView,
  delivery: Delivery,
  stopping: AbortSignal,
): Promise<void> {
  const { paymentId } = payment
  const later = (problem: string) => new Error(`${paymentId}: ${problem}`)
  const lastAttempt = delivery.attempt >= attemptsMax
  const lastAttemptToKnow = delivery.attempt >= pendingAttemptsMax
  const opened = await open(sender, payment)
  if (!opened.ok) {
    const { reason, isTemporary } = opened.problem
    if (isTemporary && (!lastAttempt || stopping.aborted)) throw later(reason)
    await end(sender, payment, undefined, reason)
    return sender.sendings.forget(paymentId, opened.writer)
  }
  const { attempt } = opened
  const { record } = attempt
  await record.close()
  for (;;) {
    const problem = await sendRemainder(sender, attempt, delivery.signal, stopping)
    const wasInDoubt = record.totals().inDoubt > 0n
    if (wasInDoubt) await record.close()
    const isOpen = record.totals().inDoubt > 0n && !(await decided(sender, attempt))
    if (problem?.isTemporary && (!lastAttempt || stopping.aborted)) throw later(problem.reason)
    if (isOpen && !lastAttemptToKnow) throw later(unknownOutcome)
    // What did not arrive is sent again, in packets with new conditions.
    const again = !isOpen && wasInDoubt && remainderOf(payment, record) > 0n
    if (problem !== undefined || !again) return end(sender, payment, attempt, problem?.reason)
  }
}

/** Takes the record of a payment, or begins one: with the receiver's details, and what it had received before. */
async function open(
  sender: Sender,
  payment: OutgoingPaymentView,
): Promise<
  | { readonly ok: true; readonly attempt: Attempt }
  | { readonly ok: false; readonly problem: Problem; readonly writer: string }
> {
  const { sendings, rail, receivers, rateOf, book, now } = sender
  const { paymentId, receiveAmount } = payment
  const writer = crypto.randomUUID()
  const final = (reason: string, isTemporary = false) =>
    ({ ok: false, problem: { reason, isTemporary }, writer }) as const
  const recorded = await sendings.take(paymentId, writer)
  let sending = recorded
  if (sending === undefined) {
    const found = await receivers(payment.receiver)
    if (!found.ok) return final(found.reason, found.temporary)
    const { asset, ilp, receivedAmount } = found.receiver
    if (ilp === undefined || !sameAsset(asset, receiveAmount)) {
      return final('the asset of the receiver has changed')
    }
    const { ilpAddress, sharedSecret } = ilp
    const peer = rail.peerFor(ilpAddress)
    if (peer === undefined) return final('no peer has a route to the receiver')
    // More than the payment delivers may arrive in all, by rounding: the rail itself limits what is sent.
    const amount = (BigInt(receiveAmount.value) * 102n) / 100n + 1_000n
    const settlement = openSettlement({ amount, now: now(), otherSide: payment.receiver })
    sending = {
      peer: peer.ilpAddress,
      receiver: { ilpAddress, sharedSecret },
      settlement: { ...settlement, base: receivedAmount.value },
      packets: {},
      sent: '0',
    }
  }
  // Another peer knows nothing about the packets that this one got.
  const peer = rail.peerFor(sending.peer)
  const rate = peer && rateOf(peer.asset, receiveAmount)
  if (peer?.ilpAddress !== sending.peer || rate === undefined) {
    if (recorded === undefined) return final('no peer has a route to the receiver')
    // Its packets may have arrived, so it cannot end as if nothing was sent.
    throw new Error(`${paymentId}: the peer of its packets, or the rate, is gone`)
  }
  const trustMax = sender.trustMax?.(payment) ?? BigInt(receiveAmount.value)
  const options = { book, sendings, paymentId, writer, sending, peer, rate, trustMax, now }
  const record = packetRecord(options)
  return { ok: true, attempt: { payment, writer, record, peer, receiver: sending.receiver } }
}

/** Asks the receiver about the packets without a reply. Resolves to whether all of them are decided. */
async function decided({ receivers, now }: Sender, { payment, record }: Attempt): Promise<boolean> {
  const askedAt = now()
  const found = await receivers(payment.receiver)
  const { receivedAmount } = found.ok ? found.receiver : found
  const isReadable =
    receivedAmount !== undefined && sameAsset(receivedAmount, payment.receiveAmount)
  const received = isReadable ? BigInt(receivedAmount.value) : 0n
  const evidence = { by: 'sum', askedAt, received } as const
  const { undecided } = await record.conclude(isReadable ? evidence : undefined)
  return undecided === undefined
}

/** What is left to deliver if everything in doubt arrives. */
function remainderOf({ receiveAmount }: OutgoingPaymentView, record: PacketRecord): bigint {
  const { proven, byWord, inDoubt } = record.totals()
  return BigInt(receiveAmount.value) - proven - byWord - inDoubt
}

/** Sends what was not sent yet, if the receiver still accepts it. */
async function sendRemainder(
  sender: Sender,
  { payment, record, peer, receiver: details }: Attempt,
  ended: AbortSignal,
  stopping: AbortSignal,
): Promise<Problem | undefined> {
  const { rateOf, receivers } = sender
  const { receiveAmount } = payment
  const remainder = remainderOf(payment, record)
  const maxSourceAmount = mostSent(payment, peer.asset, rateOf) - record.spent()
  if (remainder <= 0n || maxSourceAmount <= 0n) return undefined
  const final = (reason: string): Problem => ({ reason, isTemporary: false })
  const found = await receivers(payment.receiver)
  if (!found.ok) return { reason: found.reason, isTemporary: found.temporary ?? false }
  const { asset, ilp, wanted } = found.receiver
  if (ilp === undefined || !sameAsset(asset, receiveAmount)) {
    return final('the asset of the receiver has changed')
  }
  if (wanted !== undefined && BigInt(wanted.value) < remainder) {
    return final('the receiver does not accept that much')
  }
  const until = performance.now() + attemptMs
  const rate = rateOf(peer.asset, receiveAmount)
  const result = await payOverIlp({
    send: record.send,
    receiver: { ...details, asset },
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
    isReporting = true
    const totals = totalsFor(payment, record.totals().proven, 0n)
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

/** Reports the outcome of a payment. Its record stays while something in it is not proven. */
async function end(
  { outgoingPayments, sendings }: Sender,
  payment: OutgoingPaymentView,
  attempt: Attempt | undefined,
  problem = unknownOutcome,
): Promise<void> {
  const { paymentId, debitAmount, receiveAmount } = payment
  const { proven, byWord, inDoubt } = attempt?.record.totals() ?? {
    proven: 0n,
    byWord: 0n,
    inDoubt: 0n,
  }
  const totals = totalsFor(payment, proven + byWord, inDoubt)
  const { sentAmount, deliveredAmount } = totals
  const isComplete =
    deliveredAmount.value === receiveAmount.value || sentAmount.value === debitAmount.value
  const known = totalsFor(payment, proven + byWord, 0n)
  const doubt = BigInt(sentAmount.value) - BigInt(known.sentAmount.value)
  const report = {
    ...totals,
    ...(attempt !== undefined && doubt > 0n && { inDoubt: paymentDoubt(attempt, doubt) }),
  }
  const ended = isComplete
    ? await outgoingPayments.reportSent(paymentId, { ...report, final: true })
    : await outgoingPayments.fail(paymentId, { ...report, reason: problem })
  if (!ended.ok && ended.refusal !== 'payment_over')
    throw new Error(`${paymentId}: ${ended.reason}`)
  if (attempt === undefined || doubtsOf(attempt.record.settlement()).length > 0) return
  await sendings.forget(paymentId, attempt.writer)
}

/** Returns the part of a payment that nobody knows about, as the record of the payment has it. */
function paymentDoubt({ payment, peer, record }: Attempt, doubt: bigint) {
  const open = doubtsOf(record.settlement()).filter(({ kind }) => kind === 'in_doubt')
  const since = Math.floor(open[0]?.since ?? payment.createdAt)
  const reason = `no reply of ${peer.ilpAddress}`.slice(0, 256)
  return { amount: valued(doubt, payment.debitAmount), since, reason }
}

/**
 * Returns what the payer is debited for what was delivered, at the quoted price: the wallet keeps any difference to the
 * packets' cost. What is still in doubt when the payment must end is debited too, and stays listed.
 */
function totalsFor(
  { debitAmount, receiveAmount }: OutgoingPaymentView,
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

function convertedUp(amount: bigint, { numerator, denominator }: Rate): bigint {
  return dividedUp(amount * numerator, denominator)
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** Divides and rounds up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
