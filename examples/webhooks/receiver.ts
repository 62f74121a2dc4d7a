import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

/** A webhook of the wallet. */
export interface ReceivedWebhook {
  /**
   * The same for every delivery of an event, of which there is at least one: ignore an id that you have
   * processed.
   */
  readonly id: string
  readonly type: string
  /** When the event happened, in ISO 8601. */
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

const bodyBytesMax = 64 * 1024

/**
 * A server that accepts webhooks with a valid signature. It responds with 204 when `onWebhook` has resolved.
 * If `onWebhook` rejects it responds with 500, and the sender retries.
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
    // The signature covers the received bytes; parsed and serialized again they could differ.
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
  // The stream stays open if the body is too large, so that the sender still receives the response.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
