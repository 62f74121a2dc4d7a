import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { toHono } from 'open-payments-server/hono'
import type { Wallet } from './wallet.js'

/** Serves the wallet with Hono. */
export async function serverOf(wallet: Wallet): Promise<Server> {
  const app = new Hono()
  app.all('/login/*', toHono(wallet.pages.login))
  app.all('/consent/*', toHono(wallet.pages.consent))
  app.all('/confirm/*', toHono(wallet.pages.confirmation))
  app.all('/apps/*', toHono(wallet.pages.connectedApps))
  app.all('/keys/*', toHono(wallet.pages.keys))
  app.all('/send/*', toHono(wallet.pages.send))
  // Your own routes follow here.
  app.all('*', toHono(wallet.handle)) // last: it serves every other path
  return createAdaptorServer(app) as Server
}
