import { createHash, timingSafeEqual } from 'node:crypto'
import type { Handler } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { type IlpHandler, packetBytesMax, readPrepare, rejectsOf } from './packet.js'

type IlpResponse = HttpResponse<string | Uint8Array>

export interface IlpOverHttpOptions {
  /** Bearer tokens of the peer: several while one replaces another. */
  readonly token: string | readonly string[]
  readonly handle: IlpHandler
}

const mediaType = 'application/octet-stream'

/**
 * Serves an ILP handler over HTTP. Mount it on any path.
 *
 * @see Interledger RFC 0035
 */
export function ilpOverHttp(options: IlpOverHttpOptions): Handler<string | Uint8Array> {
  const digests = [options.token].flat().map(sha256)
  return async (request): Promise<IlpResponse> => {
    if (request.method !== 'POST') return refusal(405, { allow: 'POST' })
    const token = /^Bearer +(.+)$/i.exec(headerOf(request, 'authorization') ?? '')?.[1]
    if (token === undefined || !isAmong(digests, sha256(token))) {
      return refusal(401, { 'www-authenticate': 'Bearer' })
    }
    const [type = ''] = (headerOf(request, 'content-type') ?? '').split(';')
    if (type.trim().toLowerCase() !== mediaType) return refusal(415)
    if (request.body.length > packetBytesMax) return refusal(413)
    const body = await options.handle(request.body)
    return {
      status: 200,
      headers: { 'content-type': mediaType, 'cache-control': 'no-store' },
      body,
    }
  }
}

function refusal(status: number, headers: IlpResponse['headers'] = {}): IlpResponse {
  return { status, headers: { ...headers, 'cache-control': 'no-store' } }
}

/** Returns the value of a header that must occur exactly once. */
function headerOf({ headers }: HttpRequest, wanted: string): string | undefined {
  const values = headers.filter(([name]) => name.toLowerCase() === wanted)
  return values.length === 1 ? values[0]?.[1] : undefined
}

/** Compares digests of equal length in constant time. */
function isAmong(digests: readonly Buffer[], presented: Buffer): boolean {
  return digests.filter((digest) => timingSafeEqual(digest, presented)).length > 0
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

export interface SendOverHttpOptions {
  /** The peer's endpoint, such as `https://connector.example/ilp`. */
  readonly url: string
  readonly token: string
  /** The maximum time to wait for a reply, in milliseconds. Default: until the packet expires. */
  readonly timeoutMs?: number
}

/**
 * Sends ILP packets to a peer over HTTP, each once. It rejects a packet with a temporary code, after which a
 * sender may retry, only if no connection to the peer was established. If the outcome is unknown, the code is
 * R00: also after every response without an ILP packet, whatever its status, because something between the
 * two wallets may have sent it after it had forwarded the packet. (Interledger RFC 0035 suggests T00, after which
 * senders send the money again.)
 */
export function sendOverHttp({ url, token, timeoutMs }: SendOverHttpOptions): IlpHandler {
  const reject = rejectsOf('')
  const headers = { authorization: `Bearer ${token}`, 'content-type': mediaType, accept: mediaType }
  return async (packet) => {
    const prepare = readPrepare(packet)
    if (prepare === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const timeLeft = prepare.expiresAt.getTime() - Date.now()
    if (timeLeft <= 0) return reject('R02', 'The packet has expired')
    const signal = AbortSignal.timeout(Math.min(timeLeft, timeoutMs ?? timeLeft, timeoutMax))
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body: Buffer.from(packet),
        redirect: 'error',
        signal,
      })
      if (response.ok) return await readReplyBody(response)
      await response.body?.cancel()
      return reject('R00', `The response has status ${response.status}, and no ILP packet`)
    } catch (error) {
      return isUnsent(error)
        ? reject('T01', 'The peer cannot be reached')
        : reject('R00', 'The peer did not reply')
    }
  }
}

/** Reads the body of a response, up to the maximum packet size. */
async function readReplyBody({ body }: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > packetBytesMax) throw new Error('the reply is larger than an ILP packet')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Connectors do not hold packets longer, and timers are limited to 31 bits. */
const timeoutMax = 60_000

/** Returns whether no connection was established, so that the peer has not received the packet. */
function isUnsent(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } }
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(String(cause?.code))
}
