import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { type KeyPair, type SignOptions, signedRequest } from 'open-payments-server-testing'

/** The function that sends a request, with the signature of the global `fetch`. */
export type SendFetch = typeof fetch

/** A request of a client to a deployed server. */
export interface WireRequest {
  readonly method: string
  readonly url: string
  /** Text and bytes are sent unchanged, any other value as JSON. Default: no body. */
  readonly body?: unknown
  /** An access token or continuation token. */
  readonly token?: string
  /** Additional header lines. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** `false` sends the request without a signature. Otherwise, what differs from an ordinary signature. */
  readonly sign?: false | SignatureChanges
}

/** What a request has instead of the ordinary signature of the client. */
export interface SignatureChanges
  extends Partial<
    Pick<SignOptions, 'created' | 'components' | 'parameters' | 'digest' | 'override' | 'nonce'>
  > {
  readonly key?: KeyPair
  /** Replaces the body after the request was signed. */
  readonly sentBody?: string
}

/** The response of a deployed server. */
export interface WireAnswer {
  /** Method and URL of the request. */
  readonly request: string
  /** Whether the request had content. Absent if that is unknown. */
  readonly hadContent?: boolean
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed JSON of the body, or `undefined` if the body is not JSON. */
  readonly body: unknown
}

export interface Sender {
  readonly key: KeyPair
  readonly fetch: SendFetch
  readonly requestTimeoutMs: number
  /** The current time in milliseconds. */
  readonly now: () => number
}

/** The body of a response is not what its header announced, or too long. */
export class BrokenResponse extends Error {
  readonly kind: 'cut-off' | 'encoding' | 'not-utf-8' | 'too-long'

  constructor(kind: BrokenResponse['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

const responseBytesMax = 1024 * 1024

/**
 * Sends a request and reads at most 1 MiB of the response. Redirects are not followed. Rejects with a `BrokenResponse`
 * if the response cannot be read.
 */
export async function exchange(sender: Sender, request: WireRequest): Promise<WireAnswer> {
  const { method, url } = request
  const { headers, body } = request.sign === false ? unsigned(request) : signed(sender, request)
  const response = await sender.fetch(url, {
    method,
    headers: [['Accept', 'application/json'], ...headers] as [string, string][],
    redirect: 'manual',
    signal: AbortSignal.timeout(sender.requestTimeoutMs),
    ...(body.length > 0 && { body: body as Uint8Array<ArrayBuffer> }),
  })
  const text = await textOf(response, `the response to ${method} ${url}`)
  const answered = { status: response.status, headers: response.headers, text }
  const sent = { request: `${method} ${url}`, hadContent: body.length > 0 }
  return { ...sent, ...answered, body: parsed(text) }
}

interface Message {
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

function unsigned({ body, token, headers = [] }: WireRequest): Message {
  const content = contentOf(body)
  const lines: [string, string][] = headers.map(([name, value]) => [name, value])
  if (token !== undefined) lines.push(['Authorization', `GNAP ${token}`])
  if (content !== undefined) lines.push(['Content-Type', 'application/json'])
  return { headers: lines, body: Buffer.from(content ?? '') }
}

function signed(sender: Sender, request: WireRequest): Message {
  const { body, sign, ...rest } = request
  const content = contentOf(body)
  const { sentBody, ...changes } = sign === undefined || sign === false ? {} : sign
  const { headers, body: covered } = signedRequest({
    ...rest,
    key: sender.key,
    created: Math.floor(sender.now() / 1000),
    // Without a nonce, a server may take two equal requests of one second for a replay.
    nonce: randomUUID(),
    ...(content !== undefined && { body: content }),
    ...changes,
  })
  if (sentBody === undefined) return { headers, body: covered }
  const others = headers.filter(([name]) => name.toLowerCase() !== 'content-length')
  return { headers: others, body: Buffer.from(sentBody) }
}

function contentOf(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) return body
  return JSON.stringify(body)
}

/** Reads at most 1 MiB of a body. Rejects with a `BrokenResponse` if it cannot be read. */
export async function bytesOf(response: Response, what: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of response.body ?? []) {
      length += chunk.length
      if (length > responseBytesMax) break
      chunks.push(chunk)
    }
  } catch (error) {
    const { name, cause, code } = error as Error & { readonly code?: string }
    if (name === 'TimeoutError') throw error
    const encoded = `${code ?? (cause as { code?: string } | undefined)?.code}`.startsWith('Z_')
    if (encoded) throw new BrokenResponse('encoding', `${what} is not in its Content-Encoding`)
    throw new BrokenResponse('cut-off', `${what} is cut off`)
  }
  if (length > responseBytesMax) throw new BrokenResponse('too-long', `${what} has more than 1 MiB`)
  return Buffer.concat(chunks)
}

async function textOf(response: Response, what: string): Promise<string> {
  const bytes = Buffer.from(await bytesOf(response, what))
  // Other bytes are no JSON at all, such as those of a compressed body.
  const isJson = /^\s*[[{]/.test(bytes.toString('latin1', 0, 100))
  if (isJson && !isUtf8(bytes)) throw new BrokenResponse('not-utf-8', `${what} is not UTF-8`)
  return bytes.toString()
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
