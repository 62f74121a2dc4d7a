import type { Server } from 'node:http'
import fastify from 'fastify'
import { toFastify } from 'open-payments-server/fastify'
import type { Wallet } from '../wallet.js'

/** Serves the wallet with Fastify. */
export async function fastifyServer({ mounts }: Wallet): Promise<Server> {
  const app = fastify()
  for (const { path, handle } of mounts) await app.register(toFastify(handle), { prefix: path })
  await app.ready()
  return app.server
}
