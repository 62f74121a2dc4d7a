import type { Express } from 'express'
import type { AuthorizationServer, ClientKeys, Store } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import { exchangeKey } from './exchange-key.js'
import { type Import, importGrants } from './import-grants.js'
import type { Database } from './rafiki-tables.js'
import { tokenExchange } from './token-exchange.js'

const oldServer = 'https://auth.wallet.example' // AUTH_SERVER_URL of Rafiki
const grantEndpoint = 'https://auth.wallet.example/cf5fd7d3' // its grant endpoint, with the tenant
const secret = Buffer.from(process.env['EXCHANGE_SECRET'] ?? '', 'hex') // 32 random bytes, for the time of the migration

/** Run once, after Rafiki has stopped. */
export async function importOpenGrants(
  rafiki: { auth: Database; backend: Database },
  store: Store,
  ownerOf: Import['ownerOf'],
) {
  const key = exchangeKey(secret, grantEndpoint)
  const results = await importGrants(rafiki, Date.now(), { store, key, ownerOf })
  for (const [id, result] of results) {
    if (!result.ok) console.warn(id, result.reason) // its client requests it again
  }
}

/** Mount it like the authorization server, before body parsers. */
export function serveOldTokens(
  app: Express,
  auth: AuthorizationServer,
  store: Store,
  clientKeys: ClientKeys,
) {
  const key = exchangeKey(secret, grantEndpoint)
  const { grants } = auth
  const options = { oldServer, grantEndpoint, store, clientKeys, grants, key }
  app.use('/token', toExpress(tokenExchange(options)))
}
