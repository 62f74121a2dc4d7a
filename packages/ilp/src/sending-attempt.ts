import type { Asset, OutgoingPaymentView } from 'open-payments-server'
import { openSettlement } from 'open-payments-server/attempts'
import { sameAsset } from './address.js'
import { type PacketRecord, packetRecord } from './packet-record.js'
import type { Peer, RateOf } from './rail.js'
import { convertedUp, dividedUp } from './rates.js'
import { payOverIlp } from './sender.js'
import type { Route, Sending } from './sending-book.js'
import { deniedAt, reportProgress } from './sending-end.js'
import type { Sender } from './sending-options.js'

/** Why a payment did not arrive, or not yet. */
export interface Problem {
  readonly reason: string
  readonly isTemporary: boolean
}

/** A payment in the process that sends it now. */
export interface Attempt {
  readonly payment: OutgoingPaymentView
  readonly record: PacketRecord
  readonly peer: Peer
  readonly route: Route
}

/** Well below the lease of an event, after which another process may take over the payment. */
const attemptMs = 30_000

type Opened =
  | { readonly ok: true; readonly attempt: Attempt }
  | { readonly ok: false; readonly problem: Problem; readonly sending: Sending }

/** Continues with the record of a payment, or begins one: with the receiver's details, and what it had before. */
export async function open(
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
  const isExchanged = peer.asset.assetCode !== receiveAmount.assetCode
  const of = { paymentId, writer, sending, route, peer, rate, isExchanged, trustMax }
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
  if (!found.ok) return failed({ reason: found.reason, isTemporary: found.isTemporary ?? false })
  const { asset, ilp, receivedAmount } = found.receiver
  if (ilp === undefined || !sameAsset(asset, payment.receiveAmount))
    return failed(final(otherAsset))
  const { ilpAddress, sharedSecret } = ilp
  const peer = rail.peerFor(ilpAddress)
  if (peer === undefined) return failed(final('no peer has a route to the receiver'))
  const before = receivedAmount.value
  const settlement = { ...sending.settlement, base: before }
  const route = { peer: peer.ilpAddress, ilpAddress, sharedSecret }
  return { ok: true, sending: { ...sending, route, settlement, before }, route }
}

const final = (reason: string): Problem => ({ reason, isTemporary: false })
const otherAsset = 'the asset of the receiver has changed'

/** Asks the receiver about the packets without a reply, if there are any. */
export async function decided(
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

/** Reads what a receiver has in the end, at a peer that may count a repeated request twice. */
export async function noteReceived(
  { receivers }: Sender,
  { payment, record, peer }: Attempt,
): Promise<void> {
  const { proven, byWord, inDoubt } = record.totals()
  if (peer.close !== undefined || inDoubt > 0n || proven + byWord === 0n) return
  // What cannot be read is not listed, and the payment ends.
  const found = await receivers(payment.receiver).catch(() => undefined)
  const { receivedAmount } = (found?.ok ? found.receiver : found) ?? {}
  if (receivedAmount === undefined || !sameAsset(receivedAmount, payment.receiveAmount)) return
  record.note(BigInt(receivedAmount.value))
}

/** What is left to deliver if everything in doubt arrives. */
export function remainderOf({ receiveAmount }: OutgoingPaymentView, record: PacketRecord): bigint {
  const { proven, byWord, inDoubt } = record.totals()
  return BigInt(receiveAmount.value) - proven - byWord - inDoubt
}

/** Sends what was not sent yet, if the receiver still accepts it. */
export async function sendRemainder(
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
  const { deniedMax } = peer
  if (deniedMax !== undefined && (await deniedAt(sender.sendings, peer.ilpAddress)) > deniedMax) {
    return { reason: 'receivers behind the peer have denied too much', isTemporary: true }
  }
  const found = await receivers(payment.receiver)
  if (!found.ok) return { reason: found.reason, isTemporary: found.isTemporary ?? false }
  const { asset, ilp, wanted } = found.receiver
  if (ilp === undefined || !sameAsset(asset, receiveAmount)) {
    return final(otherAsset)
  }
  if (wanted !== undefined && BigInt(wanted.value) < remainder) {
    return final('the receiver does not accept that much')
  }
  const until = performance.now() + attemptMs
  const progress = progressOf(sender, payment, record)
  const rate = rateOf(peer.asset, receiveAmount)
  const result = await payOverIlp({
    send: record.send,
    receiver: { ...route, asset },
    amount: { deliver: remainder },
    maxSourceAmount,
    ...(rate !== undefined && { rate }),
    signal: {
      get aborted() {
        return stopping.aborted || ended.aborted || progress.isOver() || performance.now() >= until
      },
    },
    onProgress: progress.report,
  })
  await record.written()
  if (progress.isOver()) return { reason: 'somebody else has ended the payment', isTemporary: true }
  return result.ok || record.totals().inDoubt > 0n
    ? undefined
    : { reason: `the packets did not arrive: ${result.problem}`, isTemporary: true }
}

/**
 * Reports what is proven while the payment is sent, one report at a time. Once a report finds that somebody else has
 * ended the payment, nothing more is sent for it.
 */
function progressOf(sender: Sender, payment: OutgoingPaymentView, record: PacketRecord) {
  let isReporting = false
  let hasEnded = false
  function report(): void {
    if (isReporting) return
    isReporting = true
    reportProgress(sender, payment.paymentId, record.sending())
      .then((reported) => {
        hasEnded ||= reported.ok
          ? reported.payment.endedAt !== undefined
          : reported.refusal === 'payment_over'
      })
      // What clients read may lag behind: the report at the end counts.
      .catch(() => undefined)
      .finally(() => {
        isReporting = false
      })
  }
  // The report of the last packet ends the payment, too.
  return { report, isOver: () => hasEnded && remainderOf(payment, record) > 0n }
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
