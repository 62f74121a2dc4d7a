import {
  type AccountLimitSettings,
  createPages,
  type Design,
  type OwnerKeys,
} from 'open-payments-pages'
import {
  createWallet as createServers,
  type Handler,
  ilpPaymentMethods,
  type MayPay,
  type MayReceive,
  type RefusalReport,
  type RequestedPayment,
  type Wallet as Servers,
  type WalletOptions,
  walletAddressSubjects,
} from 'open-payments-server'
import { accountLimitsOn } from './account-limits.js'
import { clientKeysOn } from './client-keys.js'
import { confirmedByOwner, isAbove } from './confirmation.js'
import { design as ownDesign } from './design.js'
import { type Exchanges, exchangeFor } from './exchange.js'
import { forHost } from './hosts.js'
import { type Ledger, ledgerOn } from './ledger.js'
import { createLogin, type Login } from './login.js'
import { ownReceivers, pricingOf, type Receivers } from './pricing.js'
import { sendingTo } from './send.js'
import type { WalletSettings } from './settings.js'
import type { Database } from './sql.js'

/** The servers and pages of the wallet. `server.ts` mounts them. */
export interface Wallet extends Omit<Servers, 'handle'> {
  /** Serves every path that no page has. */
  readonly handle: Handler<string | Uint8Array>
  readonly ledger: Ledger
  readonly database: Database
  readonly pages: Readonly<
    Record<'login' | 'consent' | 'confirmation' | 'connectedApps' | 'keys' | 'send', Handler>
  >
}

/** What to replace: the stubs, and what the library asks a host for. */
export interface WalletPorts
  extends Partial<
    Pick<
      WalletOptions,
      | 'clientKeys'
      | 'clock'
      | 'onError'
      | 'onRefusal'
      | 'paymentMethods'
      | 'rateLimit'
      | 'signatures'
    >
  > {
  /** The look of the pages. Default: that of `design.ts`. */
  readonly design?: Design
  readonly ledger?: Ledger
  readonly login?: Login
  /** The keys that owners registered. */
  readonly keys?: OwnerKeys
  /** The limits that owners set for all payments from an account. */
  readonly limits?: AccountLimitSettings
  /** What can be paid. Default: the incoming payments of this wallet. */
  readonly receivers?: Receivers
  /** Default: at the rates of `exchange.ts`, without a fee. */
  readonly exchanges?: Exchanges
  /** Whether the owner has to confirm a payment. Default: those above `confirmAbove` of the settings. */
  readonly mustConfirm?: (payment: RequestedPayment) => boolean
  /** Whether an account may receive. Default: each may. */
  readonly mayReceive?: MayReceive
}

/** Creates the servers, which price payments and hold their amounts on the ledger, and the pages. */
export function createWallet(
  settings: WalletSettings,
  database: Database,
  ports: WalletPorts = {},
): Wallet {
  const { baseUrl } = settings
  const {
    design = ownDesign,
    ledger = ledgerOn(database),
    login = createLogin(settings),
    keys = clientKeysOn(database),
    limits = accountLimitsOn(database),
    receivers = (url) => ownReceivers(servers.resources.incomingPayments)(url),
    exchanges = exchangeFor({ basisPoints: 0n, fixed: 0n }),
    mustConfirm = isAbove(settings.confirmAbove),
    mayReceive,
    ...options
  } = ports
  const { clock = { now: () => Date.now() }, onError = console.error } = options
  const servers: Servers = createServers({
    baseUrl, // grants at /auth, payments at /incoming-payments, accounts at their URLs
    consentUrl: `${baseUrl}/consent`,
    store: database.store,
    subjects: walletAddressSubjects, // apps may ask an owner which account is theirs
    walletAddresses: {
      async find(url) {
        const account = await ledger.find(url)
        if (account === undefined) return undefined
        const registered = (await keys.of(url)).map(({ kid, x }) => ({ kid, x }))
        return { ...account, keys: [...(account.keys ?? []), ...registered] }
      },
    },
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: settings.paymentDetailsSecret,
    }),
    pricing: pricingOf(receivers, exchanges),
    policy: {
      mayPay: confirmedByOwner(mayPayFrom(ledger), { baseUrl, mustConfirm, clock }),
      accountLimits: limits.of,
      ...(mayReceive && { mayReceive }),
    },
    clock,
    onRefusal: reportRefusal,
    onError,
    ...options,
  })
  const pages = createPages({
    auth: servers.auth,
    resources: servers.resources,
    ownerOf: login.ownerOf,
    accountsOf: ledger.ownedBy,
    signIn: login.redirect,
    signInAgain: login.redirect,
    signOut: login.signOut,
    formKey: settings.sessionSecret,
    keys,
    accountLimits: limits,
    connectedAppsUrl: '/apps',
    keysUrl: '/keys',
    send: sendingTo(servers.resources.incomingPayments, ledger, clock),
    sendUrl: '/send',
    design,
    onError,
    clock,
  })
  // A site that lets its own name lead here could otherwise try passwords, and read what it gets.
  const here = (handler: Handler) => forHost(new URL(baseUrl).hostname, handler)
  return {
    ...servers,
    handle: pages.around(servers.handle),
    ledger,
    database,
    pages: {
      login: here(login.page),
      consent: here(pages.consent),
      confirmation: here(pages.confirmation),
      connectedApps: here(pages.connectedApps),
      keys: here(pages.keys),
      send: here(pages.send),
    },
  }
}

/** Refuses payments that their account does not cover, and holds the others. A preview holds nothing. */
export function mayPayFrom(ledger: Ledger): MayPay {
  return async (payment) => {
    const isCovered = await (payment.isPreview ? ledger.covers(payment) : ledger.hold(payment))
    return isCovered ? { ok: true } : { ok: false, refusal: 'funds_insufficient' }
  }
}

/** Prints the reason of a refusal, of which responses give few details. */
export function reportRefusal({ operation, refusal, reason }: RefusalReport): void {
  console.warn(`${operation ?? 'request'} refused: ${refusal}: ${reason}`)
}
