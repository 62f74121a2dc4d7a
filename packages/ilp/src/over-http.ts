import { timingSafeEqual } from 'node:crypto'
import type { Handler } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import {
  type IlpHandler,
  isFulfillmentOf,
  packetBytesMax,
  readPrepare,
  readReply,
  rejectsOf,
  sha256,
} from './packet.js'

type IlpResponse = HttpResponse<string | Uint8Array>

/** Who may send packets here, and who handles them. */
export interface IlpOverHttpOptions {
  /** Bearer tokens of the peer: several while one replaces another. */
  readonly token: string | readonly string[]
  readonly handle: IlpHandler
  /** Closes a packet of the peer, for peers that use `closeOverHttp`. Default: such requests are refused. */
  readonly close?: (condition: string) => Promise<Closed>
}

/** What becomes of a packet that was closed: it was fulfilled, or never will be. */
export type Closed =
  /** `fulfillment`: base64url. */
  { readonly outcome: 'fulfilled'; readonly fulfillment: string } | { readonly outcome: 'never' }

const mediaType = 'application/octet-stream'
const closeType = 'application/json'

/**
 *Serves an ILP handler over HTTP. Mount it on any path. A request with JSON closes a packet, which is not part of
 * Interledger.
 *
 * @see Interledger RFC 0035
 *
 * @example
 * ```ts
 * import { type IlpHandler, ilpOverHttp } from 'open-payments-ilp'
 * import { toExpress } from 'open-payments-server/express'
 *
 * const mount = (handle: IlpHandler) => toExpress(ilpOverHttp({ token: 'of the peer', handle }))
 * ```
 */
export function ilpOverHttp(options: IlpOverHttpOptions): Handler<string | Uint8Array> {
  const digests = [options.token].flat().map(sha256)
  return async (request): Promise<IlpResponse> => {
    if (request.method !== 'POST') return refusal(405, { allow: 'POST' })
    const token = /^Bearer +(.+)$/i.exec(headerOf(request, 'authorization') ?? '')?.[1]
    if (token === undefined || !isAmong(digests, sha256(token))) {
      return refusal(401, { 'www-authenticate': 'Bearer' })
    }
    const [first = ''] = (headerOf(request, 'content-type') ?? '').split(';')
    const type = first.trim().toLowerCase()
    if (request.body.length > packetBytesMax) return refusal(413)
    if (type === mediaType) return answer(mediaType, await options.handle(request.body))
    if (type !== closeType || options.close === undefined) return refusal(415)
    const condition = conditionIn(request.body)
    if (condition === undefined) return refusal(400)
    return answer(closeType, JSON.stringify({ condition, ...(await options.close(condition)) }))
  }
}

function answer(type: string, body: string | Uint8Array): IlpResponse {
  return { status: 200, headers: { 'content-type': type, 'cache-control': 'no-store' }, body }
}

/** Returns the condition in a request to close a packet: 32 bytes, base64url. */
function conditionIn(body: Uint8Array): string | undefined {
  const { close } = objectIn(body)
  return typeof close === 'string' && /^[\w-]{43}$/.test(close) ? close : undefined
}

function objectIn(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body)))
  } catch {
    return {}
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

/** Where packets are sent, and how long to wait for a reply. */
export interface SendOverHttpOptions {
  /** The peer's endpoint, such as `https://connector.example/ilp`. */
  readonly url: string
  readonly token: string
  /** The maximum time to wait for a reply, in milliseconds. Default: until the packet expires. */
  readonly timeoutMs?: number
}

/**
 * Sends ILP packets to a peer over HTTP, each once, with their condition as `Idempotency-Key`. It rejects a packet with
 * a temporary code, after which a sender may retry, only if no connection to the peer was established. If the outcome
 * is unknown, the code is R00: also after every response without an ILP packet, whatever its status, because something
 * between the two wallets may have sent it after it had forwarded the packet. (Interledger RFC 0035 suggests T00, after
 * which senders send the money again.)
 *
 * @example
 * ```ts
 * import { sendOverHttp } from 'open-payments-ilp'
 *
 * const send = sendOverHttp({ url: 'https://peer.example/ilp/g.wallet', token: 'for the peer' })
 * ```
 */
export function sendOverHttp(options: SendOverHttpOptions): IlpHandler {
  const reject = rejectsOf('')
  return async (packet) => {
    const prepare = readPrepare(packet)
    if (prepare === undefined) return reject('F01', 'The packet is not an ILP Prepare')
    const timeLeft = prepare.expiresAt.getTime() - Date.now()
    if (timeLeft <= 0) return reject('R02', 'The packet has expired')
    const key = { 'idempotency-key': prepare.executionCondition.toString('base64url') }
    try {
      const response = await post(options, mediaType, Buffer.from(packet), timeLeft, key)
      if (response.ok) {
        const reply = await readBody(response)
        if (readReply(reply) !== undefined) return reply
      }
      return reject('R00', `The response has status ${response.status}, and no ILP packet`)
    } catch (error) {
      return isUnsent(error)
        ? reject('T01', 'The peer cannot be reached')
        : reject('R00', 'The peer did not reply')
    }
  }
}

/**
 *Closes packets at a peer that serves `ilpOverHttp` with `close`. Afterwards, the peer's word about a packet is final.
 *
 * @returns a function that takes a condition, base64url, and resolves to `undefined` without a word of the peer itself.
 *
 * @example
 * ```ts
 * import { closeOverHttp } from 'open-payments-ilp'
 *
 * const close = closeOverHttp({ url: 'https://peer.example/ilp/g.wallet', token: 'for the peer' })
 * const closed = await close('2M9ZDxGnYbKdGPGZQnGzVXEQyvOWX5aGHqtYf7nkNlI')
 * if (closed?.outcome === 'never') console.log('it may be sent again')
 * ```
 */
export function closeOverHttp(options: SendOverHttpOptions) {
  return async (condition: string): Promise<Closed | undefined> => {
    try {
      const body = JSON.stringify({ close: condition })
      const response = await post(options, closeType, body, timeoutMax)
      return response.ok ? closedIn(await readBody(response), condition) : undefined
    } catch {
      return undefined
    }
  }
}

/** Reads the answer about a condition, and checks the fulfillment. */
function closedIn(body: Uint8Array, condition: string): Closed | undefined {
  const { condition: named, outcome, fulfillment } = objectIn(body)
  if (named !== condition) return undefined
  if (outcome === 'never') return { outcome }
  if (outcome !== 'fulfilled' || typeof fulfillment !== 'string') return undefined
  return isFulfillmentOf(fulfillment, condition) ? { outcome, fulfillment } : undefined
}

async function post(
  { url, token, timeoutMs = timeoutMax }: SendOverHttpOptions,
  type: string,
  body: Buffer | string,
  timeLeft: number,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': type, accept: type, ...more }
  const signal = AbortSignal.timeout(Math.min(timeLeft, timeoutMs, timeoutMax))
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'error', signal })
  if (!response.ok) await response.body?.cancel()
  return response
}

/** Reads the body of a response, up to the maximum packet size. */
async function readBody({ body }: Response): Promise<Uint8Array> {
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
  const { cause } = error as {
    readonly cause?: { readonly code?: unknown; readonly syscall?: unknown }
  }
  // A connection that was established can end with the same codes.
  if (cause?.syscall === 'read' || cause?.syscall === 'write') return false
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'].includes(String(cause?.code))
}
