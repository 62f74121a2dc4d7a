import type { Instant } from '../core/instant.js'
import type { OutgoingPayment } from '../core/outgoing-payment/record.js'
import { type OutgoingPaymentBody, outgoingPaymentBody } from './outgoing-payment.js'
import { canonicalUrl } from './url.js'

/** The path of a collection, relative to the URL of the resource server. */
export type Collection = 'incoming-payments' | 'outgoing-payments' | 'quotes'

/** Returns the URL of a resource. `baseUrl` must have no trailing slash. */
export function resourceUrl(baseUrl: string, collection: Collection, id: string): string {
  return `${baseUrl}/${collection}/${id}`
}

/** Returns the id in the URL of a resource, or `undefined` for a URL of another server or collection. */
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
