import { bodyBytesMax, type Handler, type HttpRequest, type HttpResponse } from './message.js'

/** A handler of the Fetch API, as Next.js, Bun, Deno and Workers take it. */
export type FetchHandler = (request: Request) => Promise<Response>

/** The bytes of a body are gone, because something in the host read it first. */
export interface RawBodyError extends TypeError {
  readonly code: 'ERR_RAW_BODY_UNAVAILABLE'
}

/** Says that a body was consumed before it could be verified, and how to mount the handler instead. */
export function rawBodyError(remedy: string): RawBodyError {
  const problem = 'the request body was consumed before open-payments-server could verify its bytes'
  return Object.assign(new TypeError(`${problem}: ${remedy}`), {
    code: 'ERR_RAW_BODY_UNAVAILABLE' as const,
  })
}

/**
 * Serves a handler where requests come as Fetch API objects. The runtime has resolved dot segments and
 * joined header lines by then, so what could hide behind that is refused.
 *
 * @throws {RawBodyError} when the body has been read already.
 */
export function toFetch(handle: Handler<string | Uint8Array>): FetchHandler {
  return async (request) => {
    const response = await handle(requestFromFetch(request, await readFetchBody(request)))
    return responseForFetch(response)
  }
}

/** What a Fetch API request, whose body has been read, is to a handler. */
export function requestFromFetch(request: Request, body: Uint8Array): HttpRequest {
  const { method, url, headers } = request
  return { method, url: targetOf(url), headers: [...headers], headersMerged: true, body }
}

export function responseForFetch({
  status,
  headers,
  body,
}: HttpResponse<string | Uint8Array>): Response {
  return new Response(body ?? null, { status, headers: { ...headers } })
}

/** Path and query as they stand in the URL; its origin is whatever the client claimed in `Host`. */
function targetOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('#')
  return start === -1 ? '/' : url.slice(start, end === -1 ? undefined : end)
}

/**
 * Reads the body of a Fetch API request, no further than one byte over the limit.
 *
 * @throws {RawBodyError} when the body has been read already.
 */
export async function readFetchBody(request: Request): Promise<Uint8Array> {
  if (request.bodyUsed || request.body?.locked) {
    throw rawBodyError('pass the request on before anything reads its body')
  }
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const chunks: Uint8Array[] = []
  let length = 0
  while (length <= bodyBytesMax) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    length += value.length
  }
  if (length > bodyBytesMax) await reader.cancel()
  return concatenate(chunks, length)
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only, ...others] = chunks
  if (only !== undefined && others.length === 0) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
