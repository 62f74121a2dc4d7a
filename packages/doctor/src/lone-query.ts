import { once } from 'node:events'
import { type IncomingMessage, request as sendHttp } from 'node:http'
import { request as sendHttps } from 'node:https'
import { Readable } from 'node:stream'
import type { SendFetch } from 'open-payments-programs'

/**
 * Returns a `fetch` that sends a question mark without a query, which that of Node drops, with a request without a
 * body.
 */
export function keepingLoneQuery(send: SendFetch): SendFetch {
  return async (input, init = {}) => {
    const url = String(input)
    if (!url.endsWith('?') || init.body != null) return send(input, init)
    const { origin, protocol } = new URL(url)
    const { method = 'GET', headers, signal } = init
    const outgoing = (protocol === 'https:' ? sendHttps : sendHttp)(url, {
      method,
      path: url.slice(origin.length),
      headers: Object.fromEntries(new Headers(headers)),
      ...(signal instanceof AbortSignal && { signal }),
    })
    outgoing.end()
    const [answer] = (await once(outgoing, 'response').catch((error) => {
      throw signal?.aborted === true ? signal.reason : error
    })) as [IncomingMessage]
    const { statusCode: status = 0, rawHeaders } = answer
    const lines = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as [string, string]] : [],
    )
    const body = status === 204 || status === 304 ? null : Readable.toWeb(answer)
    return new Response(body as ReadableStream | null, { status, headers: lines })
  }
}
