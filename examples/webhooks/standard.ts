import { Webhook } from 'standardwebhooks'
import type { WebhookFormat } from './format.js'

/**
 * Writes events as webhooks that are signed according to Standard Webhooks, with each of the secrets: a receiver that
 * knows one of them accepts the webhook.
 *
 * @throws `TypeError` if a secret is not one of Standard Webhooks, or there is none.
 */
export function standardWebhooks(secrets: readonly string[]): WebhookFormat {
  if (secrets.length === 0) throw new TypeError('secret: must be at least one')
  const webhooks = secrets.map((secret) => {
    if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
      throw new TypeError('secret: must be whsec_ and 24 bytes or more in base64')
    }
    return new Webhook(secret)
  })

  return async ({ id, type, at, ...data }, now) => {
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
      'webhook-signature': webhooks.map((webhook) => webhook.sign(id, now, body)).join(' '),
    }
    return { headers, body }
  }
}
