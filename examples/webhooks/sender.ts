import type { EventHandler } from 'open-payments-server'
import { type RafikiOptions, rafikiWebhooks } from './rafiki.js'
import { standardWebhooks } from './standard.js'

export interface WebhookSenderOptions {
  /** The URL to POST events to. */
  readonly url: string
  /**
   * Shared with the receiver: 24 bytes or more in base64, after `whsec_`. With `rafiki`, any text. To replace a secret,
   * pass both, give the receiver the new one, and then pass the new one alone; `rafiki` takes one only.
   */
  readonly secret: string | readonly string[]
  /** The time limit for the receiver in milliseconds, at most the lease of an event. Default 5,000. */
  readonly timeoutMs?: number
  /** Sends the events that Rafiki has too, with its names, bodies and signature, and no others. */
  readonly rafiki?: RafikiOptions
}

/**
 * Returns a handler for `consumeEvents` that sends each event as a webhook, signed according to Standard
 * Webhooks. Every delivery of an event has the same `webhook-id`, so that the receiver can detect repeats.
 * The handler rejects, and the event is redelivered, unless the receiver responds in time with a 2xx status.
 *
 * @see https://www.standardwebhooks.com
 */
export function webhookSender(options: WebhookSenderOptions): EventHandler {
  const { url, secret, timeoutMs = 5_000, rafiki } = options
  const secrets = typeof secret === 'string' ? [secret] : secret
  const write =
    rafiki === undefined ? standardWebhooks(secrets) : rafikiWebhooks(onlyOne(secrets), rafiki)
  const { href } = new URL(url)

  return async (event, delivery) => {
    // The time of this attempt, not of the event: receivers refuse old timestamps.
    const webhook = await write(event, new Date())
    if (webhook === undefined) return
    delivery.signal.throwIfAborted()
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
        headers: { 'content-type': 'application/json', ...webhook.headers },
        body: webhook.body,
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

/** Receivers of Rafiki's webhooks read one signature from the header. */
function onlyOne([secret, ...others]: readonly string[]): string {
  if (secret === undefined || others.length > 0) throw new TypeError('secret: must be one')
  return secret
}
