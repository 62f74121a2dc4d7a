import { invalidOption } from '../util/option-error.js'

export interface JsonPostOptions {
  /** How long an answer may take, in milliseconds, at most 60,000. Default 2,000. */
  readonly timeoutMs?: number
  /** Sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
}

/** Posts JSON and answers the bytes of the JSON that came back with 200. Rejects for any other answer. */
export type JsonPost = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
) => Promise<Uint8Array>

const timeoutMaxMs = 60_000
const answerBytesMax = 64 * 1024

/**
 * Posts to a server that the host has configured and trusts, so that its address may be a private one. Follows
 * no redirect, takes no more than 64 KiB, and gives up in time even where `fetch` knows of no signals. Errors
 * say which of these it was, and nothing of what was sent or came back.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` for options that could not work.
 */
export function jsonPost({
  fetch = globalThis.fetch,
  timeoutMs = 2_000,
}: JsonPostOptions): JsonPost {
  if (typeof fetch !== 'function') throw invalidOption('fetch', 'must be a function')
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > timeoutMaxMs) {
    throw invalidOption('timeoutMs', `must be an integer from 1 to ${timeoutMaxMs}`)
  }

  async function send(signal: AbortSignal, ...[url, headers, body]: Parameters<JsonPost>) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
      body: body as Uint8Array<ArrayBuffer>,
      redirect: 'manual',
      signal,
    })
    const { status, headers: received } = response
    const contentType = received.get('content-type') ?? ''
    return { status, contentType, content: await contentOf(response) }
  }

  return async (...request) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const { status, contentType, content } = await Promise.race([
      send(signal, ...request),
      aborted(signal),
    ]).catch((cause: unknown) => {
      throw signal.aborted ? new Error(`no response within ${timeoutMs} ms`) : unreachable(cause)
    })
    if (status !== 200) throw new Error(`the response has status ${status}`)
    if (content === undefined) throw new Error('the response is too large')
    if (!/^application\/json[\t ]*(?:;|$)/i.test(contentType)) {
      throw new Error('the response is not JSON')
    }
    return content
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}

/** Reads an answer no further than the limit; `undefined` for one that goes beyond. */
async function contentOf({ body }: Response): Promise<Uint8Array | undefined> {
  const reader = body?.getReader()
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
    chunks.push(read.value)
    length += read.value.length
    if (length > answerBytesMax) {
      await reader?.cancel()
      return undefined
    }
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}

/** Names the fault if the system had a name for it. */
function unreachable(cause: unknown): Error {
  const { code } = (cause instanceof Error && (cause.cause as { code?: unknown })) || {}
  const named = typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : ''
  return new Error(`the server cannot be reached${named}`, { cause })
}
