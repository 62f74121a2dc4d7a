import { createServer, type Server } from 'node:http'
import express from 'express'
import { toExpress } from 'open-payments-server/express'
import type { Wallet } from './wallet.js'

/** Serves the wallet with Express. */
export async function serverOf(wallet: Wallet): Promise<Server> {
  const app = express()
  app.disable('x-powered-by')
  app.use('/login', toExpress(wallet.pages.login))
  app.use('/consent', toExpress(wallet.pages.consent))
  app.use('/confirm', toExpress(wallet.pages.confirmation))
  app.use('/apps', toExpress(wallet.pages.connectedApps))
  app.use('/keys', toExpress(wallet.pages.keys))
  app.use('/send', toExpress(wallet.pages.send))
  // Your own routes follow here. No body parser for all routes: signatures cover the bytes of requests.
  app.use(toExpress(wallet.handle)) // last: it serves every other path
  return createServer(app)
}
