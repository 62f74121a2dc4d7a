/**
 * A request as it came over the wire. Signatures cover bytes and spellings, so nothing in it may have been
 * parsed, decoded or put in order.
 */
export interface HttpRequest {
  /** As received: `POST`. */
  readonly method: string
  /** The request target as received: path and query, still escaped (`originalUrl`, `raw.url`). */
  readonly url: string
  /** One entry for each header line, in order, names in any case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** True where the runtime joins header lines of one name, as Fetch does: then they cannot be counted. */
  readonly headersMerged?: boolean
  /** The bytes of the body; of a body over `bodyBytesMax` at least one byte more than that. */
  readonly body: Uint8Array
}

/**
 * What to send back. A `body` that is a string is sent in UTF-8. The servers of this library send text; a
 * handler of your own may send bytes: `Handler<string | Uint8Array>`.
 */
export interface HttpResponse<Body extends string | Uint8Array = string> {
  readonly status: number
  /** Header values by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Body
}

/** Serves one request. It answers everything that a client can send; it never rejects. */
export type Handler<Body extends string | Uint8Array = string> = (
  request: HttpRequest,
) => Promise<HttpResponse<Body>>

/** The largest request body that is read, in bytes. */
export const bodyBytesMax = 64 * 1024
