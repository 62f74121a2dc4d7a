import {
  createAuthorizationServer,
  createResourceServer,
  ilpPaymentMethods,
  type PrivateJwk,
  remoteClientKeys,
  remoteGrants,
} from 'open-payments-server'
// Each process has a store of its own.
import { accounts, paymentDetailsKey, store } from './host.js'

// #region authorization-process
/** Creates the server. `x` is the public key of the resource server. */
export function authorizationServer(x: string) {
  const keys = [{ kid: 'op-2026', x }]
  return createAuthorizationServer({
    grantEndpoint: 'https://auth.wallet.example',
    store,
    consentUrl: 'https://auth.wallet.example/consent',
    clientKeys: remoteClientKeys({
      ownAccounts: { baseUrl: 'https://wallet.example', walletAddresses: accounts },
    }),
    resourceServers: [{ id: 'https://wallet.example', keys }],
  })
}
// #endregion authorization-process

// #region resource-process
/** Creates the server at https://wallet.example. `privateKey` is its own key. */
export function resourceServer(privateKey: PrivateJwk) {
  return createResourceServer({
    baseUrl: 'https://wallet.example',
    store,
    grants: remoteGrants({
      grantEndpoint: 'https://auth.wallet.example',
      resourceServerId: 'https://wallet.example',
      key: { kid: 'op-2026', privateKey },
    }),
    walletAddresses: accounts,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'g.wallet.example',
      secret: paymentDetailsKey,
    }),
  })
}
// #endregion resource-process
