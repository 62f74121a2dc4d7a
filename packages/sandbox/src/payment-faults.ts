import type { RequestedPayment } from 'open-payments-server'
import type { SandboxClock } from './clock.js'
import { type Faults, type PaymentFault, paymentFaults } from './faults.js'
import type { PaymentFailure } from './payments.js'

/** The faults that payments of a wallet have. */
export interface PaymentFaults {
  /** Whether the owner has to confirm a payment of a client. */
  mustConfirm(payment: RequestedPayment): boolean
  /** Whether the account has too little for a payment. */
  lacksFunds(paymentId: string): boolean
  /** How a payment fails, if it does. */
  failureOf(paymentId: string): PaymentFailure | undefined
  /** When the review of what it brings ends, in milliseconds since 1970, if there is one. */
  reviewEndOf(paymentId: string): number | undefined
}

/** How long a review takes, from the first arrival: less than a token lives. */
const reviewMs = 300_000

const ofConfirmed = paymentFaults.filter((name) => name !== 'confirmation-required')

/**
 * Takes a fault when the wallet decides about a new payment, and another when it decides about a payment that its owner
 * has confirmed.
 *
 * @param noted is called with each fault that takes effect.
 */
export function faultsOfPayments(
  faults: Faults,
  wallet: string,
  clock: SandboxClock,
  noted: (fault: PaymentFault) => void,
): PaymentFaults {
  // The library may ask again about a payment, which has one fault.
  const created = new Map<string, PaymentFault | undefined>()
  const confirmed = new Map<string, PaymentFault | undefined>()
  const reviews = new Map<string, number>()
  const takenBy = (id: string) => confirmed.get(id) ?? created.get(id)

  function faultOf(id: string, kept: typeof created, among: readonly PaymentFault[]) {
    if (!kept.has(id)) {
      const next = faults.next(among, wallet, 'createOutgoingPayment')
      kept.set(id, next?.fault)
      if (next !== undefined) {
        faults.use(next.id)
        noted(next.fault)
      }
    }
    return kept.get(id)
  }

  return {
    mustConfirm: ({ outgoingPaymentId: id, isPreview }) =>
      !isPreview && faultOf(id, created, paymentFaults) === 'confirmation-required',
    lacksFunds(id) {
      const first = created.get(id)
      if (first !== 'confirmation-required') return first === 'insufficient-funds'
      return faultOf(id, confirmed, ofConfirmed) === 'insufficient-funds'
    },
    failureOf(id) {
      const fault = takenBy(id)
      return fault === 'failed-payment' || fault === 'partial-payment' ? fault : undefined
    },
    reviewEndOf(id) {
      if (takenBy(id) !== 'reviewed-payment') return undefined
      const end = reviews.get(id) ?? clock.now() + reviewMs
      reviews.set(id, end)
      return end
    },
  }
}
