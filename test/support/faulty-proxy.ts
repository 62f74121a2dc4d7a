import { once } from 'node:events'
import { createServer, type IncomingMessage, request as send } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listening, stopped } from './hosts.js'

/** A request as the proxy received it. */
export interface SeenRequest {
  readonly method: string
  readonly target: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** Forwards the body in chunks, without `Content-Length`. */
  readonly isChunked?: true
}

/** A response, which a fault may change. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Sent instead of `body`. */
  readonly bytes?: Uint8Array
  /** Closes the connection after half of the body. */
  readonly isCutOff?: true
  /** Closes the connection without a byte. */
  readonly isLost?: true
  /** Sends nothing until whoever asked has closed the connection. */
  readonly isLate?: true
}

/** @param upstream the port of another server than that behind the proxy. */
export type Forward = (request: SeenRequest, upstream?: number) => Promise<Reply>

/** What a proxy does with a request instead of only forwarding it. */
export type ProxyFault = (request: SeenRequest, forward: Forward) => Promise<Reply>

export interface FaultyProxy {
  readonly origin: string
  /** The port of the server behind the proxy. */
  upstream: number
  /** `undefined` forwards everything unchanged. */
  fault: ProxyFault | undefined
  stop(): Promise<void>
}

/** Starts a proxy on loopback that forwards requests unchanged, except for its fault. */
export async function startFaultyProxy(host = 'localhost'): Promise<FaultyProxy> {
  const server = createServer(async (incoming, outgoing) => {
    const seen = await seenRequest(incoming)
    const forward: Forward = (request, upstream = proxy.upstream) => forwarded(upstream, request)
    const reply = await (proxy.fault ?? ((request) => forward(request)))(seen, forward)
    if (reply.isLost === true) return void outgoing.destroy()
    if (reply.isLate === true) return
    const body = Buffer.from(reply.bytes ?? reply.body)
    const isEmpty = reply.status === 204 || body.length === 0
    const length = isEmpty ? {} : { 'content-length': String(body.length) }
    outgoing.writeHead(reply.status, { ...reply.headers, ...length })
    if (reply.isCutOff === true) {
      const half = body.subarray(0, Math.floor(body.length / 2))
      outgoing.write(half, () => outgoing.destroy())
    } else {
      outgoing.end(isEmpty ? undefined : body)
    }
  })
  server.keepAliveTimeout = 65_000 // as a wallet behind a proxy
  const proxy: FaultyProxy = {
    origin: `http://${host}:${await listening(server, host)}`,
    upstream: 0,
    fault: undefined,
    stop: () => stopped(server),
  }
  return proxy
}

async function seenRequest(incoming: IncomingMessage): Promise<SeenRequest> {
  const { method = '', url: target = '', rawHeaders } = incoming
  const headers = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : [],
  )
  return { method, target, headers, body: (await buffer(incoming)).toString() }
}

async function forwarded(port: number, request: SeenRequest): Promise<Reply> {
  const { method, target, body, isChunked } = request
  const hop = /^(connection|transfer-encoding|keep-alive|content-length)$/i
  const kept = request.headers.filter(([name]) => !hop.test(name))
  const headers = Object.fromEntries(kept)
  if (isChunked === true) headers['Transfer-Encoding'] = 'chunked'
  const outgoing = send({ host: 'localhost', port, method, path: target, headers })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const text = (await buffer(response)).toString()
  const lines = Object.entries(response.headers).flatMap(([name, value]) =>
    value === undefined || hop.test(name) ? [] : [[name, String(value)] as const],
  )
  return { status: response.statusCode ?? 0, headers: Object.fromEntries(lines), body: text }
}
