/**
 * Serves a handler in Express 5 or 4, Connect, or a bare `http.createServer`.
 *
 * @module open-payments-server/express
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { bodyBytesMax, type MountOptions, requireHandler } from '../src/entry-adapter.js'
import type { Handler } from '../src/index.js'
import { type MaybeParsed, nodeRequest, readNodeBody } from './node-request.js'

export type { MaybeParsed, MountOptions }

/** A Node.js request handler, as Express and Connect accept it. */
export type NodeHandler = (
  request: IncomingMessage & MaybeParsed & { readonly originalUrl?: string },
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

const remedy =
  'mount the handler before express.json(), or keep the bytes with ' +
  'express.json({ verify: (req, _res, buffer) => void Object.assign(req, { rawBody: buffer }) }), ' +
  'in Nest with NestFactory.create(AppModule, { rawBody: true })'

/**
 * Turns a handler into Express middleware: `app.use('/auth', toExpress(auth.handle))`. Mount it before any
 * body parser.
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
  const url = request.originalUrl ?? request.url ?? ''
  const answer = await handle(nodeRequest(request, url, body))
  if (answer.unmatched && passOn !== undefined) return passOn()
  // The rest of a body that is too large is not read, so the connection must close after the response.
  if (body.length > bodyBytesMax) response.setHeader('connection', 'close')
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  response.end(answer.body)
}
