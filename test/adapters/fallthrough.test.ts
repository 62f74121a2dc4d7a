import { createServer, type Server } from 'node:http'
import express from 'express'
import { Hono } from 'hono'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { createWallet, type Handler, ilpPaymentMethods, memoryStore } from '../../src/index.js'
import { fastifyServer, honoServer, listening, stopped } from '../support/hosts.js'
import { invalidInput } from '../support/invalid-input.js'

const baseUrl = 'https://wallet.example/brand'

function walletAt(url: string): Handler {
  return createWallet({
    baseUrl: url,
    consentUrl: `${url}/consent`,
    store: memoryStore(),
    walletAddresses: {
      find: async (each) =>
        each === `${url}/alice` ? { url: each, assetCode: 'USD', assetScale: 2 } : undefined,
    },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.w', secret: new Uint8Array(32) }),
  }).handle
}

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopped))
})

type Options = { readonly fallthrough?: boolean } | undefined

/** Hosts with a page of their own for paths that nothing serves. */
const hosts: Readonly<
  Record<string, (handle: Handler, options: Options) => Server | Promise<Server>>
> = {
  Express: (handle, options) => {
    const app = express().use(toExpress(handle, options))
    return createServer(app.use((_request, response) => void response.status(404).send('own page')))
  },
  Fastify: (handle, options) =>
    fastifyServer((app) => {
      app.setNotFoundHandler(async (_request, reply) => reply.code(404).send('own page'))
      app.register(toFastify(handle, options))
    }),
  Hono: (handle, options) => {
    const app = new Hono().all('/*', toHono(handle, options))
    return honoServer(app.notFound((context) => context.text('own page', 404)))
  },
}

/** Starts a host, and returns the status and the text of its response. */
async function asked(name: string, options: Options) {
  const server = await hosts[name]?.(walletAt(baseUrl), options)
  if (server === undefined) throw new Error(name)
  servers.push(server)
  const origin = `http://localhost:${await listening(server)}`
  return async (method: string, path: string) => {
    const body = method === 'POST' ? { body: '{}' } : {}
    const response = await fetch(origin + path, { method, ...body })
    return [response.status, await response.text()] as const
  }
}

const nothing = [
  ['GET', '/brand/nobody'],
  ['GET', '/brand/nobody/jwks.json'],
  ['POST', '/brand/nobody'],
  ['DELETE', '/brand'],
  ['GET', '/brand/auth/nothing'],
  ['GET', '/elsewhere'],
] as const

describe.each(Object.keys(hosts))('%s', (name) => {
  test('leaves paths at which the wallet has nothing to the host, if asked to', async () => {
    const ask = await asked(name, { fallthrough: true })
    for (const [method, path] of nothing) {
      expect([path, ...(await ask(method, path))]).toEqual([path, 404, 'own page'])
    }
    expect((await ask('HEAD', '/brand/nobody'))[0]).toBe(404)
  })

  test('leaves everything else to the wallet', async () => {
    const ask = await asked(name, { fallthrough: true })
    expect(await ask('GET', '/brand/alice')).toEqual([200, expect.stringContaining(baseUrl)])
    expect((await ask('OPTIONS', '/brand/auth'))[0]).toBe(200)
    const refusals = [
      ['POST', '/brand/auth', 415],
      ['GET', '/brand/auth', 405],
      ['DELETE', '/brand/incoming-payments', 405],
      ['GET', '/brand/incoming-payments/unknown', 404],
    ] as const
    for (const [method, path, status] of refusals) {
      const answer = await ask(method, path)
      expect([path, ...answer]).toEqual([path, status, expect.stringContaining('"error"')])
    }
  })

  test.each([undefined, {}, { fallthrough: false }])(
    'lets the wallet respond to every path with %j',
    async (options) => {
      const ask = await asked(name, options)
      for (const [method, path] of nothing) {
        const [status, text] = await ask(method, path)
        expect([path, status >= 404, text]).toEqual([
          path,
          true,
          expect.stringContaining('"error"'),
        ])
      }
    },
  )
})

test('a server without a next handler responds itself', async () => {
  const server = createServer(toExpress(walletAt(baseUrl), { fallthrough: true }))
  servers.push(server)
  const response = await fetch(`http://localhost:${await listening(server)}/brand/nobody`)
  expect([response.status, await response.json()]).toEqual([
    404,
    { error: { code: 'not_found', description: 'Not found' } },
  ])
})

test.each([['toExpress'], ['toFastify'], ['toHono']])(
  '%s refuses unknown and invalid options at once',
  (name) => {
    const mount = { toExpress, toFastify, toHono }[name]
    const handle = walletAt(baseUrl)
    expect(() => mount?.(handle, { fallThrough: true } as never)).toThrow(
      invalidInput('fallThrough', {
        message: 'fallThrough is not known: the options are fallthrough',
      }),
    )
    expect(() => mount?.(handle, { fallthrough: 'yes' } as never)).toThrow(
      invalidInput('fallthrough', { message: 'fallthrough must be a boolean' }),
    )
  },
)
