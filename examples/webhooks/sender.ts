import type { EventHandler } from 'open-payments-server'
import { Webhook } from 'standardwebhooks'

export interface WebhookSenderOptions {
  /** The URL to POST events to. */
  readonly url: string
  /** Shared with the receiver: 24 bytes or more in base64, after `whsec_`. */
  readonly secret: string
  /** The time limit for the receiver in milliseconds, at most the lease of an event. Default 5,000. */
  readonly timeoutMs?: number
}

/**
 * Returns a handler for `consumeEvents` that sends each event as a webhook, signed according to Standard
 * Webhooks. Every delivery of an event has the same `webhook-id`, so that the receiver can detect repeats.
 * The handler rejects, and the event is redelivered, unless the receiver responds in time with a 2xx status.
 *
 * @see https://www.standardwebhooks.com
 */
export function webhookSender(options: WebhookSenderOptions): EventHandler {
  const { url, secret, timeoutMs = 5_000 } = options
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
    throw new TypeError('secret: must be whsec_ and 24 bytes or more in base64')
  }
  const webhook = new Webhook(secret)
  const { href } = new URL(url)

  return async ({ id, type, at, ...data }, delivery) => {
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
    // The time of this attempt, not of the event: receivers refuse old timestamps.
    const now = new Date()
    const response = await fetch(href, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
        'webhook-signature': webhook.sign(id, now, body),
      },
      body,
      // A redirect could make the wallet call addresses that only it can reach.
      redirect: 'manual',
      signal: AbortSignal.any([delivery.signal, AbortSignal.timeout(timeoutMs)]),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the receiver responded with ${response.status}`)
  }
}
