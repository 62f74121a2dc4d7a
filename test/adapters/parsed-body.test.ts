import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { validator } from 'hono/validator'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { type Handler, toFetch } from '../../src/index.js'
import { fastifyServer, honoServer, listening, stopped } from '../support/hosts.js'
import { chunkedBytes, exchange, requestBytes } from '../support/raw-http.js'
import { createWorld, grantEndpoint, incomingAccess } from '../support/world.js'

const json = ['Content-Type', 'application/json'] as const
const frame = [
  ['Host', 'w.example'],
  ['Connection', 'close'],
] as const
/** JSON that no parser restores exactly: white space, an escape, a number, letters beyond ASCII. */
const plain = Buffer.from('{ "a": 1.0,\r\n "b": "\\u00e9é" }\n')

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopped))
})

async function started(server: Server): Promise<number> {
  servers.push(server)
  return listening(server)
}

/** A handler that records the bodies that it receives. */
function bodies() {
  const given: Buffer[] = []
  const handle: Handler = async ({ body }) => {
    given.push(Buffer.from(body))
    return { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }
  }
  return { given, handle }
}

function post(body: Uint8Array, headers: readonly (readonly [string, string])[] = [json]) {
  const length = ['Content-Length', `${body.length}`] as const
  return requestBytes('POST', '/auth', [...frame, ...headers, length], body)
}

function postInChunks(body: Uint8Array): Buffer {
  const headers = [...frame, json, ['Transfer-Encoding', 'chunked'] as const]
  return requestBytes('POST', '/auth', headers, chunkedBytes(body, 5))
}

const withoutBody = [
  ['a POST without a body', requestBytes('POST', '/auth', frame)],
  ['a POST with JSON content type and an empty body', post(new Uint8Array())],
  [
    'a DELETE with JSON content type and an empty body',
    requestBytes('DELETE', '/auth', [...frame, json]),
  ],
  ['a GET', requestBytes('GET', '/auth', frame)],
] as const

function expectUnavailable(error: unknown, remedy: RegExp): void {
  expect(error).toBeInstanceOf(TypeError)
  expect(error).toMatchObject({ code: 'ERR_RAW_BODY_UNAVAILABLE' })
  expect((error as Error).message).toMatch(/consumed before open-payments-server could verify/)
  expect((error as Error).message).toMatch(remedy)
}

/** Returns a signed grant request in bytes, and its handler. */
function signedGrant() {
  const { auth, client } = createWorld()
  const shop = client()
  const grant = { client: shop.client, access_token: { access: [incomingAccess] } }
  const body = JSON.stringify(grant, null, '\t').replaceAll('\n', '\r\n')
  const request: HttpRequest = shop.sign({ method: 'POST', url: grantEndpoint, body })
  const headers = [...frame, ...request.headers]
  return { handle: auth.handle, bytes: requestBytes('POST', request.url, headers, request.body) }
}

/** Lets all pending events run. */
async function turns(): Promise<void> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** A framework: how it runs something before the handler, and the port and the errors of that application. */
interface Framework<Before> {
  readonly host: (before: Before, handle: Handler) => Promise<{ port: number; errors: unknown[] }>
  readonly withoutErrorHandler: (handle: Handler) => Server | Promise<Server>
  readonly remedy: RegExp
  /** What consumes a body and keeps nothing. */
  readonly readers: Readonly<Record<string, Before>>
  /** What leaves the bytes of a body to the handler. */
  readonly keepers: Readonly<Record<string, Before>>
}

function verifiesBodies<Before>(framework: Framework<Before>): void {
  const { host, readers, keepers, remedy } = framework
  const [parser] = Object.values(readers) as [Before]

  test.each(Object.entries(readers))(
    'reports a body that %s has consumed, and does not hang',
    async (_, reader) => {
      const { given, handle } = bodies()
      const { port, errors } = await host(reader, handle)
      for (const bytes of [post(plain), postInChunks(plain)]) {
        expect((await exchange(port, bytes)).status).toBe(500)
        expectUnavailable(errors.pop(), remedy)
      }
      expect(given).toEqual([])
    },
  )

  test('responds with 500 if the host has no error handler', async () => {
    const { given, handle } = bodies()
    // Hono prints it.
    const printed = vi.spyOn(console, 'error').mockReturnValue()
    const server = await framework.withoutErrorHandler(handle)
    expect((await exchange(await started(server), post(plain))).status).toBe(500)
    expect(given).toEqual([])
    const others = printed.mock.calls.flat().filter((error) => !/was consumed/.test(`${error}`))
    expect(others).toEqual([])
    printed.mockRestore()
  })

  test.each(Object.entries(keepers))(
    'receives the exact bytes after %s, and serves a signed request',
    async (_, keeper) => {
      const { given, handle } = bodies()
      const { port, errors } = await host(keeper, handle)
      for (const bytes of [post(plain), postInChunks(plain)]) {
        expect((await exchange(port, bytes)).status, `${errors}`).toBe(200)
      }
      expect(given).toEqual([plain, plain])
      const signed = signedGrant()
      const { port: own } = await host(keeper, signed.handle)
      const response = await exchange(own, signed.bytes)
      expect(response.status).toBe(200)
      expect(JSON.parse(response.body.toString())).toHaveProperty('access_token')
    },
  )

  test.each(withoutBody)('accepts %s after a parser', async (_, bytes) => {
    const { given, handle } = bodies()
    const { port, errors } = await host(parser, handle)
    expect((await exchange(port, bytes)).status, `${errors}`).toBe(200)
    expect(given).toEqual([Buffer.alloc(0)])
    expect(errors).toEqual([])
  })
}

const keepRaw = express.json({
  verify: (request, _response, buffer) => {
    Object.assign(request, { rawBody: buffer })
  },
})

describe('express', () => {
  async function host(before: RequestHandler, handle: Handler) {
    const errors: unknown[] = []
    const keep: ErrorRequestHandler = (error, _request, response, _next) => {
      errors.push(error)
      response.status(500).json({ code: error.code })
    }
    const app = express().use(before).use('/auth', toExpress(handle)).use(keep)
    return { port: await started(createServer(app)), errors }
  }

  verifiesBodies<RequestHandler>({
    host,
    withoutErrorHandler: (handle) =>
      createServer(express().set('env', 'test').use(express.json(), toExpress(handle))),
    remedy: /before whatever reads bodies.*urlencoded.*first line.*verify.*rawBody/,
    readers: {
      'express.json()': express.json(),
      'express.json() of every type': express.json({ type: () => true, strict: false }),
      'express.text()': express.text({ type: '*/*' }),
      'express.urlencoded()': express.urlencoded({ type: '*/*' }),
      async 'a middleware that reads the stream to its end'(request, _response, next) {
        for await (const _ of request);
        next()
      },
      'a middleware that reads the first chunk'(request, _response, next) {
        request.once('data', () => {
          request.pause()
          next()
        })
      },
    },
    keepers: {
      'express.json() that keeps the bytes in rawBody': keepRaw,
      'express.raw()': express.raw({ type: '*/*' }),
      'express.json() for another type': express.json({ type: 'application/vnd.api+json' }),
      'express.json() on another path': express.Router().use('/admin', express.json()),
      'no parser': (_request, _response, next) => next(),
    },
  })

  test('refuses a body with a content coding, although a parser kept the decoded bytes', async () => {
    const { port } = await host(keepRaw, signedGrant().handle)
    const bytes = post(gzipSync(plain), [json, ['Content-Encoding', 'gzip']])
    expect((await exchange(port, bytes)).status).toBe(415)
  })

  test('closes the connection if there is no `next` to report to', async () => {
    const { given, handle } = bodies()
    const serve = toExpress(handle)
    const server = createServer((request, response) => {
      request.resume()
      request.once('end', () => serve(request, response))
    })
    await expect(exchange(await started(server), post(plain))).rejects.toThrow('no response')
    expect(given).toEqual([])
  })

  test.each(['in the middle of its body', 'before the handler ran'])(
    'passes on no error when a client disconnects %s',
    async (when) => {
      const { given, handle } = bodies()
      const errors: unknown[] = []
      const serve = toExpress(handle)
      const server = createServer()
      const closed = new Promise<void>((resolve) => {
        server.on('request', (request, response) => {
          const run = () => void serve(request, response, (error) => errors.push(error))
          if (when !== 'before the handler ran') run()
          request.once('close', () => {
            // As after slow middleware.
            if (when === 'before the handler ran') run()
            resolve()
          })
        })
      })
      const client = connect(await started(server), 'localhost')
      client.write(post(plain).subarray(0, -5))
      await once(server, 'request')
      client.destroy()
      await closed
      await turns()
      expect([errors, given]).toEqual([[], []])
    },
  )
})

describe('fastify', () => {
  type Prepare = (app: FastifyInstance) => unknown

  async function hosted(prepare: Prepare, handle: Handler) {
    const errors: unknown[] = []
    const app = fastify()
    app.setErrorHandler((error, _request, reply) => {
      errors.push(error)
      return reply.code(500).send({})
    })
    prepare(app)
    app.register(toFastify(handle), { prefix: '/auth' })
    await app.ready()
    return { app, port: await started(app.server), errors }
  }

  /** Does what @fastify/express does: runs middleware before everything else, over the raw request. */
  const middleware =
    (use: RequestHandler): Prepare =>
    (app) =>
      app.addHook('onRequest', (request, reply, done) =>
        use(request.raw as never, reply.raw as never, done as never),
      )

  const consumed = async (request: IncomingMessage) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  verifiesBodies<Prepare>({
    host: hosted,
    withoutErrorHandler: (handle) =>
      fastifyServer((app) => {
        middleware(express.json())(app)
        app.register(toFastify(handle))
      }),
    remedy: /do not let a hook .*parse bodies/,
    readers: {
      'express.json() of @fastify/express': middleware(express.json()),
      'express.text() of @fastify/express': middleware(express.text({ type: '*/*' })),
      'an onRequest hook': (app) =>
        app.addHook('onRequest', async ({ raw }) => void (await consumed(raw))),
      'a preParsing hook': (app) =>
        app.addHook('preParsing', async ({ raw }, _reply, payload) => {
          await consumed(raw)
          return payload
        }),
    },
    keepers: {
      'express.json() that keeps the bytes in rawBody': middleware(keepRaw),
      'express.raw() of @fastify/express': middleware(express.raw({ type: '*/*' })),
      'express.json() on another path': middleware(express.Router().use('/admin', express.json())),
      'a platform that read the stream and kept its bytes': (app) =>
        app.addHook('onRequest', async ({ raw }) => {
          Object.assign(raw, { rawBody: await consumed(raw) })
        }),
      "parsers of the host's own": (app) =>
        app.addContentTypeParser('*', { parseAs: 'string' }, (_r, body, done) => done(null, body)),
    },
  })

  test("leaves the parsers of the host's own routes unchanged", async () => {
    const { given, handle } = bodies()
    const { app } = await hosted((app) => {
      app.post('/own', async (request) => ({ got: request.body }))
      app.register(async (inner) =>
        inner.post('/inner', async (request) => ({ got: request.body })),
      )
    }, handle)
    for (const url of ['/own', '/inner']) {
      const response = await app.inject({ method: 'POST', url, payload: { a: 1 } })
      expect(response.json()).toEqual({ got: { a: 1 } })
    }
    const headers = { 'content-type': 'application/json' }
    const broken = { method: 'POST', url: '/own', body: '{', headers } as const
    expect((await app.inject(broken)).statusCode).toBe(500)
    expect(given).toEqual([])
  })
})

describe('hono', () => {
  function appWith(before: MiddlewareHandler, handle: Handler) {
    const errors: unknown[] = []
    const app = new Hono()
    app.use(before)
    app.all('/auth', toHono(handle))
    app.onError((error, context) => {
      errors.push(error)
      return context.json({}, 500)
    })
    return { app, errors }
  }

  type Context = Parameters<MiddlewareHandler>[0]
  const reading =
    (read: (context: Context) => unknown): MiddlewareHandler =>
    async (context, next) => {
      await read(context)
      await next()
    }

  const remedy = /before anything that reads the body|pass the request on/
  const readers: Readonly<Record<string, MiddlewareHandler>> = {
    'c.req.text()': reading(({ req }) => req.text()),
    'c.req.json()': reading(({ req }) => req.json()),
    'c.req.parseBody()': reading(({ req }) => req.text().then(() => req.parseBody())),
    'c.req.raw.json()': reading(({ req }) => req.raw.json()),
    'c.req.raw.text()': reading(({ req }) => req.raw.text()),
    'c.req.raw.arrayBuffer(), which keeps nothing': reading(({ req }) => req.raw.arrayBuffer()),
    'a reader of c.req.raw.body': reading(({ req }) => readAll(req.raw)),
    'a validator': validator('json', (value) => value) as MiddlewareHandler,
  }
  const keepers: Readonly<Record<string, MiddlewareHandler>> = {
    'c.req.arrayBuffer()': reading(({ req }) => req.arrayBuffer()),
    'c.req.arrayBuffer() twice': reading(({ req }) =>
      req.arrayBuffer().then(() => req.arrayBuffer()),
    ),
    'a body limit': bodyLimit({ maxSize: 100_000 }),
    'access to the raw request': reading(({ req: { raw } }) => [
      raw.headers,
      raw.bodyUsed,
      raw.body,
    ]),
    'a clone that was read': reading(({ req }) => req.raw.clone().text()),
    nothing: reading(() => undefined),
  }

  verifiesBodies<MiddlewareHandler>({
    async host(before, handle) {
      const { app, errors } = appWith(before, handle)
      return { port: await started(honoServer(app)), errors }
    },
    withoutErrorHandler(handle) {
      const app = new Hono()
      app.use(reading(({ req }) => req.json()))
      app.all('/auth', toHono(handle))
      return honoServer(app)
    },
    remedy,
    readers,
    keepers,
  })

  test.each(Object.entries({ ...readers, ...keepers }))(
    'reports or receives it on runtimes without Node.js: %s',
    async (name, before) => {
      const { given, handle } = bodies()
      const { app, errors } = appWith(before, handle)
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: plain }
      const { status } = await app.fetch(new Request('http://w.example/auth', init))
      expect([status, given], `${errors}`).toEqual(name in keepers ? [200, [plain]] : [500, []])
      if (name in readers) expectUnavailable(errors.pop(), remedy)
    },
  )
})

async function readAll(request: Request): Promise<void> {
  const reader = request.body?.getReader()
  for (let done = false; !done; ) done = (await reader?.read())?.done ?? true
}

describe('toFetch', () => {
  test('reports a body that was consumed, and does not hang', async () => {
    const { given, handle } = bodies()
    const request = new Request('http://w.example/auth', { method: 'POST', body: plain })
    await request.json()
    expect(request.bodyUsed).toBe(true)
    const error = await toFetch(handle)(request).catch((error: unknown) => error)
    expectUnavailable(error, /pass the request on before anything reads its body/)
    expect(given).toEqual([])
  })
})
