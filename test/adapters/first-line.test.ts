import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import cors from 'cors'
import express from 'express'
import { fastify } from 'fastify'
import helmet from 'helmet'
import { Hono } from 'hono'
import { cors as honoCors } from 'hono/cors'
import { csrf } from 'hono/csrf'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { createWallet, type Handler, ilpPaymentMethods, memoryStore } from '../../src/index.js'
import { listening, stopped } from '../support/hosts.js'
import { jwkOf, testKey } from '../support/keys.js'
import { signedRequest } from '../support/sign.js'

const origin = 'https://wallet.example'
const key = testKey('shop')

function createHandler(): Handler {
  return createWallet({
    baseUrl: origin,
    consentUrl: `${origin}/consent`,
    store: memoryStore(),
    walletAddresses: {
      find: async (url) =>
        url === `${origin}/alice` ? { url, assetCode: 'USD', assetScale: 2 } : undefined,
    },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.w', secret: new Uint8Array(32) }),
    onError: () => undefined,
  }).handle
}

const first = { fallthrough: true }
const page = 'https://app.wallet.example'

/** Refuses what a form of another site could send, as guards do that look at the content type. */
function isForged({ method = '', headers }: IncomingMessage): boolean {
  return !['GET', 'HEAD', 'OPTIONS'].includes(method) && headers['content-type'] === undefined
}

/** Applications whose first line is the wallet. Each has POST /own, which returns its body, and GET /own. */
const hosts: Readonly<Record<string, (handle: Handler) => Server | Promise<Server>>> = {
  'node:http'(handle) {
    const serve = toExpress(handle, first)
    const own = async (request: IncomingMessage, response: ServerResponse) => {
      if (request.method === 'OPTIONS') {
        response.writeHead(204, { 'access-control-allow-origin': page }).end()
        return
      }
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      response.end(request.method === 'POST' ? Buffer.concat(chunks) : 'own page')
    }
    return createServer((request, response) =>
      serve(request, response, () => void own(request, response)),
    )
  },
  Express(handle) {
    const app = express().use(toExpress(handle, first))
    app.use(helmet(), cors({ origin: page }), express.json(), express.urlencoded())
    app.use((request, response, next) => {
      if (isForged(request)) response.status(403).end()
      else next()
    })
    app.post('/own', (request, response) => void response.json(request.body))
    app.get('/own', (_request, response) => void response.send('own page'))
    return createServer(app)
  },
  // Another framework behind Fastify gets its requests so.
  async Fastify(handle) {
    const app = fastify()
    const behind = express().use(cors({ origin: page }), express.json())
    behind.post('/own', (request, response) => void response.json(request.body))
    behind.get('/own', (_request, response) => void response.send('own page'))
    app.setNotFoundHandler((request, reply) => {
      reply.hijack()
      behind(request.raw, reply.raw)
    })
    app.register(toFastify(handle, first))
    await app.ready()
    return app.server
  },
  Hono(handle) {
    const app = new Hono().all('*', toHono(handle, first))
    app.use(honoCors({ origin: page }), csrf()) // before Hono 4.13, csrf refuses preflights
    app.post('/own', async (context) => context.json(await context.req.json()))
    app.get('/own', (context) => context.text('own page'))
    return createServer(getRequestListener(app.fetch))
  },
}

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopped))
})

async function started(server: Server): Promise<string> {
  servers.push(server)
  return `http://localhost:${await listening(server)}`
}

describe.each(Object.entries(hosts))('with the wallet as the first line, %s', (_, create) => {
  const ask = async () => {
    const base = await started(await create(createHandler()))
    return (path: string, init: RequestInit = {}) => fetch(base + path, init)
  }

  test('gets its own requests with their bodies', async () => {
    const own = await ask()
    const text = JSON.stringify({ a: 'é'.repeat(50_000) })
    const headers = { 'content-type': 'application/json' }
    const response = await own('/own', { method: 'POST', headers, body: text })
    expect([response.status, await response.text()]).toEqual([200, text])
  })

  test.each([
    ['a long cookie', '/own', { cookie: 'c'.repeat(9_000) }],
    ['a comma in Authorization', '/own', { authorization: 'Digest username="a", realm="b"' }],
    ['a type that no operation has', '/own', { 'content-type': 'text/plain' }],
    ['a long query', `/own?q=${'q'.repeat(5_000)}`, {}],
  ])('gets its own requests with %s', async (_name, path, headers) => {
    const response = await (await ask())(path, { headers: headers as Record<string, string> })
    expect([response.status, await response.text()]).toEqual([200, 'own page'])
  })

  test('answers its own preflights, and leaves those of wallet addresses to the wallet', async () => {
    const own = await ask()
    const headers = { origin: page, 'access-control-request-method': 'GET' }
    const allowed = async (path: string) =>
      (await own(path, { method: 'OPTIONS', headers })).headers.get('access-control-allow-origin')
    expect(await allowed('/own')).toBe(page)
    expect([await allowed('/alice'), await allowed('/alice/jwks.json')]).toEqual(['*', '*'])
  })

  test('keeps no guard between a client and the wallet', async () => {
    const own = await ask()
    const send = async (method: string, url: string, token?: string, body?: string) => {
      const signed = signedRequest({
        key,
        method,
        url,
        created: Math.floor(Date.now() / 1000),
        ...(token !== undefined && { token }),
        ...(body !== undefined && { body }),
      })
      const headers = signed.headers.map(([name, value]): [string, string] => [name, value])
      const path = url.slice(origin.length)
      return own(path, { method, headers, ...(body !== undefined && { body }) })
    }
    const access = [{ type: 'incoming-payment', actions: ['create', 'read'] }]
    const grant = { client: { jwk: jwkOf(key) }, access_token: { access } }
    const granted = await send('POST', `${origin}/auth`, undefined, JSON.stringify(grant))
    expect(granted.status).toBe(200)
    const { access_token: token } = (await granted.json()) as Granted
    const rotated = await send('POST', token.manage, token.value)
    expect(rotated.status).toBe(200)
    const { access_token: next } = (await rotated.json()) as Granted
    expect((await send('DELETE', next.manage, next.value)).status).toBe(204)
    expect((await own('/auth', { method: 'OPTIONS' })).status).toBe(200)
    expect(await (await own('/alice')).json()).toMatchObject({ id: `${origin}/alice` })
  })
})

interface Granted {
  readonly access_token: { readonly manage: string; readonly value: string }
}

test('a body that a handler has read is not passed on, but answered', async () => {
  const handle = createHandler()
  const wrapped: Handler = (request) => handle(request)
  const app = express().use(toExpress(wrapped, first), express.json())
  app.use((request, response) => void response.json(request.body))
  const base = await started(createServer(app))
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${base}/own`, { method: 'POST', headers, body: '{"a":1}' })
  expect(await response.json()).toMatchObject({ error: { code: 'method_not_allowed' } })
  expect((await fetch(`${base}/own`, { method: 'POST' })).status).toBe(200)
})
