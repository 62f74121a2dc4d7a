import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import fastify from 'fastify'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { bodyBytesMax, type HttpRequest } from '../../src/entry-adapter.js'
import type { Handler } from '../../src/index.js'
import { createWorld, grantEndpoint, incomingAccess } from '../support/world.js'

type Listener = (request: never, response: never) => unknown

/** What serves a handler over HTTP/2, by what runs before it. */
const hosts: Readonly<Record<string, (handle: Handler) => Promise<Listener>>> = {
  'node:http2': async (handle) => toExpress(handle) as Listener,
  Fastify: async (handle) => {
    const app = fastify({ http2: true })
    app.register(toFastify(handle))
    await app.ready()
    return app.routing as Listener
  },
  Hono: async (handle) => honoListener(new Hono().all('/*', toHono(handle))),
  'Hono, after body-limit': async (handle) => {
    const app = new Hono().use(bodyLimit({ maxSize: 2 * bodyBytesMax }))
    return honoListener(app.all('/*', toHono(handle)))
  },
  'Hono, after a middleware that keeps the bytes': async (handle) => {
    const app = new Hono().use(async ({ req }, next) => {
      await req.arrayBuffer()
      await next()
    })
    return honoListener(app.all('/*', toHono(handle)))
  },
}

function honoListener(app: Hono): Listener {
  return getRequestListener(app.fetch) as Listener
}

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function connected(server: Http2Server): Promise<ClientHttp2Session> {
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const session = connect(`http://localhost:${(server.address() as AddressInfo).port}`)
  closing.push(() => {
    session.destroy()
    server.close()
  })
  return session
}

/** Sends a request in frames of HTTP/2: the length of the body is in no header. */
async function exchange(
  session: ClientHttp2Session,
  { method, url, headers, body }: HttpRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const own = headers.filter(([name]) => name.toLowerCase() !== 'content-length')
  const fields = { ':method': method, ':path': url, ...Object.fromEntries(own) }
  const stream = session.request(fields, { endStream: body.length === 0 })
  if (body.length > 0) stream.end(body)
  const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders & { ':status': number }]
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk
  return { status: head[':status'], text }
}

function signer() {
  const { auth, client } = createWorld()
  const shop = client()
  const body = JSON.stringify({
    client: shop.client,
    access_token: { access: [incomingAccess] },
  })
  const names = ['@method', '@target-uri', 'content-digest', 'content-type']
  const components = names.map((name) => `"${name}"`)
  const sign = (padded = body) =>
    shop.sign({ method: 'POST', url: grantEndpoint, body: padded, components })
  return { auth, shop, body, sign }
}

describe.each(Object.entries(hosts))('over HTTP/2 with %s', (_, listenerOf) => {
  test('a body without a length is served, with DELETE without a body after it', async () => {
    const { auth, shop, sign } = signer()
    const session = await connected(createServer((await listenerOf(auth.handle)) as never))
    const granted = await exchange(session, sign())
    expect([granted.status, granted.text]).toEqual([200, expect.stringContaining('access_token')])
    const { manage, value } = JSON.parse(granted.text).access_token
    const revoke = shop.sign({ method: 'DELETE', url: manage, token: value })
    expect(await exchange(session, revoke)).toEqual({ status: 204, text: '' })
  })

  test('a body that is too large is refused by its size', async () => {
    const { auth, body, sign } = signer()
    const session = await connected(createServer((await listenerOf(auth.handle)) as never))
    expect((await exchange(session, sign(body.padEnd(70_000)))).status).toBe(413)
  })
})

describe('over HTTP/2 after middleware that reads to the end', () => {
  async function asked(request: HttpRequest) {
    const errors: unknown[] = []
    const bodies: Uint8Array[] = []
    const serve = toExpress(async ({ body }) => {
      bodies.push(body)
      return { status: 200, headers: {} }
    })
    const session = await connected(
      createServer(async (request, response) => {
        for await (const _ of request);
        serve(request as never, response as never, (error) => {
          errors.push(error)
          response.writeHead(500).end()
        })
      }),
    )
    const { status } = await exchange(session, request)
    return { status, errors, bodies }
  }

  test('a body without a length is reported', async () => {
    expect(await asked(signer().sign())).toEqual({
      status: 500,
      errors: [expect.objectContaining({ code: 'ERR_RAW_BODY_UNAVAILABLE' })],
      bodies: [],
    })
  })

  test.each(['GET', 'DELETE', 'POST'])('%s without a body is served', async (method) => {
    const request = { method, url: '/auth', headers: [], body: new Uint8Array() }
    const served = { status: 200, errors: [], bodies: [new Uint8Array()] }
    expect(await asked(request)).toEqual(served)
  })
})
