import { invalidOption } from '../util/option-error.js'
import { untilAborted } from './abort.js'

export interface JsonPostOptions {
  /** Timeout for a response, in milliseconds, at most 60,000. Default: 2,000. */
  readonly timeoutMs?: number
  /** Sends requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch
}

/** Posts JSON and resolves to the bytes of a JSON response with status 200. Rejects for any other response. */
export type JsonPost = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
) => Promise<Uint8Array>

const timeoutMaxMs = 60_000
const answerBytesMax = 64 * 1024

/**
 * Creates a function that posts to a server that the host configured and trusts, which may have a private address.
 * It does not follow redirects, reads at most 64 KiB, and enforces the timeout even if `fetch` ignores signals. Its
 * errors name the cause, but contain nothing of the request or response.
 *
 * @throws {OptionError} for an invalid option.
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
    const answer = untilAborted(signal, send(signal, ...request))
    const { status, contentType, content } = await answer.catch((cause: unknown) => {
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

/** Reads a response up to the limit. Returns `undefined` if it is longer. */
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

/** Adds the system's error code, if there is one. */
function unreachable(cause: unknown): Error {
  const { code } = (cause instanceof Error && (cause.cause as { code?: unknown })) || {}
  const named = typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : ''
  return new Error(`the server cannot be reached${named}`, { cause })
}
