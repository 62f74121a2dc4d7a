import { isUnderGrant, type UnderGrant } from '../../src/core/outgoing-payment/authority.js'
import type { PaymentRecord } from '../../src/core/outgoing-payment/record.js'

/** Returns a payment that a client requested. */
export function underGrant<Payment extends PaymentRecord>(payment: Payment): Payment & UnderGrant {
  if (!isUnderGrant(payment)) throw new Error('no client requested the payment')
  return payment as Payment & UnderGrant
}
