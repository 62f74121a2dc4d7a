import type { PaymentMethods } from '../ports/payment-methods.js'
import type { Pricing } from '../ports/pricing.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { ofDependency } from '../service/mechanism/dependency-failure.js'

/** Returns wallet addresses whose rejection is answered with 503. */
export function hostWalletAddresses(port: WalletAddresses): WalletAddresses {
  return { find: (url) => ofDependency('walletAddresses', () => port.find(url)) }
}

/** Returns payment methods whose rejection is answered with 503. */
export function hostPaymentMethods(port: PaymentMethods): PaymentMethods {
  return {
    detailsOf: (query) => ofDependency('paymentMethods', () => port.detailsOf(query)),
    paymentIdOf: (ilpAddress) => port.paymentIdOf(ilpAddress),
  }
}

/** Returns pricing whose rejection is answered with 503. A wrong price is answered with 500. */
export function hostPricing(port: Pricing): Pricing {
  return { price: (request) => ofDependency('pricing', () => port.price(request)) }
}
