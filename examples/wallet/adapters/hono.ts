import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { toHono } from 'open-payments-server/hono'
import type { Wallet } from '../wallet.js'

/** Serves the wallet with Hono. */
export function honoServer({ mounts }: Wallet): Server {
  const app = new Hono()
  for (const { path, handle } of mounts) app.all(`${path}/*`, toHono(handle))
  return createAdaptorServer(app) as Server
}
