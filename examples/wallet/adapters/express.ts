import { createServer, type Server } from 'node:http'
import express from 'express'
import { toExpress } from 'open-payments-server/express'
import type { Wallet } from '../wallet.js'

/** Serves the wallet with Express. */
export function expressServer({ mounts }: Wallet): Server {
  const app = express()
  app.disable('x-powered-by')
  for (const { path, handle } of mounts) app.use(path || '/', toExpress(handle))
  return createServer(app)
}
