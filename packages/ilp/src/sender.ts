import {
  closeConnection,
  Int,
  isPaymentError,
  PaymentError,
  type PaymentProgress,
  PaymentType,
  pay,
  type Quote,
  Ratio,
  type ResolvedPayment,
  setupPayment,
  startQuote,
} from '@interledger/pay'
import { isFulfill } from 'ilp-packet'
import { IlpPacketType } from 'ilp-protocol-stream/dist/src/packet.js'
import type { Asset, IlpPaymentMethod } from 'open-payments-server'
import {
  fulfills,
  type IlpHandler,
  isFulfillable,
  isUnknown,
  readPrepare,
  readReply,
  readStream,
  rejectsOf,
} from './packet.js'
import type { Rate } from './rates.js'

/** What to pay, to whom, and by which peer. */
export interface PayOverIlpOptions {
  readonly send: IlpHandler
  /** The payment method of the incoming payment, and its asset. */
  readonly receiver: Pick<IlpPaymentMethod, 'ilpAddress' | 'sharedSecret'> & {
    readonly asset: Asset
  }
  /** The amount to deliver, in the receiver's asset, or the amount to debit, in the sender's asset. */
  readonly amount: { readonly deliver: bigint } | { readonly debit: bigint }
  /**
   * The maximum to send, in the sender's asset. Rounding loses up to one unit in each converted packet: for
   * `deliver`, include that.
   */
  readonly maxSourceAmount: bigint
  /**
   * The minimum that must arrive for each unit sent; below it the receiver fulfills no packet. Default: for
   * `deliver`, the rate at which `maxSourceAmount` is just enough; for `debit`, 1 % less than the rate at the
   * start.
   */
  readonly minRate?: Rate
  /**
   * The rate at which you exchange. What arrives may be less by rounding, up to one unit in a packet. A receiver that
   * acknowledges less than it got could otherwise take the rest of `maxSourceAmount`.
   */
  readonly rate?: Rate
  /** Abort it to stop sending; it is read before each packet. The result follows when no packet is in flight. */
  readonly signal?: Pick<AbortSignal, 'aborted'>
  /** Called after each fulfilled packet, with the totals of all fulfilled packets. */
  readonly onProgress?: (progress: Sent) => void
}

/** What was sent and delivered: the sums over the fulfilled packets. */
export interface Sent {
  /** In the sender's asset. With `unknown`, never above `maxSourceAmount`. */
  readonly sent: bigint
  /**
   * In the receiver's asset, as the receiver acknowledged it. A receiver can overstate it, to its own loss:
   * record at most the amount that the payment was to deliver.
   */
  readonly delivered: bigint
  readonly packets: number
}

/** What a call of the sender has sent. */
export interface Ended extends Sent {
  /**
   * The sum of the packets whose outcome is unknown, in the sender's asset. The receiver may have them, so they count
   * as sent. After the first of them, no packet with money is sent.
   */
  readonly unknown: bigint
}

/** What was sent, or why not all of it was. */
export type PayOverIlpResult =
  | ({ readonly ok: true } & Ended)
  | ({
      readonly ok: false
      /** A `PaymentError` of `@interledger/pay`, `'Aborted'`, `'AssetMismatch'` or `'Unexpected'`. */
      readonly problem: string
      /** The thrown error, for `'Unexpected'`. */
      readonly cause?: unknown
    } & Ended)

/**
 * Pays an incoming payment over Interledger in as many packets as necessary. The promise never rejects.
 *
 * @example
 * ```ts
 * import { payOverIlp, sendOverHttp } from 'open-payments-ilp'
 *
 * const paid = await payOverIlp({
 *   send: sendOverHttp({ url: 'https://peer.example/ilp/g.wallet', token: 'for the peer' }),
 *   receiver: {
 *     ilpAddress: 'g.peer.usd.abc',
 *     sharedSecret: '6jR5iNIVRvqeasJeCty6C-YB5X9FhSOUPCL_5nha5Vs',
 *     asset: { assetCode: 'USD', assetScale: 2 },
 *   },
 *   amount: { deliver: 2_500n },
 *   maxSourceAmount: 2_500n,
 * })
 * console.log(paid.delivered, paid.unknown)
 * ```
 */
export async function payOverIlp(options: PayOverIlpOptions): Promise<PayOverIlpResult> {
  const { signal, onProgress, receiver } = options
  const { plugin, unknownOf } = pluginOf(options)
  let total: Sent = { sent: 0n, delivered: 0n, packets: 0 }
  const failed = (problem: string, cause?: unknown): PayOverIlpResult => ({
    ok: false,
    problem: signal?.aborted ? 'Aborted' : problem,
    ...(cause !== undefined && { cause }),
    ...total,
    unknown: unknownOf(total),
  })
  function progressHandler({ amountSent, amountDelivered }: PaymentProgress): void {
    if (amountSent === total.sent) return
    total = { sent: amountSent, delivered: amountDelivered, packets: total.packets + 1 }
    const progress = total
    // An error of the callback must not stop the counting of packets.
    if (onProgress) queueMicrotask(() => onProgress(progress))
  }

  let destination: ResolvedPayment | undefined
  try {
    const { assetCode, assetScale } = receiver.asset
    const details = {
      plugin,
      destinationAddress: receiver.ilpAddress,
      sharedSecret: Buffer.from(receiver.sharedSecret, 'base64url'),
    }
    destination = await setupPayment(details).catch((error) => {
      if (error !== PaymentError.UnknownDestinationAsset) throw error
      // The receiver answers, and leaves its asset to the incoming payment.
      return setupPayment({ ...details, destinationAsset: { code: assetCode, scale: assetScale } })
    })
    const { code, scale } = destination.destinationAsset
    if (code !== assetCode || scale !== assetScale) return failed('AssetMismatch')
    const quote = await quoteFor(options, plugin, destination)
    const { error } = await pay({ plugin, destination, quote, progressHandler })
    return error === undefined ? { ok: true, ...total, unknown: unknownOf(total) } : failed(error)
  } catch (error) {
    return isPaymentError(error) ? failed(error) : failed('Unexpected', error)
  } finally {
    if (destination !== undefined) await closeConnection(plugin, destination)
  }
}

type Plugin = Parameters<typeof setupPayment>[0]['plugin']

/** Counts the packets with money whose outcome is unknown, and sends none after the first of them. */
function pluginOf({ send, signal, receiver }: PayOverIlpOptions) {
  // F00 is final, so the sender does not retry.
  const stopped = rejectsOf('')('F00', 'The sender has stopped')
  const sharedSecret = Buffer.from(receiver.sharedSecret, 'base64url')
  let mayHaveArrived = 0n
  let isStopped = false
  async function sent(packet: Uint8Array): Promise<Uint8Array> {
    const prepare = readPrepare(packet)
    if (prepare === undefined || !isFulfillable(prepare, sharedSecret)) return send(packet)
    if (isStopped) return stopped
    mayHaveArrived += BigInt(prepare.amount)
    // The STREAM sender takes a rejection for T00, after which it sends the amount again.
    const bytes = await send(packet).catch((error) => {
      isStopped = true
      throw error
    })
    const reply = readReply(bytes)
    if (fulfills(reply, prepare)) return bytes
    if (isUnknown(reply) || isFulfill(reply)) isStopped = true
    else mayHaveArrived -= BigInt(prepare.amount)
    return bytes
  }
  const plugin: Plugin = {
    async sendData(data) {
      return Buffer.from(
        signal?.aborted ? stopped : await withAnswerCode(await sent(data), sharedSecret),
      )
    },
  }
  // The STREAM sender waits for a reply until the packet expires. What is fulfilled later is not in its totals.
  return { plugin, unknownOf: ({ sent }: Sent) => mayHaveArrived - sent }
}

/**
 * Returns a final reject with data that only the receiver can encrypt under the code F99, which `@interledger/pay`
 * takes as the receiver's answer. Receivers also answer with F04 to too little, and with F05 to a probe; without such
 * data, these codes are errors of the path. A temporary reject stays, because its packet is sent again.
 */
async function withAnswerCode(reply: Uint8Array, sharedSecret: Buffer): Promise<Uint8Array> {
  const reject = readReply(reply)
  if (reject === undefined || isFulfill(reject) || !reject.code.startsWith('F')) return reply
  const answer = await readStream(sharedSecret, reject.data)
  if (answer?.ilpPacketType !== IlpPacketType.Reject) return reply
  return rejectsOf(reject.triggeredBy)('F99', reject.message, reject.data)
}

/** Probes the path for its rate and its maximum packet amount, and sets the limits of the payment. */
async function quoteFor(
  { amount, maxSourceAmount, minRate, rate }: PayOverIlpOptions,
  plugin: Plugin,
  destination: ResolvedPayment,
): Promise<Quote> {
  const debit = 'debit' in amount && amount.debit < maxSourceAmount ? amount.debit : maxSourceAmount
  // `startQuote` computes limits from floating-point prices. A slippage of 1 disables them; these limits are
  // exact.
  const probed = await startQuote({ plugin, destination, amountToSend: debit, slippage: 1 })
  const rates = [ratioOf(minRate ?? defaultMinRate(amount, debit, probed))]
  if (rate !== undefined) rates.push(ratioOf(roundedDown(rate, probed.maxPacketAmount, debit)))
  const minExchangeRate = rates.reduce((one, other) => (one.isGreaterThan(other) ? one : other))
  if (!probed.lowEstimatedExchangeRate.isGreaterThanOrEqualTo(minExchangeRate)) {
    throw PaymentError.InsufficientExchangeRate
  }
  return 'deliver' in amount
    ? {
        ...probed,
        minExchangeRate,
        paymentType: PaymentType.FixedDelivery,
        minDeliveryAmount: amount.deliver,
      }
    : { ...probed, minExchangeRate }
}

function defaultMinRate(
  amount: PayOverIlpOptions['amount'],
  debit: bigint,
  { lowEstimatedExchangeRate: { a, b } }: Quote,
): Rate {
  return 'deliver' in amount
    ? { numerator: amount.deliver, denominator: debit }
    : { numerator: a.value * 99n, denominator: b.value * 100n }
}

/** Returns the rate of the largest packet if it loses a unit. At par, nothing is rounded. */
function roundedDown({ numerator, denominator }: Rate, packetMax: bigint, debit: bigint): Rate {
  if (numerator === denominator) return { numerator, denominator }
  const largest = packetMax < debit ? packetMax : debit
  const arriving = largest * numerator - denominator
  return { numerator: arriving > 0n ? arriving : 0n, denominator: largest * denominator }
}

function ratioOf({ numerator, denominator }: Rate): Ratio {
  const [a, b] = [Int.from(numerator), Int.from(denominator)]
  if (a === undefined || b === undefined || !b.isPositive()) throw PaymentError.InvalidQuote
  return Ratio.of(a, b)
}
