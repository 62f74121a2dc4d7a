import type { Instant } from 'open-payments-server'
import type { Book, BookedPayment, SpendingRules } from './book.js'
import type { PaymentRequest, SpendingReport } from './history.js'
import type { SpendingScene } from './scene.js'

/** The state of the plan after the steps so far. */
export interface Draft {
  readonly scene: SpendingScene
  readonly rules: SpendingRules
  readonly latest: Instant
  now: Instant
  book: Book
  /** The payments that exist when a step begins: concurrent actions can only refer to these. */
  known: readonly BookedPayment[]
  requests: readonly { readonly request: PaymentRequest; readonly at: Instant }[]
  /** The host's reports about payments. */
  reports: readonly SpendingReport[]
}

/** The minimum time for which a wallet must recognize a repeated request, in milliseconds. */
export const retryMs = 30 * 86_400_000

export function grantNumber({ grants }: Book, number: number): number {
  return (number % grants.length) + 1
}

export function fromTheEnd<Item>(items: readonly Item[], back: number): Item | undefined {
  return items[items.length - 1 - (back % Math.max(1, items.length))]
}
