/**
 * Serves a handler in Hono 4.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import {
  RawBodyError,
  readFetchBody,
  requestFromFetch,
  responseForFetch,
} from '../src/entry-adapter.js'
import type { Handler, HttpRequest } from '../src/index.js'
import { hasBody, headerLines, readNodeBody } from './node-body.js'

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
}

/** A Hono handler. */
export type HonoHandler = (context: HonoContext) => Promise<Response>

const remedy = 'mount the handler before anything that reads the body, such as a validator'

/**
 * Turns a handler into a Hono handler: `app.all('/auth/*', toHono(auth.handle))`.
 *
 * On Node.js, the adapter uses the request target and the header lines as received. On other runtimes it uses
 * what the Fetch API provides, and refuses requests in which that is ambiguous. `app.mount()` rewrites the
 * path: use `app.all()` or `app.route()`.
 *
 * @throws a `RawBodyError` (`ERR_RAW_BODY_UNAVAILABLE`) if the body has already been parsed.
 */
export function toHono(handle: Handler<string | Uint8Array>): HonoHandler {
  return async (context) => {
    const incoming = incomingOf(context)
    const request =
      incoming === undefined
        ? requestFromFetch(context.req.raw, await bodyOf(context.req))
        : await fromNode(incoming, context.req)
    return responseForFetch(await handle(request))
  }
}

/** Returns the Node.js request that `@hono/node-server` keeps. */
function incomingOf({ env }: HonoContext): IncomingMessage | undefined {
  const incoming = (env as { incoming?: Partial<IncomingMessage> } | undefined)?.incoming
  return Array.isArray(incoming?.rawHeaders) ? (incoming as IncomingMessage) : undefined
}

async function fromNode(incoming: IncomingMessage, req: HonoContext['req']): Promise<HttpRequest> {
  return {
    method: incoming.method ?? '',
    url: incoming.url ?? '',
    headers: headerLines(incoming),
    body: await nodeBodyOf(incoming, req),
  }
}

/**
 * Reads the Node.js stream while it is untouched, which avoids building a Fetch API request around the body.
 */
async function nodeBodyOf(incoming: IncomingMessage, req: HonoContext['req']): Promise<Uint8Array> {
  const untouched = incoming.readableFlowing === null && !incoming.readableDidRead
  if (untouched) return readNodeBody(incoming, {}, remedy)
  return hasBody(incoming) ? bodyOf(req) : new Uint8Array()
}

async function bodyOf(req: HonoContext['req']): Promise<Uint8Array> {
  if (!req.raw.bodyUsed) return readFetchBody(req.raw)
  // A body cached as bytes is intact; one cached as text has lost whatever was not UTF-8.
  if (req.bodyCache.arrayBuffer !== undefined) return new Uint8Array(await req.arrayBuffer())
  throw new RawBodyError(remedy)
}
