import type { EventHandler } from 'open-payments-server'
import { Webhook } from 'standardwebhooks'

export interface WebhookSenderOptions {
  /** The URL to POST events to. */
  readonly url: string
  /**
   * Shared with the receiver: 24 bytes or more in base64, after `whsec_`. To replace a secret, pass both, give the
   * receiver the new one, and then pass the new one alone: each webhook is signed with all of them.
   */
  readonly secret: string | readonly string[]
  /** The time limit for the receiver in milliseconds, at most the lease of an event. Default 5,000. */
  readonly timeoutMs?: number
}

/**
 * Returns a handler for `consumeEvents` that sends each event as a webhook, signed according to Standard
 * Webhooks. Every delivery of an event has the same `webhook-id`, so that the receiver can detect repeats.
 * The handler rejects, and the event is redelivered, unless the receiver responds in time with a 2xx status.
 *
 * @throws `TypeError` if a secret is not one of Standard Webhooks, or there is none.
 * @see https://www.standardwebhooks.com
 */
export function webhookSender(options: WebhookSenderOptions): EventHandler {
  const { secret, timeoutMs = 5_000 } = options
  const { href } = new URL(options.url)
  const webhooks = signersOf(typeof secret === 'string' ? [secret] : secret)

  return async ({ id, type, at, ...data }, delivery) => {
    // The time of this attempt, not of the event: receivers refuse old timestamps.
    const now = new Date()
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
    // Not `AbortSignal.any`: before Node 22.16 a garbage collection can remove its time-out.
    const request = new AbortController()
    const abort = () => request.abort(delivery.signal.reason)
    const timer = setTimeout(() => {
      request.abort(new DOMException('the receiver did not respond in time', 'TimeoutError'))
    }, timeoutMs)
    delivery.signal.addEventListener('abort', abort)
    try {
      const response = await fetch(href, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
          'webhook-signature': webhooks.map((each) => each.sign(id, now, body)).join(' '),
        },
        body,
        // A redirect could make the wallet call addresses that only it can reach.
        redirect: 'manual',
        signal: request.signal,
      })
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the receiver responded with ${response.status}`)
    } finally {
      clearTimeout(timer)
      delivery.signal.removeEventListener('abort', abort)
    }
  }
}

function signersOf(secrets: readonly string[]): readonly Webhook[] {
  if (secrets.length === 0) throw new TypeError('secret: must be at least one')
  return secrets.map((secret) => {
    if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
      throw new TypeError('secret: must be whsec_ and 24 bytes or more in base64')
    }
    return new Webhook(secret)
  })
}
