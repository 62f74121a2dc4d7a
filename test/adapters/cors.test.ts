import { createServer, type Server } from 'node:http'
import fastifyCors from '@fastify/cors'
import cors from 'cors'
import express from 'express'
import fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import { Hono } from 'hono'
import { cors as honoCors } from 'hono/cors'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { corsBeforeServers as honoCorsBeforeServers } from '../../examples/integration/cors-hono.js'
import { corsBeforeServers } from '../../examples/integration/middleware.js'
import type { Handler } from '../../src/index.js'
import { honoServer, listening, stopped } from '../support/hosts.js'
import { createWorld, grantEndpoint } from '../support/world.js'

const { auth, wallets } = createWorld()

/** Serves grants at `/auth` and wallet addresses at every other path, as a wallet does. */
const wallet: Handler = (request) =>
  (/^\/auth(?:\/|$)/.test(request.url) ? auth.handle : wallets.handle)(request)

const origin = 'https://page.example'
const discovered = expect.objectContaining({ grant_request_endpoint: grantEndpoint })
const preflight = {
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'DELETE' },
}

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopped))
})

/** Starts a server, and returns its origin. */
async function started(server: Server): Promise<string> {
  servers.push(server)
  return `http://localhost:${await listening(server)}`
}

async function discover(base: string) {
  const response = await fetch(`${base}/auth`, { method: 'OPTIONS', headers: { origin } })
  const text = await response.text()
  return [response.status, text && JSON.parse(text)]
}

/** Applications with middleware that answers preflights, and how it is mounted. */
type Applications = Readonly<Record<string, () => Server>>

describe.each<readonly [name: string, swallowing: () => Server, leaving: Applications]>([
  [
    'cors for Express',
    () => createServer(express().use(cors()).use('/auth', toExpress(auth.handle))),
    {
      'after the authorization server': () =>
        createServer(express().use('/auth', toExpress(auth.handle)).use(cors())),
      'before it, with the documented lines': () =>
        createServer(express().use(corsBeforeServers).use('/auth', toExpress(auth.handle))),
      'before a wallet at the root, with the documented lines': () =>
        createServer(express().use(corsBeforeServers).use(toExpress(wallet))),
    },
  ],
  [
    'cors of Hono',
    () => honoServer(new Hono().use(honoCors()).all('/auth/*', toHono(auth.handle))),
    {
      'after the authorization server': () =>
        honoServer(new Hono().all('/auth/*', toHono(auth.handle)).use(honoCors())),
      'before it, with the documented lines': () =>
        honoServer(new Hono().use(honoCorsBeforeServers).all('/auth/*', toHono(auth.handle))),
      'before a wallet at the root, with the documented lines': () =>
        honoServer(new Hono().use(honoCorsBeforeServers).all('/*', toHono(wallet))),
    },
  ],
])('%s', (_, swallowing, leaving) => {
  test('swallows discovery if it runs before the authorization server', async () => {
    expect(await discover(await started(swallowing()))).toEqual([204, ''])
  })

  test.each(Object.entries(leaving))(
    'leaves discovery to the server and answers preflights if it runs %s',
    async (_, create) => {
      const base = await started(create())
      expect(await discover(base)).toEqual([200, discovered])
      const answered = await fetch(`${base}/own`, preflight)
      expect([answered.status, answered.headers.get('access-control-allow-origin')]).toEqual([
        204,
        '*',
      ])
    },
  )
})

type Register = (app: FastifyInstance, servers: FastifyPluginAsync, options: object) => unknown

describe.each<readonly [when: string, Register]>([
  ['before', (app, servers, options) => app.register(fastifyCors, options).register(servers)],
  ['after', (app, servers, options) => app.register(servers).register(fastifyCors, options)],
])('@fastify/cors, registered %s', (_, register) => {
  const fallthrough = true
  const mounts: Readonly<Record<string, FastifyPluginAsync>> = {
    'a wallet at the root': toFastify(wallet),
    'a wallet at the root that leaves paths to the host': toFastify(wallet, { fallthrough }),
    'servers below a prefix': async (app) => {
      app.register(toFastify(auth.handle), { prefix: '/auth' })
    },
    'servers below a prefix, and wallet addresses at the root': async (app) => {
      app.register(toFastify(auth.handle), { prefix: '/auth' })
      app.register(toFastify(wallets.handle, { fallthrough }))
    },
  }
  const beside = Object.entries(mounts)

  async function appWith(servers: FastifyPluginAsync, options: object): Promise<FastifyInstance> {
    const app = fastify()
    register(app, servers, options)
    app.delete('/own', async () => 'own')
    await app.ready()
    return app
  }

  test.each(beside)('leaves discovery to %s', async (_, servers) => {
    for (const options of [{}, { origin }, { preflight: false }, { preflightContinue: true }]) {
      const app = await appWith(servers, options)
      for (const headers of [{}, { origin }]) {
        const response = await app.inject({ method: 'OPTIONS', url: '/auth', headers })
        expect(response.headers).not.toHaveProperty('access-control-allow-origin')
        expect([response.statusCode, response.json()]).toEqual([200, discovered])
      }
    }
  })

  test.each(beside)('answers preflights beside %s', async (_, servers) => {
    const app = await appWith(servers, { origin, methods: 'DELETE' })
    for (const url of ['/', '/own', '/auth', '/auth/continue/x', '/alice', '/unknown/path']) {
      const { statusCode, headers } = await app.inject({ ...preflight, method: 'OPTIONS', url })
      expect([url, statusCode, headers]).toEqual([
        url,
        204,
        expect.objectContaining({
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'DELETE',
        }),
      ])
    }
    expect((await app.inject({ method: 'DELETE', url: '/own' })).body).toBe('own')
  })

  test.each(beside)('leaves other requests to %s', async (_, servers) => {
    const app = await appWith(servers, { origin })
    const headers = { 'content-type': 'application/json' }
    const request = { method: 'POST', url: '/auth', headers, body: '{}' } as const
    expect((await app.inject(request)).json()).toMatchObject({ error: { code: 'invalid_client' } })
  })
})

describe('@fastify/cors for a scope of the host', () => {
  test('answers preflights there, and leaves those of wallet addresses to the wallet', async () => {
    const app = fastify().register(toFastify(wallet))
    app.register(
      async (own) => {
        await own.register(fastifyCors, { origin })
        own.delete('/own', async () => 'own')
      },
      { prefix: '/api' },
    )
    const allowed = async (url: string) => {
      const { statusCode, headers } = await app.inject({ ...preflight, method: 'OPTIONS', url })
      return [statusCode, headers['access-control-allow-origin']]
    }
    expect(await allowed('/api/own')).toEqual([204, origin])
    expect(await allowed('/alice')).toEqual([204, '*'])
    expect(await allowed('/auth')).toEqual([204, undefined])
  })
})
