/**
 * Serves a handler in Hono 4.
 *
 * @module
 */
import type { IncomingMessage } from 'node:http'
import {
  rawBodyError,
  readFetchBody,
  requestFromFetch,
  responseForFetch,
} from '../src/entry-adapter.js'
import type { Handler, HttpRequest } from '../src/index.js'
import { hasBody, headerLines, readNodeBody } from './node-body.js'

/** As much of Hono's `Context` as is needed: structural, since two copies of Hono share no types. */
export interface HonoContext {
  readonly req: {
    readonly raw: Request
    readonly bodyCache: { readonly arrayBuffer?: unknown }
    arrayBuffer(): Promise<ArrayBuffer>
  }
  readonly env: unknown
}

/** A handler of Hono. */
export type HonoHandler = (context: HonoContext) => Promise<Response>

const remedy = 'mount the handler before anything that reads the body, such as a validator'

/**
 * Turns a handler into one of Hono: `app.all('/auth/*', toHono(auth.handle))`.
 *
 * On Node the request target and the header lines are taken as they were received; on other runtimes as
 * the Fetch API gives them, and what that could hide is refused. `app.mount()` rewrites the path: use
 * `app.all()` or `app.route()`.
 *
 * @throws an error with code `ERR_RAW_BODY_UNAVAILABLE` when the body has been parsed already.
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

/** What `@hono/node-server` keeps of the request that Node received. */
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

/** As long as nobody has begun to read, no Fetch API request has to be built around the body. */
async function nodeBodyOf(incoming: IncomingMessage, req: HonoContext['req']): Promise<Uint8Array> {
  const untouched = incoming.readableFlowing === null && !incoming.readableDidRead
  if (untouched) return readNodeBody(incoming, {}, remedy)
  return hasBody(incoming) ? bodyOf(req) : new Uint8Array()
}

async function bodyOf(req: HonoContext['req']): Promise<Uint8Array> {
  if (!req.raw.bodyUsed) return readFetchBody(req.raw)
  // Bytes that were read as bytes are as good as new; text has lost what was not UTF-8.
  if (req.bodyCache.arrayBuffer !== undefined) return new Uint8Array(await req.arrayBuffer())
  throw rawBodyError(remedy)
}
