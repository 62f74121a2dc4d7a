// #region webhooks
import { rafikiWalletAddresses, rafikiWebhooks } from 'open-payments-rafiki'
import { consumeEvents, type ResourceServer } from 'open-payments-server'
import type { Pool } from 'pg'

/** Sends Rafiki's webhooks to the handler that you have. */
export async function sendWebhooks(resources: ResourceServer, backend: Pool) {
  const addresses = await rafikiWalletAddresses(backend)
  const ids = new Map(addresses.map(({ url, id }) => [url, id]))
  const send = rafikiWebhooks({
    url: process.env['WEBHOOK_URL'] ?? '',
    secret: process.env['SIGNATURE_SECRET'] ?? '',
    payments: resources,
    walletAddressId: async (url) => ids.get(url) ?? url,
  })
  return consumeEvents([resources.events], send)
}
// #endregion webhooks
