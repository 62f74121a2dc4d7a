import type { Clock, MayPay, RequestedPayment } from 'open-payments-server'

const confirmMs = 15 * 60_000

/**
 * Returns whether a payment is above a number of units of its asset, such as dollars. Without the number, none is: some
 * clients cannot show the page on which its owner confirms it.
 */
export function isAbove(units: bigint | undefined) {
  return ({ debitAmount: { value, assetScale } }: Pick<RequestedPayment, 'debitAmount'>): boolean =>
    units !== undefined && BigInt(value) > units * 10n ** BigInt(assetScale)
}

/**
 * Lets the owner of an account confirm some payments, each at the page `/confirm/{payment}`. `mayPay` decides about all
 * others, and about those that the owner has confirmed: nothing is held before.
 */
export function confirmedByOwner(
  mayPay: MayPay,
  {
    baseUrl,
    mustConfirm,
    clock,
  }: {
    readonly baseUrl: string
    readonly mustConfirm: (payment: RequestedPayment) => boolean
    readonly clock: Clock
  },
): MayPay {
  return (payment, call) => {
    if (payment.isConfirmed || !mustConfirm(payment)) return mayPay(payment, call)
    const url = `${baseUrl}/confirm/${payment.outgoingPaymentId}`
    return { ok: false, refusal: 'confirmation_required', url, until: clock.now() + confirmMs }
  }
}
