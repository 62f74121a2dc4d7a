/**
 * Serves a handler in Express 5 or 4, Connect, or a bare `http.createServer`.
 *
 * @module open-payments-server/express
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type MountOptions, passesOn, requireHandler } from '../src/entry-adapter.js'
import type { Handler } from '../src/index.js'
import { endUnread, type MaybeParsed, nodeRequest, readNodeBody } from './node-request.js'

export type { MaybeParsed, MountOptions }

/** A Node.js request handler, as Express and Connect accept it. */
export type NodeHandler = (
  request: IncomingMessage & MaybeParsed & { readonly originalUrl?: string },
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

const remedy =
  'mount the handler before whatever reads bodies, such as express.json(), express.urlencoded() or the body parser of ' +
  'another framework, best as the first line, with { fallthrough: true }. A parser that must come first keeps the ' +
  'bytes with { verify: (req, _res, buffer) => void Object.assign(req, { rawBody: buffer }) }, in Nest with ' +
  'NestFactory.create(AppModule, { rawBody: true })'

/**
 * Turns a handler into Express middleware: `app.use('/auth', toExpress(auth.handle))`. Mount it before any
 * body parser: with `fallthrough`, as the first line of the application.
 *
 * Passes an error with code `ERR_RAW_BODY_UNAVAILABLE` to `next` if a body parser has already consumed the
 * body: signatures cover the body's bytes, which a parsed value cannot restore. Calls neither the handler nor
 * `next` if the client closes the connection before the end of the body.
 *
 * @throws {InvalidInputError} if `handle` is not a function, and for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { toExpress } from 'open-payments-server/express'
 *
 * const app = express()
 * app.use(toExpress(wallet.handle)) // before any body parser
 * app.listen(3000)
 * ```
 */
export function toExpress(
  handle: Handler<string | Uint8Array>,
  options: MountOptions = {},
): NodeHandler {
  requireHandler('toExpress', handle, options)
  const { fallthrough = false } = options
  return (request, response, next) => {
    const line = { method: request.method ?? '', url: targetOf(request) }
    if (next !== undefined && passesOn(handle, options, line)) return next()
    serve(handle, request, response, fallthrough ? next : undefined).catch((error: unknown) => {
      if (next !== undefined) next(error)
      else response.destroy()
    })
  }
}

async function serve(
  handle: Handler<string | Uint8Array>,
  request: Parameters<NodeHandler>[0],
  response: ServerResponse,
  passOn: (() => void) | undefined,
): Promise<void> {
  const body = await readNodeBody(request, request, remedy)
  if (body === undefined) return
  const answer = await handle(nodeRequest(request, targetOf(request), body))
  // Nothing may be passed on whose body has been read.
  if (answer.unmatched && passOn !== undefined && body.length === 0) return passOn()
  endUnread(request, response, body)
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) {
    // Middleware, such as cors(), may have named other fields already.
    const earlier = name === 'vary' ? response.getHeader(name) : undefined
    response.setHeader(name, earlier === undefined ? value : `${earlier}, ${value}`)
  }
  response.end(answer.body)
}

function targetOf({ originalUrl, url = '' }: Parameters<NodeHandler>[0]): string {
  return originalUrl ?? url
}
