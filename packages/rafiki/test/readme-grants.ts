// #region grants
import { exchangeKey, importGrants, tokenExchange } from 'open-payments-rafiki'
import type { AuthorizationServer, ClientKeys, Store } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import type { Pool } from 'pg'

const oldServer = 'https://auth.wallet.example' // AUTH_SERVER_URL of Rafiki
const grantEndpoint = `${oldServer}/cf5fd7d3` // with the tenant
const secret = Buffer.from(process.env['EXCHANGE_SECRET'] ?? '', 'hex') // 32 bytes

/** Run once, after Rafiki has stopped. It has two databases. */
export async function importOpenGrants(auth: Pool, backend: Pool, store: Store) {
  const results = await importGrants({ auth, backend }, Date.now(), {
    store,
    key: exchangeKey(secret, grantEndpoint),
    // Rafiki does not store who consented: look up whose addresses these are.
    ownerOf: async (walletAddresses) => ({ resourceOwner: 'alice', walletAddresses }),
  })
  for (const [id, result] of results) {
    if (!result.ok) console.warn(id, result.reason) // its client requests it again
  }
}

/** Mount it at `/token`, before body parsers. */
export function oldTokens(auth: AuthorizationServer, store: Store, keys: ClientKeys) {
  const exchange = tokenExchange({
    oldServer,
    grantEndpoint,
    store,
    clientKeys: keys,
    grants: auth.grants,
    key: exchangeKey(secret, grantEndpoint),
  })
  return toExpress(exchange)
}
// #endregion grants
