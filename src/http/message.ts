import * as v from 'valibot'
import { boolean, type Members, optionsOf, readInput } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'

/**
 * A request exactly as received. Signatures cover the exact bytes, so no part of it may be parsed, decoded or
 * reordered.
 */
export interface HttpRequest {
  /** The method as received, such as `POST`. */
  readonly method: string
  /** The request target as received: path and query, still percent-encoded (`originalUrl`, `raw.url`). */
  readonly url: string
  /** One entry for each header line, in the order received. Names may be in any case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** True if the runtime joins header lines with the same name, as Fetch does, so they cannot be counted. */
  readonly headersMerged?: boolean
  /** The bytes of the body. If it exceeds `bodyBytesMax`, its first `bodyBytesMax` + 1 bytes are enough. */
  readonly body: Uint8Array
}

/**
 * The response to send. Encode a string `body` in UTF-8. The servers of this library return strings; a
 * handler of your own may return bytes: `Handler<string | Uint8Array>`.
 */
export interface HttpResponse<Body extends string | Uint8Array = string> {
  readonly status: number
  /** Header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Body
  /**
   * True if the server has nothing for this request: neither an operation nor a wallet address. With `fallthrough`, the
   * adapter then passes the request on instead of this response.
   */
  readonly unmatched?: true
}

/** Serves requests. */
export interface Handler<Body extends string | Uint8Array = string> {
  /** Serves one request. Resolves to a response for every possible request, and never rejects. */
  (request: HttpRequest): Promise<HttpResponse<Body>>
  /**
   * Whether the handler may have a response for this method and path. Adapters with `fallthrough` ask before they read
   * the body. A handler that wraps another one should pass it on. Default: every request may match.
   */
  readonly mayMatch?: (request: Pick<HttpRequest, 'method' | 'url'>) => boolean
}

/** How an adapter mounts a handler. */
export interface MountOptions {
  /**
   * Passes requests for which the server has nothing on to the host, with their bodies unread. The handler can then be
   * the first line of an application. Default false: the server responds with 404 itself.
   */
  readonly fallthrough?: boolean
}

/**
 * The largest request body that is read, in bytes.
 *
 * @example
 * ```ts
 * import { bodyBytesMax } from 'open-payments-server/adapter'
 *
 * const isTooLong = (bytesRead: number) => bytesRead > bodyBytesMax // read no more of it
 * ```
 */
export const bodyBytesMax = 64 * 1024

/**
 * Whether an adapter passes a request on to the host before it reads the body.
 *
 * @example
 * ```ts
 * import { type Handler, passesOn } from 'open-payments-server/adapter'
 *
 * const isForHost = (handle: Handler, url: string) =>
 *   passesOn(handle, { fallthrough: true }, { method: 'POST', url })
 * ```
 */
export function passesOn(
  { mayMatch }: Handler<string | Uint8Array>,
  { fallthrough = false }: MountOptions,
  request: Pick<HttpRequest, 'method' | 'url'>,
): boolean {
  return fallthrough && mayMatch?.(request) === false
}

const mountOptions = optionsOf({
  fallthrough: v.optional(boolean),
} satisfies Members<MountOptions>)

/**
 * Checks the arguments of an adapter at once: a server instead of its `handle` would fail at each request.
 *
 * @param adapter the name of the function of the adapter, such as `toExpress`.
 * @throws {InvalidInputError} for a handler that is not a function, and for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import type { Handler } from 'open-payments-server'
 * import { requireHandler } from 'open-payments-server/adapter'
 *
 * export function toMyFramework(handle: Handler) {
 *   requireHandler('toMyFramework', handle)
 *   return { serve: handle }
 * }
 * ```
 */
export function requireHandler(adapter: string, handle: unknown, options: MountOptions = {}): void {
  if (typeof handle !== 'function') {
    const remedy = `pass the handle of a server, such as ${adapter}(auth.handle)`
    throw new InvalidInputError('handle', `must be a function: ${remedy}`)
  }
  readInput('', mountOptions, options)
}
