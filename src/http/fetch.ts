import { readBounded } from '../util/read-bounded.js'
import {
  bodyBytesMax,
  type Handler,
  type HttpRequest,
  type HttpResponse,
  requireHandler,
} from './message.js'

/** The error for a request body whose bytes are unavailable because other code in the host read it first. */
export class RawBodyError extends TypeError {
  readonly code = 'ERR_RAW_BODY_UNAVAILABLE'

  /** `remedy` says how to mount the handler. */
  constructor(remedy: string) {
    const problem =
      'the request body was consumed before open-payments-server could verify its bytes'
    super(`${problem}: ${remedy}`)
  }
}

/**
 * Turns a handler into one of the Fetch API, as used by Next.js, Bun, Deno and Workers. The runtime has already resolved dot segments and joined header
 * lines, so requests that would be ambiguous because of this are refused.
 *
 * The returned handler rejects with a `RawBodyError` if the body has already been read.
 *
 * @throws {InvalidInputError} if `handle` is not a function.
 */
export function toFetch(
  handle: Handler<string | Uint8Array>,
): (request: Request) => Promise<Response> {
  requireHandler('toFetch', handle)
  return async (request) => {
    const response = await handle(requestFromFetch(request, await readFetchBody(request)))
    return responseForFetch(response)
  }
}

/** Converts a Fetch API request and its body to the request of a handler. */
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

/** Returns path and query exactly as in the URL. The origin is dropped: the client chose it in `Host`. */
function targetOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('#')
  return start === -1 ? '/' : url.slice(start, end === -1 ? undefined : end)
}

/**
 * Reads the body of a Fetch API request. Stops reading once the body exceeds `bodyBytesMax`.
 *
 * @throws {RawBodyError} if the body has already been read.
 */
export async function readFetchBody(request: Request): Promise<Uint8Array> {
  if (request.bodyUsed || request.body?.locked) {
    throw new RawBodyError('pass the request on before anything reads its body')
  }
  return readBounded(request.body, bodyBytesMax)
}
