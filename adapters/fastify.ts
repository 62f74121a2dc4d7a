/**
 * Serves a handler in Fastify 5.
 *
 * @module open-payments-server/fastify
 */
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  RouteHandlerMethod,
} from 'fastify'
import { type MountOptions, passesOn, requireHandler } from '../src/entry-adapter.js'
import type { Handler } from '../src/index.js'
import { endUnread, type MaybeParsed, nodeRequest, readNodeBody } from './node-request.js'

export type { MountOptions }

const remedy =
  'do not let a hook or @fastify/express parse bodies on the path where the plugin is registered'

/**
 * Turns a handler into a Fastify plugin: `app.register(toFastify(auth.handle), { prefix: '/auth' })`.
 *
 * The plugin is encapsulated: it reads bodies as bytes for every content type, and the host's own routes keep
 * their parsers. Do not wrap it in `fastify-plugin`. `@fastify/cors` may be registered before or after it, and answers
 * preflights.
 *
 * @throws {InvalidInputError} if `handle` is not a function, and for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import fastify from 'fastify'
 * import { toFastify } from 'open-payments-server/fastify'
 *
 * const app = fastify()
 * app.register(toFastify(wallet.handle))
 * await app.listen({ port: 3000 })
 * ```
 */
export function toFastify(
  handle: Handler<string | Uint8Array>,
  options: MountOptions = {},
): FastifyPluginAsync {
  requireHandler('toFastify', handle, options)
  const { fallthrough = false } = options
  return async (app) => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (request, _payload, done) => {
      readBody(request).then((body) => done(null, body), done)
    })
    if (fallthrough) {
      app.addHook('onRequest', async ({ method, originalUrl: url }, reply) => {
        if (!passesOn(handle, options, { method, url })) return
        reply.callNotFound()
        return reply
      })
    }
    const serve = async (request: FastifyRequest, reply: FastifyReply) => {
      // Fastify does not read bodies of methods such as GET, but a client may have sent one.
      const body = request.body instanceof Uint8Array ? request.body : await readBody(request)
      // Without a body, the client has closed the connection, so no response is sent.
      if (body === undefined) return reply.hijack()
      const response = await handle(nodeRequest(request.raw, request.originalUrl, body))
      // Nothing may be passed on whose body has been read.
      if (response.unmatched && fallthrough && body.length === 0) return reply.callNotFound()
      endUnread(request.raw, reply.raw, body)
      const { vary, ...others } = response.headers
      reply.code(response.status).headers(others)
      // Hooks, such as those of @fastify/cors, may have named other fields already.
      if (vary !== undefined)
        reply.header('vary', [reply.getHeader('vary') ?? [], vary].flat().join(', '))
      // Send bytes, because Fastify adds a charset to the content type of text.
      return reply.send(response.body === undefined ? undefined : Buffer.from(response.body))
    }
    app.setErrorHandler(async (error, request, reply) => {
      // The handler validates the content type, as it does with every adapter.
      if (isMediaTypeError(error)) return serve(request, reply)
      throw error
    })
    const method = app.supportedMethods.filter((each) => each !== 'OPTIONS')
    for (const url of ['/', '/*']) {
      app.route({ method, url, handler: serve })
      serveOptions(app, url, serve)
    }
  }
}

/**
 * Routes OPTIONS requests: discovery to the handler, even if a hook of `@fastify/cors` would refuse it, and preflights
 * to the host if it has a route for all of them, as `@fastify/cors` adds. Without constraints, the two routes for all
 * paths would be the same route, declared twice.
 */
function serveOptions(app: FastifyInstance, url: string, handler: RouteHandlerMethod): void {
  if (!app.hasConstraintStrategy(purpose)) {
    let answersPreflights = false
    app.addConstraintStrategy({
      name: purpose,
      storage: () => new Map() as never,
      deriveConstraint: ({ headers }) => {
        const isPreflight = headers['access-control-request-method'] !== undefined
        if (!isPreflight) return 'discovery'
        return answersPreflights ? undefined : 'preflight'
      },
    })
    app.addHook('onReady', async () => {
      answersPreflights = app.hasRoute({ method: 'OPTIONS', url: '*' })
    })
  }
  const route = { method: 'OPTIONS', url, handler } as const
  const config: object = { cors: false }
  app.route({ ...route, config, constraints: { [purpose]: 'discovery' } })
  app.route({ ...route, constraints: { [purpose]: 'preflight' } })
}

/** The name of the constraint that distinguishes discovery from preflights. All plugins of an application share it. */
const purpose = 'openPaymentsOptions'

function readBody({ raw }: FastifyRequest): Promise<Uint8Array | undefined> {
  return readNodeBody(raw, raw as MaybeParsed, remedy)
}

function isMediaTypeError(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE'
  )
}
