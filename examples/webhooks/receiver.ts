import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

/** What a webhook of the wallet says. */
export interface ReceivedWebhook {
  /** The same at every delivery, of which there is at least one: do nothing for an id that you had before. */
  readonly id: string
  readonly type: string
  /** When it happened: ISO 8601. */
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

const bodyBytesMax = 64 * 1024

/**
 * A server that takes webhooks whose signature holds. It answers 204 once `onWebhook` has resolved; when
 * that rejects it answers 500, and the webhook comes again.
 */
export function webhookReceiver(
  secret: string,
  onWebhook: (webhook: ReceivedWebhook) => Promise<void> | void,
): Server {
  const webhook = new Webhook(secret)

  async function receive(request: IncomingMessage): Promise<number> {
    if (request.method !== 'POST') return 405
    const body = await readBody(request)
    if (body === undefined) return 413
    // The signature covers the bytes as they came: what was parsed and written again would not do.
    const content = webhook.verify(body, request.headers as Record<string, string>)
    await onWebhook({ id: `${request.headers['webhook-id']}`, ...(content as ReceivedContent) })
    return 204
  }

  return createServer(async (request, response) => {
    let status: number
    try {
      status = await receive(request)
    } catch (error) {
      status = error instanceof WebhookVerificationError ? 401 : 500
    }
    response.writeHead(status, { connection: 'close' }).end()
  })
}

type ReceivedContent = Omit<ReceivedWebhook, 'id'>

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  // Left open when it is too much, so that the answer still reaches the sender.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
