import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import type { Handler } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { toFastify } from 'open-payments-server/fastify'
import { toHono } from 'open-payments-server/hono'
import { benchWallet, creation, type Library, newToken, pairs } from './fixtures.js'
import { load } from './http.js'
import { type Figure, interleaved, medianFigure, ratioFigure } from './measure.js'

const rounds = 9
const requestsPerRound = 3_000

type Mount = (handle: Handler) => Server | Promise<Server>

/** Each adapter, and the smallest equivalent that a host could write by hand. */
const mounts: Record<string, { adapter: Mount; byHand: Mount }> = {
  express: {
    adapter(handle) {
      const app = express()
      app.use('/op', toExpress(handle))
      return createServer(app)
    },
    byHand(handle) {
      const app = express()
      app.post('/op/incoming-payments', express.raw({ type: '*/*' }), async (request, response) => {
        const { method, originalUrl: url, rawHeaders, body } = request
        const answer = await handle({ method, url, headers: pairs(rawHeaders), body })
        response.status(answer.status).set(answer.headers).end(answer.body)
      })
      return createServer(app)
    },
  },
  fastify: {
    async adapter(handle) {
      const app = fastify()
      await app.register(toFastify(handle), { prefix: '/op' })
      await app.ready()
      return app.server
    },
    async byHand(handle) {
      const app = fastify()
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
      app.post('/op/incoming-payments', async (request, reply) => {
        const { method = '', rawHeaders } = request.raw
        const { originalUrl: url, body } = request
        const headers = pairs(rawHeaders)
        const answer = await handle({ method, url, headers, body: body as Uint8Array })
        return reply
          .code(answer.status)
          .headers(answer.headers)
          .send(answer.body && Buffer.from(answer.body))
      })
      await app.ready()
      return app.server
    },
  },
  hono: {
    adapter(handle) {
      const app = new Hono()
      app.all('/op/*', toHono(handle))
      return createAdaptorServer(app) as Server
    },
    byHand(handle) {
      const app = new Hono<{ Bindings: { incoming: { rawHeaders: string[]; url: string } } }>()
      app.post('/op/incoming-payments', async ({ req, env }) => {
        const { rawHeaders, url } = env.incoming
        const body = new Uint8Array(await req.arrayBuffer())
        const answer = await handle({ method: req.method, url, headers: pairs(rawHeaders), body })
        return new Response(answer.body ?? null, { status: answer.status, headers: answer.headers })
      })
      return createAdaptorServer(app) as Server
    },
  },
}

/** CPU time for a request through each adapter, relative to a hand-written route. */
export async function adapters(library: Library): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [name, { adapter, byHand }] of Object.entries(mounts)) {
    const run = async (mount: Mount) => {
      const wallet = benchWallet(library)
      const { value } = await newToken(wallet)
      const requests = async () => [await creation(wallet, value)]
      const refusal = () => wallet.refusals.last
      return async () => {
        const server = await mount(wallet.resources.handle)
        // With one connection, verification stays on one thread and the CPU time belongs to the request
        // alone.
        return (await load({ server, requests, refusal }, requestsPerRound, 1)).cpuUs
      }
    }
    const cpu = await interleaved(rounds, {
      adapter: await run(adapter),
      byHand: await run(byHand),
    })
    figures.push(
      medianFigure(`${name} adapter, CPU time`, cpu.adapter, 'µs'),
      ratioFigure(
        `${name} adapter: CPU time relative to a hand-written route`,
        cpu.adapter,
        cpu.byHand,
        {
          most: 1.1,
        },
      ),
    )
  }
  return figures
}
