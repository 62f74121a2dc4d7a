import { Agent, request as httpRequest } from 'node:http'
import type { HttpRequest } from 'open-payments-server/adapter'

export interface Answer {
  readonly status: number
  readonly text: string
}

/** Sends requests over connections that stay open, as many at a time as there are senders. */
export function createSender(port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  return {
    send: ({ method, url, headers, body }: HttpRequest) =>
      new Promise<Answer>((resolve, reject) => {
        const others = headers.filter(([name]) => name.toLowerCase() !== 'content-length')
        const lines = [['Host', 'wallet.example'], ['Content-Length', `${body.length}`], ...others]
        const options = { agent, port, host: '127.0.0.1', method, path: url, headers: lines.flat() }
        const sent = httpRequest(options, (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
          })
          response.on('error', reject)
        })
        sent.on('error', reject)
        sent.end(body)
      }),
    close: () => agent.destroy(),
  }
}

export type Send = ReturnType<typeof createSender>['send']
