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
   * True if the server has nothing at this path: neither an operation nor a wallet address. The status is 404 or 405.
   */
  readonly unmatched?: true
}

/** Serves one request. Resolves to a response for every possible request, and never rejects. */
export type Handler<Body extends string | Uint8Array = string> = (
  request: HttpRequest,
) => Promise<HttpResponse<Body>>

/** How an adapter mounts a handler. */
export interface MountOptions {
  /**
   * Passes requests for paths at which the server has nothing on to the host, such as to its page for 404. Mount the
   * handler after your own routes: it has read the body by then. Default false: the server responds with 404 itself.
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
