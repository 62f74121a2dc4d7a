import type { PaymentMethods } from '../ports/payment-methods.js'
import type { Pricing } from '../ports/pricing.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { ofDependency } from '../service/mechanism/dependency-failure.js'

/** Marks rejections of the port, so that the server responds with 503. */
export function hostWalletAddresses(port: WalletAddresses): WalletAddresses {
  return { find: (url) => ofDependency('walletAddresses', () => port.find(url)) }
}

/** Marks rejections of the port, so that the server responds with 503. */
export function hostPaymentMethods(port: PaymentMethods): PaymentMethods {
  return {
    detailsOf: (query) => ofDependency('paymentMethods', () => port.detailsOf(query)),
    paymentIdOf: (ilpAddress) => port.paymentIdOf(ilpAddress),
  }
}

/** Marks rejections of the port, so that the server responds with 503. It responds to a wrong price with 500. */
export function hostPricing(port: Pricing): Pricing {
  return { price: (request) => ofDependency('pricing', () => port.price(request)) }
}
