// #region wallet
import {
  type ClientKeys,
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  type Handler,
  ilpPaymentMethods,
  memoryStore,
  remoteClientKeys,
  type WalletAddresses,
} from 'open-payments-server'

/** Creates the servers of a wallet, and one handler for all of them, at an origin such as `https://wallet.example`. */
export function createWallet(origin: string, clientKeys: ClientKeys = remoteClientKeys()) {
  const store = memoryStore() // one process, for a first try: use a database instead
  const grantEndpoint = `${origin}/auth`
  const resourceServer = `${origin}/op`
  const walletAddresses: WalletAddresses = {
    find: async (url) =>
      url === `${origin}/alice`
        ? { url, publicName: 'Alice', assetCode: 'USD', assetScale: 2 }
        : undefined,
  }
  const auth = createAuthorizationServer({
    grantEndpoint,
    consentUrl: `${origin}/consent`,
    store,
    clientKeys,
  })
  const resources = createResourceServer({
    baseUrl: resourceServer,
    grantEndpoint,
    store,
    introspect: auth.introspect,
    walletAddresses,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'g.wallet.example',
      secret: crypto.getRandomValues(new Uint8Array(32)), // keep yours
    }),
  })
  const wallets = createWalletAddressServer({
    baseUrl: origin,
    grantEndpoint,
    resourceServer,
    walletAddresses,
  })
  const handle: Handler = (request) => {
    const { handle } = serverAt(request.url.split(/[/?]/, 2)[1])
    return handle(request)
  }
  const serverAt = (folder: string | undefined) =>
    folder === 'auth' ? auth : folder === 'op' ? resources : wallets
  return { auth, resources, wallets, handle }
}
// #endregion wallet
