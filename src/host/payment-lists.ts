import type { Stored } from '../core/decision.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  type createPaymentLists,
  type Page,
  type PageQuery,
  type PaymentListQuery,
  readPageQuery,
} from '../service/mechanism/pages.js'
import { ArgumentError } from '../util/argument-error.js'
import { exactly, integer, optional, text } from '../util/arguments.js'

/** The lists of a wallet address's payments. */
export interface PaymentLists<Payment> {
  /**
   * Resolves to a page of a wallet address's payments, oldest first, regardless of which client created
   * them. Each payment that existed before the first page appears exactly once; a payment that is created
   * while you page may or may not appear.
   *
   * @throws {ArgumentError} for an invalid query.
   */
  list(query: PaymentListQuery): Promise<Page<Payment>>
  /**
   * Returns all payments of a wallet address, oldest first, for a `for await` loop. The library reads them in
   * pages of 100 as the loop proceeds, and holds one page in memory. Each payment that existed when the loop
   * began appears exactly once, as it was when its page was read; a payment that is created during the loop
   * may or may not appear.
   *
   * @throws {ArgumentError} for an invalid query.
   */
  iterate(query: Pick<PaymentListQuery, 'walletAddress'>): AsyncIterable<Payment>
}

export function paymentLists<Payment extends Stored>(
  payments: ReturnType<typeof createPaymentLists<Payment>>,
): PaymentLists<Payment> {
  return {
    async list(query) {
      pageQueryOfPayments('query', query)
      return payments.list(scopeOf(query), requirePage(query))
    },
    iterate(query) {
      queryOfPayments('query', query)
      return payments.iterate(scopeOf(query))
    },
  }
}

/** The checks of the members of `PageQuery`. */
export const pageMembers = {
  first: optional(integer),
  last: optional(integer),
  cursor: optional(text),
}

const queryOfPayments = exactly<Pick<PaymentListQuery, 'walletAddress'>>({ walletAddress: text })
const pageQueryOfPayments = exactly<PaymentListQuery>({ walletAddress: text, ...pageMembers })

function scopeOf({ walletAddress }: Pick<PaymentListQuery, 'walletAddress'>) {
  const canonical = canonicalUrl(walletAddress)
  if (canonical !== undefined) return { walletAddress: canonical }
  throw new ArgumentError('query.walletAddress', 'must be a valid https URL')
}

/** Reads the members of a query that select a page. */
export function requirePage(query: PageQuery) {
  const page = readPageQuery(query)
  if (!page.ok) throw new ArgumentError(`query.${page.path}`, page.problem)
  return page.value
}
