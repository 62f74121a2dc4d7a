import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono } from 'hono'
import type { Handler } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { toFastify } from 'open-payments-server/fastify'
import { toHono } from 'open-payments-server/hono'

/** A host application, and the path where a handler is mounted. */
export interface Host {
  readonly name: string
  readonly basePath: string
  create(handle: Handler<string | Uint8Array>): Server | Promise<Server>
}

/** Every way of mounting a handler that the adapters document. */
export const hosts: readonly Host[] = [
  {
    name: 'node:http',
    basePath: '',
    create: (handle) => createServer(toExpress(handle)),
  },
  {
    name: 'express',
    basePath: '',
    create: (handle) => createServer(quietExpress().use(toExpress(handle))),
  },
  {
    name: 'express, under a path',
    basePath: '/auth',
    create: (handle) => createServer(quietExpress().use('/auth', toExpress(handle))),
  },
  {
    name: 'express, in a router',
    basePath: '/open/auth',
    create(handle) {
      const router = express.Router().use('/auth', toExpress(handle))
      return createServer(quietExpress().use('/open', router))
    },
  },
  {
    name: 'fastify',
    basePath: '',
    create: (handle) => fastifyServer((app) => app.register(toFastify(handle))),
  },
  {
    name: 'fastify, under a prefix',
    basePath: '/auth',
    create: (handle) =>
      fastifyServer((app) => app.register(toFastify(handle), { prefix: '/auth' })),
  },
  {
    name: 'fastify, in a plugin',
    basePath: '/open/auth',
    create: (handle) =>
      fastifyServer((app) =>
        app.register(async (inner) => void inner.register(toFastify(handle), { prefix: '/auth' }), {
          prefix: '/open',
        }),
      ),
  },
  {
    name: 'hono',
    basePath: '',
    create: (handle) => honoServer(new Hono().all('/*', toHono(handle))),
  },
  {
    name: 'hono, under a path',
    basePath: '/auth',
    create: (handle) => honoServer(new Hono().all('/auth/*', toHono(handle))),
  },
  {
    name: 'hono, in a sub-app',
    basePath: '/open/auth',
    create(handle) {
      const inner = new Hono().all('/auth/*', toHono(handle))
      return honoServer(new Hono().route('/open', inner))
    },
  },
]

function quietExpress() {
  return express().disable('x-powered-by')
}

export async function fastifyServer(prepare: (app: FastifyInstance) => unknown): Promise<Server> {
  const app = fastify()
  prepare(app)
  await app.ready()
  return app.server
}

export function honoServer(app: Hono): Server {
  return createAdaptorServer(app) as Server
}

/** Starts a server on its own port on the loopback interface. */
export async function listening(server: Server, host = 'localhost'): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Stops a server immediately, even during requests. */
export async function stopped(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
