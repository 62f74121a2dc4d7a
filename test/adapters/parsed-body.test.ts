import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { validator } from 'hono/validator'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { type Handler, type HttpRequest, toFetch } from '../../src/index.js'
import { honoServer, listening, stopped } from '../support/hosts.js'
import { chunkedBytes, exchange, requestBytes } from '../support/raw-http.js'
import { createWorld, grantEndpoint, incomingAccess } from '../support/world.js'

const json = ['Content-Type', 'application/json'] as const
const frame = [
  ['Host', 'w.example'],
  ['Connection', 'close'],
] as const
/** JSON that no parser restores exactly: white space, an escape, a number, letters beyond ASCII. */
const exact = Buffer.from('\ufeff{ "a": 1.0,\r\n "b": "\\u00e9é" }\n')
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

describe('express', () => {
  /** An application with middleware before the handler, which records errors. */
  async function host(before: RequestHandler, handle: Handler) {
    const errors: unknown[] = []
    const keep: ErrorRequestHandler = (error, _request, response, _next) => {
      errors.push(error)
      response.status(500).json({ code: error.code })
    }
    const app = express().use(before).use('/auth', toExpress(handle)).use(keep)
    return { port: await started(createServer(app)), errors }
  }

  const remedy = /before express\.json\(\).*verify.*rawBody/

  const readers: readonly (readonly [string, RequestHandler])[] = [
    ['express.json()', express.json()],
    ['express.json() of every type', express.json({ type: () => true, strict: false })],
    ['express.text()', express.text({ type: '*/*' })],
    ['express.urlencoded()', express.urlencoded({ type: '*/*' })],
    [
      'a middleware that reads the stream to its end',
      async (request, _response, next) => {
        for await (const _ of request);
        next()
      },
    ],
    [
      'a middleware that reads the first chunk',
      (request, _response, next) => {
        request.once('data', () => {
          request.pause()
          next()
        })
      },
    ],
  ]

  test.each(readers)(
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
    const app = express().set('env', 'test').use(express.json(), toExpress(handle))
    expect((await exchange(await started(createServer(app)), post(plain))).status).toBe(500)
    expect(given).toEqual([])
  })

  const keepers: readonly (readonly [string, RequestHandler])[] = [
    [
      'express.json() that keeps the bytes in rawBody',
      express.json({
        verify: (request, _response, buffer) => {
          Object.assign(request, { rawBody: buffer })
        },
      }),
    ],
    ['express.raw()', express.raw({ type: '*/*' })],
    ['express.json() for another type', express.json({ type: 'application/vnd.api+json' })],
    ['express.json() on another path', express.Router().use('/admin', express.json())],
    ['no parser', (_request, _response, next) => next()],
  ]

  test.each(keepers)('receives the exact bytes after %s', async (_, keeper) => {
    const { given, handle } = bodies()
    const { port } = await host(keeper, handle)
    expect((await exchange(port, post(plain))).status).toBe(200)
    expect((await exchange(port, postInChunks(plain))).status).toBe(200)
    expect(given).toEqual([plain, plain])
  })

  test.each(keepers)('serves a signed request after %s', async (_, keeper) => {
    const { handle, bytes } = signedGrant()
    const { port } = await host(keeper, handle)
    const response = await exchange(port, bytes)
    expect(response.status).toBe(200)
    expect(JSON.parse(response.body.toString())).toHaveProperty('access_token')
  })

  test.each(withoutBody)('accepts %s after a parser', async (_, bytes) => {
    const { given, handle } = bodies()
    const { port, errors } = await host(express.json(), handle)
    expect((await exchange(port, bytes)).status).toBe(200)
    expect(given).toEqual([Buffer.alloc(0)])
    expect(errors).toEqual([])
  })

  test('refuses a body with a content coding, although a parser kept the decoded bytes', async () => {
    const { handle } = signedGrant()
    const keep = express.json({
      verify: (request, _response, buffer) => {
        Object.assign(request, { rawBody: buffer })
      },
    })
    const { port } = await host(keep, handle)
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

  test('passes on no error when a client disconnects in the middle of its body', async () => {
    const { given, handle } = bodies()
    const errors: unknown[] = []
    const serve = toExpress(handle)
    const server = createServer((request, response) =>
      serve(request, response, (error) => errors.push(error)),
    )
    const client = connect(await started(server), 'localhost')
    client.write(post(plain).subarray(0, -5))
    const [request] = (await once(server, 'request')) as [IncomingMessage]
    client.destroy()
    await new Promise((resolve) => request.once('close', resolve))
    await turns()
    expect(errors).toEqual([])
    expect(given).toEqual([])
  })

  test('passes on no error when a client disconnected before the handler ran', async () => {
    const { given, handle } = bodies()
    const serve = toExpress(handle)
    const errors: unknown[] = []
    const { server, served } = whenGone((request, response) =>
      serve(request, response, (error) => errors.push(error)),
    )
    const client = connect(await started(server), 'localhost')
    client.write(post(plain).subarray(0, -5))
    await once(server, 'request')
    client.destroy()
    await served
    await turns()
    expect(errors).toEqual([])
    expect(given).toEqual([])
  })
})

/** A server that serves a request after its client has disconnected, as after slow middleware. */
function whenGone(serve: RequestListener): { server: Server; served: Promise<void> } {
  const server = createServer()
  const served = new Promise<void>((resolve) => {
    server.on('request', (request, response) => {
      request.once('close', () => {
        serve(request, response)
        resolve()
      })
    })
  })
  return { server, served }
}

describe('fastify', () => {
  async function host(prepare: (app: FastifyInstance) => unknown, handle: Handler) {
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
  const middleware = (use: RequestHandler) => (app: FastifyInstance) =>
    app.addHook('onRequest', (request, reply, done) =>
      use(request.raw as never, reply.raw as never, done as never),
    )

  const consumed = async (request: IncomingMessage) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  const remedy = /do not let a hook .*parse bodies/

  const readers: readonly (readonly [string, (app: FastifyInstance) => unknown])[] = [
    ['express.json() of @fastify/express', middleware(express.json())],
    ['express.text() of @fastify/express', middleware(express.text({ type: '*/*' }))],
    [
      'an onRequest hook',
      (app) => app.addHook('onRequest', async ({ raw }) => void (await consumed(raw))),
    ],
    [
      'a preParsing hook',
      (app) =>
        app.addHook('preParsing', async ({ raw }, _reply, payload) => {
          await consumed(raw)
          return payload
        }),
    ],
  ]

  test.each(readers)(
    'reports a body that %s has consumed, and does not hang',
    async (_, prepare) => {
      const { given, handle } = bodies()
      const { port, errors } = await host(prepare, handle)
      for (const bytes of [post(plain), postInChunks(plain)]) {
        expect((await exchange(port, bytes)).status).toBe(500)
        expectUnavailable(errors.pop(), remedy)
      }
      expect(given).toEqual([])
    },
  )

  test('responds with 500 if the host has no error handler', async () => {
    const { given, handle } = bodies()
    const app = fastify()
    middleware(express.json())(app)
    app.register(toFastify(handle))
    await app.ready()
    const response = await exchange(await started(app.server), post(plain))
    expect(response.status).toBe(500)
    expect(JSON.parse(response.body.toString())).toMatchObject({ code: 'ERR_RAW_BODY_UNAVAILABLE' })
    expect(given).toEqual([])
  })

  const keepRaw = express.json({
    verify: (request, _response, buffer) => {
      Object.assign(request, { rawBody: buffer })
    },
  })
  const keepers: readonly (readonly [string, (app: FastifyInstance) => unknown])[] = [
    ['express.json() that keeps the bytes in rawBody', middleware(keepRaw)],
    ['express.raw() of @fastify/express', middleware(express.raw({ type: '*/*' }))],
    ['express.json() on another path', middleware(express.Router().use('/admin', express.json()))],
    [
      'a platform that read the stream and kept its bytes',
      (app) =>
        app.addHook('onRequest', async ({ raw }) => {
          Object.assign(raw, { rawBody: await consumed(raw) })
        }),
    ],
    [
      "parsers of the host's own",
      (app) =>
        app.addContentTypeParser('*', { parseAs: 'string' }, (_r, body, done) => done(null, body)),
    ],
  ]

  test.each(keepers)('receives the exact bytes after %s', async (_, prepare) => {
    const { given, handle } = bodies()
    const { port } = await host(prepare, handle)
    expect((await exchange(port, post(plain))).status).toBe(200)
    expect((await exchange(port, postInChunks(plain))).status).toBe(200)
    expect(given).toEqual([plain, plain])
  })

  test.each(keepers)('serves a signed request after %s', async (_, prepare) => {
    const { handle, bytes } = signedGrant()
    const { port } = await host(prepare, handle)
    expect((await exchange(port, bytes)).status).toBe(200)
  })

  test.each(withoutBody)('accepts %s after a parser', async (_, bytes) => {
    const { given, handle } = bodies()
    const { port, errors } = await host(middleware(express.json()), handle)
    expect((await exchange(port, bytes)).status).toBe(200)
    expect(given).toEqual([Buffer.alloc(0)])
    expect(errors).toEqual([])
  })

  test("leaves the parsers of the host's own routes unchanged", async () => {
    const { given, handle } = bodies()
    const { app } = await host((app) => {
      app.post('/own', async (request) => ({ got: request.body }))
      app.register(async (inner) =>
        inner.post('/inner', async (request) => ({ got: request.body })),
      )
    }, handle)
    for (const url of ['/own', '/inner']) {
      const response = await app.inject({ method: 'POST', url, payload: { a: 1 } })
      expect(response.json()).toEqual({ got: { a: 1 } })
    }
    const broken = {
      method: 'POST' as const,
      url: '/own',
      body: '{',
      headers: { 'content-type': 'application/json' },
    }
    expect((await app.inject(broken)).statusCode).toBe(500)
    expect(given).toEqual([])
  })
})

describe('hono', () => {
  function app(before: MiddlewareHandler, handle: Handler) {
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

  async function host(before: MiddlewareHandler, handle: Handler) {
    const { app: made, errors } = app(before, handle)
    return { port: await started(honoServer(made)), errors }
  }

  type Context = Parameters<MiddlewareHandler>[0]
  const reading =
    (read: (context: Context) => unknown): MiddlewareHandler =>
    async (context, next) => {
      await read(context)
      await next()
    }

  const remedy = /before anything that reads the body|pass the request on/

  const readers: readonly (readonly [string, MiddlewareHandler])[] = [
    ['c.req.json()', reading(({ req }) => req.json())],
    ['c.req.text()', reading(({ req }) => req.text())],
    ['c.req.parseBody()', reading(({ req }) => req.text().then(() => req.parseBody()))],
    ['c.req.raw.json()', reading(({ req }) => req.raw.json())],
    ['c.req.raw.text()', reading(({ req }) => req.raw.text())],
    ['c.req.raw.arrayBuffer(), which keeps nothing', reading(({ req }) => req.raw.arrayBuffer())],
    ['a reader of c.req.raw.body', reading(({ req }) => readAll(req.raw))],
    ['a validator', validator('json', (value) => value) as MiddlewareHandler],
  ]

  test.each(readers)(
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

  test.each(readers)('reports it on runtimes without Node.js: %s', async (_, reader) => {
    const { given, handle } = bodies()
    const { app: made, errors } = app(reader, handle)
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://w.example/auth', { method: 'POST', headers, body: plain })
    expect((await made.fetch(request)).status).toBe(500)
    expectUnavailable(errors.pop(), remedy)
    expect(given).toEqual([])
  })

  test('responds with 500 if the host has no error handler', async () => {
    const { given, handle } = bodies()
    const made = new Hono()
    made.use(reading(({ req }) => req.json()))
    made.all('/auth', toHono(handle))
    expect((await exchange(await started(honoServer(made)), post(plain))).status).toBe(500)
    expect(given).toEqual([])
  })

  const keepers: readonly (readonly [string, MiddlewareHandler])[] = [
    ['c.req.arrayBuffer()', reading(({ req }) => req.arrayBuffer())],
    [
      'c.req.arrayBuffer() twice',
      reading(({ req }) => req.arrayBuffer().then(() => req.arrayBuffer())),
    ],
    ['a body limit', bodyLimit({ maxSize: 100_000 })],
    [
      'access to the raw request',
      reading(({ req }) => [req.raw.headers, req.raw.bodyUsed, req.raw.body]),
    ],
    ['a clone that was read', reading(({ req }) => req.raw.clone().text())],
    ['nothing', reading(() => undefined)],
  ]

  test.each(keepers)('receives the exact bytes after %s', async (_, keeper) => {
    const { given, handle } = bodies()
    const { port, errors } = await host(keeper, handle)
    expect((await exchange(port, post(exact))).status, `${errors}`).toBe(200)
    expect((await exchange(port, postInChunks(exact))).status, `${errors}`).toBe(200)
    expect(given).toEqual([exact, exact])
  })

  test.each(keepers)('receives them on runtimes without Node.js: %s', async (_, keeper) => {
    const { given, handle } = bodies()
    const { app: made, errors } = app(keeper, handle)
    const init = { method: 'POST', body: exact }
    const response = await made.fetch(new Request('http://w.example/auth', init))
    expect(response.status, `${errors}`).toBe(200)
    expect(given).toEqual([exact])
  })

  test.each(keepers)('serves a signed request after %s', async (_, keeper) => {
    const { handle, bytes } = signedGrant()
    const { port } = await host(keeper, handle)
    expect((await exchange(port, bytes)).status).toBe(200)
  })

  test.each(withoutBody)('accepts %s after a reader', async (_, bytes) => {
    const { given, handle } = bodies()
    const { port, errors } = await host(
      reading(({ req }) => req.text()),
      handle,
    )
    expect((await exchange(port, bytes)).status, `${errors}`).toBe(200)
    expect(given).toEqual([Buffer.alloc(0)])
  })
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
