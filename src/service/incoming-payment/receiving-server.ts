import type { IncomingPaymentPolicy } from '../../core/incoming-payment.js'
import type {
  Bounded,
  BoundedFunction,
  MayReceive,
  PaymentMethods,
  WalletAddresses,
} from '../../ports/host.js'
import type { ServiceContext } from '../context.js'

export interface IncomingPaymentPorts {
  readonly walletAddresses: Bounded<WalletAddresses>
  readonly paymentMethods: Bounded<PaymentMethods>
  /** Decides for the host whether a payment may be created, and an arrival counted. Default: all of them. */
  readonly mayReceive?: BoundedFunction<MayReceive> | undefined
}

export interface ReceivingServer extends IncomingPaymentPorts {
  readonly context: ServiceContext
  readonly policy: IncomingPaymentPolicy
}
