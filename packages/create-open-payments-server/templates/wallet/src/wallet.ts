import { createPages } from 'open-payments-pages'
import {
  createWallet as createServers,
  type Handler,
  ilpPaymentMethods,
  type MayPay,
  type RefusalReport,
  type Wallet as Servers,
  type WalletOptions,
  walletAddressSubjects,
} from 'open-payments-server'
import { clientKeysOn } from './client-keys.js'
import { design } from './design.js'
import { type Ledger, ledgerOn } from './ledger.js'
import { createLogin } from './login.js'
import { pricingOf, type Receivers } from './pricing.js'
import type { WalletSettings } from './settings.js'
import type { Database } from './sql.js'
import { withStartPage } from './start-page.js'

/** The servers and pages of the wallet. `server.ts` mounts them. */
export interface Wallet extends Servers {
  readonly ledger: Ledger
  readonly database: Database
  readonly pages: Readonly<Record<'login' | 'consent' | 'connectedApps' | 'keys', Handler>>
}

/** What tests replace. */
export interface WalletPorts
  extends Partial<Pick<WalletOptions, 'clock' | 'clientKeys' | 'onRefusal' | 'onError'>> {
  /** The incoming payments that can be paid. Default: those of this wallet. */
  readonly receivers?: Receivers
}

/** Creates the servers, which price payments and hold their amounts on the ledger, and the pages. */
export function createWallet(
  settings: WalletSettings,
  database: Database,
  { receivers, clock = { now: Date.now }, ...ports }: WalletPorts = {},
): Wallet {
  const { baseUrl } = settings
  const ledger = ledgerOn(database)
  const keys = clientKeysOn(database)
  const servers: Servers = createServers({
    baseUrl, // grants at /auth, payments at /incoming-payments, accounts at their URLs
    consentUrl: `${baseUrl}/consent`,
    store: database.store,
    subjects: walletAddressSubjects, // apps may ask an owner which account is theirs
    walletAddresses: {
      async find(url) {
        const account = await ledger.find(url)
        if (account === undefined) return undefined
        return { ...account, keys: (await keys.of(url)).map(({ kid, x }) => ({ kid, x })) }
      },
    },
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: settings.paymentDetailsSecret,
    }),
    pricing: pricingOf(() => receivers ?? servers.resources.incomingPayments),
    policy: { mayPay: mayPayFrom(ledger) },
    clock,
    onRefusal,
    onError: console.error,
    ...ports,
  })
  const login = createLogin(settings)
  const pages = createPages({
    auth: servers.auth,
    resources: servers.resources,
    ownerOf: login.ownerOf,
    accountsOf: ledger.ownedBy,
    signIn: login.redirect,
    formKey: settings.sessionSecret,
    keys,
    connectedAppsUrl: '/apps',
    design,
    onError: console.error,
    clock,
  })
  return {
    ...servers,
    handle: withStartPage(baseUrl, servers.handle),
    ledger,
    database,
    pages: { ...pages, login: login.page },
  }
}

/** Refuses payments that their account does not cover, and holds the others. */
export function mayPayFrom(ledger: Ledger): MayPay {
  return async (payment) => {
    const isHeld = await ledger.hold(payment)
    return isHeld ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }
}

/** Responses give few details about a refusal. This hook receives the reason. */
function onRefusal({ operation, refusal, reason }: RefusalReport): void {
  console.warn(`${operation ?? 'request'} refused: ${refusal}: ${reason}`)
}
