import { Webhook } from 'standardwebhooks'
import type { WebhookFormat } from './format.js'

/**
 * Writes events as webhooks that are signed according to Standard Webhooks.
 *
 * @throws `TypeError` if the secret is not one of Standard Webhooks.
 */
export function standardWebhooks(secret: string): WebhookFormat {
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
    throw new TypeError('secret: must be whsec_ and 24 bytes or more in base64')
  }
  const webhook = new Webhook(secret)

  return async ({ id, type, at, ...data }, now) => {
    const body = JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(now.getTime() / 1000)}`,
      'webhook-signature': webhook.sign(id, now, body),
    }
    return { headers, body }
  }
}
