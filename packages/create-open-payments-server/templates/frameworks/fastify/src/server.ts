import type { Server } from 'node:http'
import fastify from 'fastify'
import { toFastify } from 'open-payments-server/fastify'
import type { Wallet } from './wallet.js'

/** Serves the wallet with Fastify. */
export async function serverOf(wallet: Wallet): Promise<Server> {
  const app = fastify()
  // Each plugin reads bodies as bytes on its own routes only, because signatures cover them.
  await app.register(toFastify(wallet.pages.login), { prefix: '/login' })
  await app.register(toFastify(wallet.pages.consent), { prefix: '/consent' })
  await app.register(toFastify(wallet.pages.confirmation), { prefix: '/confirm' })
  await app.register(toFastify(wallet.pages.connectedApps), { prefix: '/apps' })
  await app.register(toFastify(wallet.pages.keys), { prefix: '/keys' })
  await app.register(toFastify(wallet.pages.send), { prefix: '/send' })
  // Your own routes follow here.
  await app.register(toFastify(wallet.handle)) // serves every other path
  await app.ready()
  return app.server
}
