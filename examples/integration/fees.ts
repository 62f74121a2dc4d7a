import type { Amount, PriceAnswer } from 'open-payments-server'

// #region fee
/** The fee of what arrives: 0.5 %, rounded up, and 10 cents. */
const feeOf = (arrives: bigint) => (arrives * 5n + 999n) / 1_000n + 10n

/** What is debited for what arrives, in one currency. */
export const debitFor = (arrives: bigint) => arrives + feeOf(arrives)

/** The most that arrives for a debit. The cent that may be left over is fee, too. */
export const arrivingFor = (debit: bigint) => ((debit - 10n) * 1_000n) / 1_005n

/** The price of a payment whose receiver takes the currency of the account. */
export function priceWithFee(fixed: 'debit' | 'arrival', amount: Amount): PriceAnswer {
  const value = BigInt(amount.value)
  const arrives = fixed === 'arrival' ? value : arrivingFor(value)
  if (arrives <= 0n) {
    const minDebitAmount = { ...amount, value: `${debitFor(1n)}` }
    return { ok: false, refusal: 'amount_too_small', minDebitAmount }
  }
  const debit = fixed === 'debit' ? value : debitFor(value)
  return {
    ok: true,
    debitAmount: { ...amount, value: `${debit}` },
    receiveAmount: { ...amount, value: `${arrives}` },
  }
}
// #endregion fee
