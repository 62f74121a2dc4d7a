import type { Instant } from '../core/decision.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { type OutgoingPaymentBody, outgoingPaymentBody } from './outgoing-payment.js'
import { canonicalUrl } from './url.js'

/** Where resources of one kind lie, below the resource server's URL. */
export type Collection = 'incoming-payments' | 'outgoing-payments' | 'quotes'

/** The URL that identifies a resource; `baseUrl` has no trailing slash. */
export function resourceUrl(baseUrl: string, collection: Collection, id: string): string {
  return `${baseUrl}/${collection}/${id}`
}

/** The id in a resource's URL, or `undefined` if the URL is not one of this server's. */
export function resourceId(
  baseUrl: string,
  collection: Collection,
  url: string,
): string | undefined {
  const canonical = canonicalUrl(url)
  const prefix = resourceUrl(baseUrl, collection, '')
  if (canonical === undefined || !canonical.startsWith(prefix)) return undefined
  const id = canonical.slice(prefix.length)
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined
}

/** An outgoing payment as clients see it, with the URLs of the payment and of its quote. */
export function outgoingPaymentResource(
  payment: OutgoingPayment,
  baseUrl: string,
  now: Instant,
): OutgoingPaymentBody {
  const { id, quoteId } = payment
  const urls = {
    id: resourceUrl(baseUrl, 'outgoing-payments', id),
    ...(quoteId && { quoteId: resourceUrl(baseUrl, 'quotes', quoteId) }),
  }
  return outgoingPaymentBody(payment, urls, now)
}
