import { type Handler, type HttpRequest, type HttpResponse, requireHandler } from './message.js'
import { type FetchBody, readBodyStream } from './request-body.js'

/**
 * The error for a request body whose bytes are unavailable because other code in the host read it first.
 *
 * @example
 * ```ts
 * import { RawBodyError, toFetch } from 'open-payments-server'
 *
 * const handle = toFetch(wallet.handle)
 * export async function POST(request: Request): Promise<Response> {
 *   try {
 *     return await handle(request)
 *   } catch (error) {
 *     if (error instanceof RawBodyError) console.error('mount it before the body parser', error)
 *     throw error
 *   }
 * }
 * ```
 */
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
 * What is needed of a request of the Fetch API. Structural, because the requests of some platforms, such as those of
 * Azure Functions, have only a part of its type.
 */
export interface FetchRequest {
  readonly method: string
  readonly url: string
  /** As of `Headers`, whose iterator some runtimes do not declare. */
  readonly headers: { forEach(each: (value: string, name: string) => void): void }
  readonly body: FetchBody | null
  readonly bodyUsed?: boolean
}

/**
 * Turns a handler into one of the Fetch API, as used by Next.js, Bun, Deno and Workers. The runtime has already
 * resolved dot segments and joined header lines, so requests that would be ambiguous because of this are refused.
 *
 * The returned handler rejects with a `RawBodyError` if the body has already been read.
 *
 * @throws {InvalidInputError} if `handle` is not a function.
 *
 * @example
 * ```ts
 * import { toFetch } from 'open-payments-server'
 *
 * export default { fetch: toFetch(wallet.handle) } // for Bun, Deno and Workers
 * ```
 */
export function toFetch(
  handle: Handler<string | Uint8Array>,
): (request: FetchRequest) => Promise<Response> {
  requireHandler('toFetch', handle)
  return async (request) => {
    const response = await handle(requestFromFetch(request, await readFetchBody(request)))
    return responseForFetch(response)
  }
}

/**
 * Converts a Fetch API request and its body to the request of a handler.
 *
 * @example
 * ```ts
 * import { readFetchBody, requestFromFetch } from 'open-payments-server/adapter'
 *
 * export async function serve(fetched: Request) {
 *   return wallet.handle(requestFromFetch(fetched, await readFetchBody(fetched)))
 * }
 * ```
 */
export function requestFromFetch(request: FetchRequest, body: Uint8Array): HttpRequest {
  const { method, url } = request
  const headers: [name: string, value: string][] = []
  request.headers.forEach((value, name) => {
    headers.push([name, value])
  })
  return { method, url: targetOf(url), headers, headersMerged: true, body }
}

/**
 * Converts the response of a handler to one of the Fetch API.
 *
 * @example
 * ```ts
 * import { responseForFetch } from 'open-payments-server/adapter'
 *
 * const response: Response = responseForFetch(await wallet.handle(request))
 * ```
 */
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
 * Reads the body of a Fetch API request, as `collectBody` describes. Does not cancel it.
 *
 * @throws {RawBodyError} if the body has already been read.
 *
 * @example
 * ```ts
 * import { readFetchBody, requestFromFetch, responseForFetch } from 'open-payments-server/adapter'
 *
 * export async function serve(fetched: Request): Promise<Response> {
 *   const body = await readFetchBody(fetched)
 *   return responseForFetch(await wallet.handle(requestFromFetch(fetched, body)))
 * }
 * ```
 */
export async function readFetchBody(request: FetchRequest): Promise<Uint8Array> {
  if (request.bodyUsed || request.body?.locked) {
    throw new RawBodyError('pass the request on before anything reads its body')
  }
  return request.body === null ? new Uint8Array() : readBodyStream(request.body)
}
