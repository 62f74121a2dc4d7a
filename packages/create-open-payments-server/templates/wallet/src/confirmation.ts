import type { Clock, MayPay } from 'open-payments-server'

const confirmMs = 15 * 60_000

/**
 * Lets the owner of an account confirm each payment above an amount, at the page `/confirm/{payment}`. `mayPay` decides
 * about all others, and about those that the owner has confirmed: nothing is held before.
 *
 * @param above in whole units of the asset, such as dollars.
 */
export function confirmedByOwner(
  mayPay: MayPay,
  { baseUrl, above, clock }: { baseUrl: string; above: bigint; clock: Clock },
): MayPay {
  return (payment) => {
    const { outgoingPaymentId, debitAmount, isConfirmed } = payment
    const most = above * 10n ** BigInt(debitAmount.assetScale)
    if (isConfirmed || BigInt(debitAmount.value) <= most) return mayPay(payment)
    const url = `${baseUrl}/confirm/${outgoingPaymentId}`
    return { ok: false, refusal: 'confirmation_required', url, until: clock.now() + confirmMs }
  }
}
