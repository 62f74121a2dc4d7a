import {
  type ClientKeys,
  createWallet as createServers,
  ilpPaymentMethods,
  memoryStore,
  remoteClientKeys,
} from 'open-payments-server'

/** Creates the servers of a wallet at an origin, and one handler for all of them. */
export function createWallet(origin: string, keys?: ClientKeys) {
  return createServers({
    baseUrl: origin,
    consentUrl: `${origin}/consent`,
    store: memoryStore(), // one process, for a first try: use a database instead
    clientKeys: keys ?? remoteClientKeys(),
    walletAddresses: {
      find: async (url) =>
        url === `${origin}/alice`
          ? { url, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }
          : undefined,
    },
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'g.wallet.example',
      secret: crypto.getRandomValues(new Uint8Array(32)), // keep yours
    }),
  })
}
