import type { Pricing } from '../../ports/pricing.js'
import { mayBePublic } from '../../protocol/ip-address.js'
import { isLoopback, resourceId } from '../../protocol/url.js'
import { requireBoolean } from '../options.js'

interface Screening {
  /** The URL of the resource server, without a trailing slash. */
  readonly baseUrl: string
  readonly allowLoopback?: boolean | undefined
}

/**
 * Refuses receivers on this machine or in a private network before the host prices them, because client instances
 * choose the URLs and the host may fetch them. Incoming payments of the server itself are always accepted.
 */
export function screenedPricing(
  pricing: Pricing,
  { baseUrl, allowLoopback = isLoopback(new URL(baseUrl)) }: Screening,
): Pricing {
  requireBoolean('allowLoopback', allowLoopback)

  function isAccepted(receiver: string): boolean {
    const url = new URL(receiver)
    if (allowLoopback && isLoopback(url)) return true
    return mayBePublic(url) || resourceId(baseUrl, 'incoming-payments', receiver) !== undefined
  }

  return {
    price: async (request) =>
      isAccepted(request.receiver)
        ? pricing.price(request)
        : {
            ok: false,
            refusal: 'receiver_invalid',
            reason: 'the receiver is not on the public internet',
          },
  }
}
