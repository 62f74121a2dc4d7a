/**
 * Serves a handler in Hono 4.
 *
 * @module open-payments-server/hono
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { MountOptions } from '../src/entry-adapter.js'
import {
  passesOn,
  RawBodyError,
  readFetchBody,
  requestFromFetch,
  requireHandler,
  responseForFetch,
} from '../src/entry-adapter.js'
import type { Handler } from '../src/index.js'
import { endUnread, hasBody, nodeRequest, readNodeBody } from './node-request.js'

/**
 * The part of Hono's `Context` that the adapter needs. Structural, because two copies of Hono share no types.
 */
export interface HonoContext {
  readonly req: {
    readonly raw: Request
    readonly bodyCache: { readonly arrayBuffer?: unknown }
    arrayBuffer(): Promise<ArrayBuffer>
  }
  readonly env: unknown
  readonly res: Response
}

export type { MountOptions }

/** A Hono handler. */
export type HonoHandler = (context: HonoContext, next?: () => Promise<void>) => Promise<Response>

const remedy = 'mount the handler before anything that reads the body, such as a validator'

/**
 * Turns a handler into a Hono handler: `app.all('/auth/*', toHono(auth.handle))`.
 *
 * On Node.js, the adapter uses the request target and the header lines as received. On other runtimes it uses
 * what the Fetch API provides, and refuses requests in which that is ambiguous. `app.mount()` rewrites the
 * path: use `app.all()` or `app.route()`.
 *
 * The returned handler rejects with a `RawBodyError` (`ERR_RAW_BODY_UNAVAILABLE`) if the body has already been parsed.
 *
 * @throws {InvalidInputError} if `handle` is not a function, and for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { toHono } from 'open-payments-server/hono'
 *
 * const app = new Hono()
 * app.all('*', toHono(wallet.handle))
 * export default app
 * ```
 */
export function toHono(
  handle: Handler<string | Uint8Array>,
  options: MountOptions = {},
): HonoHandler {
  requireHandler('toHono', handle, options)
  const { fallthrough = false } = options
  return async (context, next) => {
    const node = nodeOf(context)
    const { req } = context
    const requestWith = (body: Uint8Array) =>
      node === undefined
        ? requestFromFetch(req.raw, body)
        : nodeRequest(node.incoming, node.incoming.url ?? '', body)
    const passOn =
      fallthrough && next !== undefined
        ? async () => {
            await next()
            return context.res
          }
        : undefined
    if (passOn !== undefined && passesOn(handle, options, requestWith(empty))) return passOn()
    const body = await (node === undefined ? bodyOf(req) : nodeBodyOf(node.incoming, req))
    // Hono requires a response, even if the client has disconnected.
    if (body === undefined) return new Response(null, { status: 400 })
    const answer = await handle(requestWith(body))
    // Nothing may be passed on whose body has been read.
    if (answer.unmatched && passOn !== undefined && body.length === 0) return passOn()
    if (node !== undefined) endUnread(node.incoming, node.outgoing, body)
    return responseForFetch(answer)
  }
}

const empty = new Uint8Array()

/** What `@hono/node-server` keeps of Node.js. */
interface NodeExchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

function nodeOf({ env }: HonoContext): NodeExchange | undefined {
  const node = env as Partial<NodeExchange> | undefined
  return Array.isArray(node?.incoming?.rawHeaders) ? (node as NodeExchange) : undefined
}

/**
 * Reads the Node.js stream while it is untouched, which avoids building a Fetch API request around the body.
 */
async function nodeBodyOf(
  incoming: IncomingMessage,
  req: HonoContext['req'],
): Promise<Uint8Array | undefined> {
  const untouched = incoming.readableFlowing === null && !incoming.readableDidRead
  if (untouched) return readNodeBody(incoming, {}, remedy)
  return hasBody(incoming) ? bodyOf(req) : empty
}

/** Resolves to `undefined` if the client closes the connection before the end of the body. */
async function bodyOf(req: HonoContext['req']): Promise<Uint8Array | undefined> {
  if (!req.raw.bodyUsed) {
    return readFetchBody(req.raw).catch((error: unknown) => {
      if (req.raw.signal.aborted) return undefined
      throw error
    })
  }
  // A body cached as bytes is intact; one cached as text has lost whatever was not UTF-8.
  if (req.bodyCache.arrayBuffer !== undefined) return new Uint8Array(await req.arrayBuffer())
  throw new RawBodyError(remedy)
}
