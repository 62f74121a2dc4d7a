import { createHash, timingSafeEqual } from 'node:crypto'
import type { Handler, HttpRequest, HttpResponse } from 'open-payments-server'
import { type IlpHandler, packetBytesMax, readPrepare, rejectsOf } from './packet.js'

type IlpResponse = HttpResponse<string | Uint8Array>

export interface IlpOverHttpOptions {
  /** Bearer tokens that the peer may present: several while one replaces another. */
  readonly token: string | readonly string[]
  readonly handle: IlpHandler
}

const mediaType = 'application/octet-stream'

/**
 * Serves an ILP handler over HTTP, at whatever path it is mounted on.
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

/** The value of a header that must be there once. */
function headerOf({ headers }: HttpRequest, wanted: string): string | undefined {
  const values = headers.filter(([name]) => name.toLowerCase() === wanted)
  return values.length === 1 ? values[0]?.[1] : undefined
}

/** Compares digests, which have one length, in a time that depends on neither of them. */
function isAmong(digests: readonly Buffer[], presented: Buffer): boolean {
  return digests.filter((digest) => timingSafeEqual(digest, presented)).length > 0
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

export interface SendOverHttpOptions {
  /** The endpoint of the peer, such as `https://connector.example/ilp`. */
  readonly url: string
  readonly token: string
  /** The longest wait for a reply, in milliseconds. Default: until the packet expires. */
  readonly timeoutMs?: number
}

/**
 * Sends ILP packets to a peer over HTTP, each once. Only what certainly has not been processed is rejected with a
 * temporary code, after which a sender may try again; where the outcome is unknown the code is R00.
 */
export function sendOverHttp({ url, token, timeoutMs }: SendOverHttpOptions): IlpHandler {
  const reject = rejectsOf('')
  const headers = { authorization: `Bearer ${token}`, 'content-type': mediaType, accept: mediaType }
  return async (packet) => {
    const prepare = readPrepare(packet)
    if (prepare === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const timeLeft = prepare.expiresAt.getTime() - Date.now()
    if (timeLeft <= 0) return reject('R00', 'The packet has expired')
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
      return rejectFor(response.status)
    } catch (error) {
      return isUnsent(error)
        ? reject('T01', 'The peer cannot be reached')
        : reject('R00', 'The peer did not reply')
    }
  }

  function rejectFor(status: number): Uint8Array {
    if (status === 429 || status === 503) return reject('T03', `The peer answered ${status}`)
    const refused = status >= 400 && status < 500
    return reject(refused ? 'F00' : 'R00', `The peer answered ${status}`)
  }
}

/** The body of a response, read no further than the largest packet. */
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

/** No connector keeps a packet longer, and a timer takes no more than 31 bits. */
const timeoutMax = 60_000

/** Whether no connection came about, so that the peer has seen nothing of the packet. */
function isUnsent(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } }
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(String(cause?.code))
}
