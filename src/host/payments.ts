import type { Stored } from '../core/decision.js'
import { type Collection, resourceId } from '../protocol/resource-url.js'
import { canonicalUrl } from '../protocol/url.js'
import {
  type createPaymentLists,
  type Page,
  type PageQuery,
  type PaymentListQuery,
  readPageQuery,
} from '../service/mechanism/pages.js'
import { ArgumentError } from '../util/argument-error.js'
import { exactly, integer, optional, string, text } from '../util/arguments.js'

/** The reads that the host can make of payments of a kind. */
export interface PaymentReader<Payment> {
  /** Resolves to the payment, or to `undefined` if the id is unknown. */
  get(paymentId: string): Promise<Payment | undefined>
  /** Returns the id in a payment's URL, or `undefined` if the URL does not belong to this server. */
  idOf(url: string): string | undefined
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

/** The part of a service of payments that reads them. */
type ReadablePayments<Payment extends Stored> = ReturnType<typeof createPaymentLists<Payment>> & {
  readonly load: (paymentId: string) => Promise<Payment | undefined>
}

export function paymentReader<Payment extends Stored>(
  payments: ReadablePayments<Payment>,
  baseUrl: string,
  collection: Collection,
): PaymentReader<Payment> {
  return {
    async get(paymentId) {
      string('paymentId', paymentId)
      return payments.load(paymentId)
    },
    idOf(url) {
      string('url', url)
      return resourceId(baseUrl, collection, url)
    },
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
