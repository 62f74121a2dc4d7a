import * as v from 'valibot'
import { timeout, withDeadline } from '../network/index.js'
import { jsonType } from '../protocol/json.js'
import { callback } from '../util/input.js'
import { readBounded } from '../util/read-bounded.js'

/** Posts JSON and resolves to a JSON response with status 200 or 409. Rejects for any other response. */
type JsonPost = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
) => Promise<{ readonly isConflict: boolean; readonly content: Uint8Array }>

const answerBytesMax = 64 * 1024

export const jsonPostOptions = {
  fetch: v.optional(callback<typeof fetch>(), () => globalThis.fetch),
  timeoutMs: v.optional(timeout, 2_000),
}

interface JsonPostSettings {
  readonly fetch: typeof fetch
  readonly timeoutMs: number
}

/**
 * Creates a function that posts to a server that the host configured and trusts, which may have a private address.
 * It does not follow redirects, reads at most 64 KiB, and enforces the timeout even if `fetch` ignores signals. Its
 * errors name the cause, but contain nothing of the request or response.
 */
export function jsonPost({ fetch, timeoutMs }: JsonPostSettings): JsonPost {
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
    return { status, contentType, content: await readBounded(response.body, answerBytesMax) }
  }

  return async (...request) => {
    let late = false
    const answer = withDeadline(timeoutMs, (signal) => {
      signal.addEventListener('abort', () => {
        late = true
      })
      return send(signal, ...request)
    })
    const { status, contentType, content } = await answer.catch((cause: unknown) => {
      throw late ? new Error(`no response within ${timeoutMs} ms`) : unreachable(cause)
    })
    const isConflict = status === 409
    if (status !== 200 && !isConflict) throw new Error(`the response has status ${status}`)
    if (content.length > answerBytesMax) throw new Error('the response is too large')
    if (!jsonType.test(contentType)) throw new Error('the response is not JSON')
    return { isConflict, content }
  }
}

/** Adds the system's error code, if there is one. */
function unreachable(cause: unknown): Error {
  const { code } = (cause instanceof Error && (cause.cause as { code?: unknown })) || {}
  const named = typeof code === 'string' && /^[A-Z_]+$/.test(code) ? ` (${code})` : ''
  return new Error(`the server cannot be reached${named}`, { cause })
}
