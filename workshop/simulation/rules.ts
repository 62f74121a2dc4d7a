import type { RequestedPayment } from '../../src/index.js'

const minute = 60_000
const day = 86_400_000

/** Short durations, so that a life of a few weeks reaches the end of each of them. */
export const lifetimes = {
  tokenMs: 10 * minute,
  retryMs: minute,
  holdMs: 3_600_000,
  /** Shorter than a late write takes. */
  decideMs: 5_000,
  retentionMs: 7 * day,
}

/** What all payments of the account may debit in an hour. */
export const hourlyCap = 1_000

/** Whether the owner has to confirm a payment. */
export const isLarge = ({ debitAmount }: Pick<RequestedPayment, 'debitAmount'>) =>
  BigInt(debitAmount.value) % 3n === 0n
