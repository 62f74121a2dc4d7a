import type { DeliveredEvent, EventHandler } from 'open-payments-server'
import { canonicalize, rafikiSignature } from './signature.js'
import { type Recipient, type WebhookSources, webhookOf } from './webhook.js'

/** Options of `rafikiWebhooks`. */
export interface RafikiWebhooksOptions extends WebhookSources {
  /** The URL of your handler: the setting WEBHOOK_URL of Rafiki. */
  readonly url: string
  /**
   * The setting SIGNATURE_SECRET of Rafiki. The header has room for one signature. So to replace the secret, pass the
   * old one and the new one: what the receiver refuses with 4xx is sent again at once, signed with the next. Then pass
   * the new one alone.
   */
  readonly secret: string | readonly string[]
  /** The setting SIGNATURE_VERSION of Rafiki. Default 1. */
  readonly signatureVersion?: number
  /** The time limit of a request, in milliseconds, at most the lease of an event. Default 5,000. */
  readonly timeoutMs?: number
  /** The URL of Rafiki's card service, if you have one: it gets `funded` and `cancelled`. Needs `cardOf`. */
  readonly cardServiceUrl?: string
}

/**
 * Returns a handler for `consumeEvents` that sends what Rafiki sends for the same changes, so that a receiver that was
 * written for Rafiki stays as it is. As with Rafiki, a webhook is delivered when the receiver responds with 200;
 * otherwise the handler rejects, and the event is delivered again.
 *
 * @throws `TypeError` for a URL that is none, no secret, an empty one, or a card service without `cardOf`.
 *
 * @example
 * ```ts
 * import { consumeEvents } from 'open-payments-server'
 * import { rafikiWebhooks } from 'open-payments-rafiki'
 *
 * const { resources } = wallet
 * const send = rafikiWebhooks({
 *   url: 'https://backend.example/webhooks',
 *   secret: process.env['SIGNATURE_SECRET'] ?? '',
 *   payments: resources,
 * })
 * consumeEvents([resources.events], send)
 * ```
 */
export function rafikiWebhooks(options: RafikiWebhooksOptions): EventHandler {
  const { cardServiceUrl, cardOf } = options
  const secrets = typeof options.secret === 'string' ? [options.secret] : options.secret
  if (secrets.length === 0 || secrets.includes('')) {
    throw new TypeError('secret: must be one or more texts that are not empty')
  }
  if (cardServiceUrl !== undefined && cardOf === undefined) {
    throw new TypeError('cardOf: must be present with cardServiceUrl')
  }
  const recipients: readonly (readonly [Recipient, URL])[] = [
    ['account servicing entity', new URL(options.url)],
    ...(cardServiceUrl === undefined ? [] : ([['card service', new URL(cardServiceUrl)]] as const)),
  ]
  return async (event: DeliveredEvent, { signal }) => {
    for (const [recipient, url] of recipients) {
      const webhook = await webhookOf(event, recipient, options)
      if (webhook === undefined) continue
      await send(url, canonicalize(webhook), secrets, options, signal)
    }
  }
}

/** Sends a body until a secret is accepted. */
async function send(
  url: URL,
  body: string,
  secrets: readonly string[],
  { signatureVersion, timeoutMs = 5_000 }: RafikiWebhooksOptions,
  signal: AbortSignal,
): Promise<void> {
  let status = 0
  for (const secret of secrets) {
    signal.throwIfAborted()
    // The time of this attempt, not of the event: receivers refuse old timestamps. The bytes are canonical, so that a
    // receiver may verify them or the parsed body.
    const signature = rafikiSignature(body, secret, Date.now(), signatureVersion)
    status = await post(url, body, signature, timeoutMs, signal)
    if (status === 200) return
    if (status < 400 || status > 499) break
  }
  throw new Error(`the receiver responded with ${status}, and not with 200`)
}

async function post(
  url: URL,
  body: string,
  signature: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number> {
  // Not `AbortSignal.any`: before Node 22.16 a garbage collection can remove its time-out.
  const request = new AbortController()
  const abort = () => request.abort(signal.reason)
  const timer = setTimeout(() => {
    request.abort(new DOMException('the receiver did not respond in time', 'TimeoutError'))
  }, timeoutMs)
  signal.addEventListener('abort', abort)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'rafiki-signature': signature },
      body,
      // A redirect could make the wallet call addresses that only it can reach.
      redirect: 'manual',
      signal: request.signal,
    })
    await response.body?.cancel()
    return response.status
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
