import type {
  Amount,
  Asset,
  IlpPaymentMethod,
  OutgoingPaymentView,
  ResourceServices,
} from 'open-payments-server'
import type { PacketBook } from './book.js'
import type { Rail, RateOf } from './rail.js'
import type { SendingBook } from './sending-book.js'

/** An incoming payment in another wallet, as its resource server returns it. */
export interface Receiver {
  /** The asset in which it receives. */
  readonly asset: Asset
  /** What it has received so far, from everybody, in `asset`. */
  readonly receivedAmount: Amount
  /** The amount that is still missing, if the payment has an amount. */
  readonly wanted?: Amount
  /** How to pay it over Interledger. Absent if it cannot be paid so. */
  readonly ilp?: Pick<IlpPaymentMethod, 'ilpAddress' | 'sharedSecret'>
}

/**
 * Reads the receiver of a payment at its wallet, as `receiverOf` of `open-payments-client` does. With `isTemporary`,
 * the wallet may respond later; without, the receiver will never accept money. `receivedAmount`: what it has received,
 * if that could be read.
 */
export type Receivers = (url: string) => Promise<
  | { readonly ok: true; readonly receiver: Receiver }
  | {
      readonly ok: false
      readonly reason: string
      readonly isTemporary?: boolean
      readonly receivedAmount?: Amount
    }
>

/** Options of `paymentSender`. */
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

export type Sender = PaymentSenderOptions & { readonly now: () => number }
