import { createServer } from 'node:http'
import fastifyCors from '@fastify/cors'
import cors from 'cors'
import express from 'express'
import { Hono } from 'hono'
import { cors as honoCors } from 'hono/cors'
import { afterEach, describe, expect, test } from 'vitest'
import { toExpress } from '../../adapters/express.js'
import { toFastify } from '../../adapters/fastify.js'
import { toHono } from '../../adapters/hono.js'
import { walletAddressRoutes } from '../../src/http/routes.js'
import type { Handler } from '../../src/index.js'
import { fastifyServer, honoServer, listening, stopped } from '../support/hosts.js'
import { createSurface, unsignedRequest } from '../support/surface.js'

const { routes } = await createSurface()

describe('a cache that ignores no-store gives a response to nobody with another token, or without one', () => {
  const signed = routes.filter(
    ({ operation }) => !walletAddressRoutes.some((each) => each.operation === operation),
  )

  test.each(signed.map(({ operation }) => operation))('%s', async (operation) => {
    const { ask, send, handle } = await createSurface()
    const asked = ask(operation)
    const refused = await handle({ ...unsignedRequest(asked), method: 'PATCH' })
    const unsigned = await handle(unsignedRequest(asked))
    const served = await send(asked)
    expect(served.status).toBeLessThan(300)
    for (const { headers } of [served, unsigned, refused]) {
      expect(headers['vary']).toBe('Authorization')
    }
  })

  test('where nothing is', async () => {
    const { world } = await createSurface()
    const request = { method: 'GET', headers: [], body: new Uint8Array(), url: '/op/nothing' }
    const { status, headers } = await world.resources.handle(request)
    expect([status, headers['vary']]).toEqual([404, 'Authorization'])
  })
})

describe('what middleware says of caches before the servers stays', () => {
  const close: (() => Promise<void>)[] = []
  afterEach(async () => {
    await Promise.all(close.splice(0).map((each) => each()))
  })
  const origin = 'https://app.example'
  const handle: Handler = async () => ({ status: 200, headers: { vary: 'Authorization' } })

  test.each([
    ['Express', () => createServer(express().use(cors({ origin }), toExpress(handle)))],
    [
      'Fastify',
      () =>
        fastifyServer(async (app) => {
          app.register(fastifyCors, { origin: [origin] })
          app.register(toFastify(handle))
        }),
    ],
    ['Hono', () => honoServer(new Hono().use(honoCors({ origin })).all('*', toHono(handle)))],
  ])('%s', async (_, create) => {
    const server = await create()
    close.push(() => stopped(server))
    const port = await listening(server)
    const { headers } = await fetch(`http://localhost:${port}/auth`, { headers: { origin } })
    const names = headers
      .get('vary')
      ?.split(/, */)
      .map((name) => name.toLowerCase())
    expect(names?.toSorted()).toEqual(['authorization', 'origin'])
  })
})
