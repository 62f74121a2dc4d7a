import {
  type AuthorizationServer,
  createAuthorizationServer,
  createResourceServer,
  createWalletAddressServer,
  type Handler,
  ilpPaymentMethods,
  type RefusalReport,
  type ResourceServer,
  remoteClientKeys,
  type WalletAddressServer,
} from 'open-payments-server'
import { connectedAppsPage } from './connected-apps-page.js'
import { consentPage } from './consent-page.js'
import { type Ledger, ledgerOn } from './ledger.js'
import { createLogin } from './login.js'
import { pricingOf } from './pricing.js'
import { isLocal, type WalletSettings } from './settings.js'
import type { Database } from './sql.js'

/** The servers and pages of the wallet. `server.ts` mounts them. */
export interface Wallet {
  readonly ledger: Ledger
  readonly database: Database
  readonly auth: AuthorizationServer
  readonly resources: ResourceServer
  readonly addresses: WalletAddressServer
  readonly pages: Readonly<Record<'login' | 'consent' | 'connectedApps', Handler>>
}

const reports = { onRefusal, onError: console.error }

export function createWallet(settings: WalletSettings, database: Database): Wallet {
  const { baseUrl } = settings
  const { grantEndpoint, resourceServer } = urlsOf(settings)
  const ledger = ledgerOn(database)
  const auth = createAuthorizationServer({
    ...reports,
    grantEndpoint,
    store: database.store,
    consentUrl: `${baseUrl}/consent`,
    // Clients choose these URLs, so private addresses are allowed in development only.
    clientKeys: remoteClientKeys({ allowLoopback: isLocal(baseUrl) }),
  })
  const resources = resourceServerOn({ ledger, database, auth }, settings)
  const addresses = createWalletAddressServer({
    ...reports,
    baseUrl,
    grantEndpoint,
    resourceServer,
    walletAddresses: ledger,
  })
  const login = createLogin(settings)
  return {
    ledger,
    database,
    auth,
    resources,
    addresses,
    pages: {
      login: login.page,
      consent: consentPage(auth.interactions, ledger, login),
      connectedApps: connectedAppsPage(auth.grants, login),
    },
  }
}

function urlsOf({ baseUrl }: WalletSettings) {
  return { grantEndpoint: `${baseUrl}/auth`, resourceServer: `${baseUrl}/op` }
}

/** Creates the resource server, which prices payments and holds their amounts on the ledger. */
function resourceServerOn(
  { ledger, database, auth }: Pick<Wallet, 'ledger' | 'database' | 'auth'>,
  settings: WalletSettings,
): ResourceServer {
  const { grantEndpoint, resourceServer } = urlsOf(settings)
  const resources: ResourceServer = createResourceServer({
    ...reports,
    baseUrl: resourceServer,
    grantEndpoint,
    store: database.store,
    introspect: auth.introspect,
    walletAddresses: ledger,
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: settings.paymentDetailsSecret,
    }),
    pricing: pricingOf(() => resources.incomingPayments),
    policy: {
      async mayPay(payment) {
        const isHeld = await ledger.hold(payment, Date.now())
        return isHeld ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
      },
    },
  })
  return resources
}

/** Responses give few details about a refusal. This hook receives the reason. */
function onRefusal({ operation, refusal, reason }: RefusalReport): void {
  console.warn(`${operation ?? 'request'} refused: ${refusal}: ${reason}`)
}
