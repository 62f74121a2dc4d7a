import { createServer, type Server } from 'node:http'
import express from 'express'
import { toExpress } from 'open-payments-server/express'
import type { Wallet } from './wallet.js'

/** Serves the wallet with Express. */
export async function serverOf(wallet: Wallet): Promise<Server> {
  const app = express()
  app.disable('x-powered-by')
  // Before body parsers and other middleware: signatures cover the bytes of requests.
  app.use('/auth', toExpress(wallet.auth.handle))
  app.use('/op', toExpress(wallet.resources.handle))
  app.use('/login', toExpress(wallet.pages.login))
  app.use('/consent', toExpress(wallet.pages.consent))
  app.use('/apps', toExpress(wallet.pages.connectedApps))
  // Your own routes follow here.
  app.use(toExpress(wallet.addresses.handle)) // last: it serves every other path
  return createServer(app)
}
