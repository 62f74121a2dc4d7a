import {
  type AuthorizationServer,
  type Clock,
  type Instant,
  type InteractionView,
  InvalidInputError,
  type ResourceServer,
} from 'open-payments-server'
import {
  type HttpRequest,
  type HttpResponse,
  requireKnownOptions,
} from 'open-payments-server/adapter'
import type { IntervalCounting } from 'open-payments-server/core'
import type { AccountLimitSettings, accountLimitsScreen } from './account-limits.js'
import type { confirmationScreen } from './confirmation.js'
import type { connectedAppScreen } from './connected-app.js'
import type { ConnectedApp, ConnectedAppsOptions } from './connected-apps.js'
import type { ConsentOptions } from './consent.js'
import type { endedAppsScreen } from './ended-apps.js'
import type { keysScreen, OwnerKeys } from './keys.js'
import type { Design, Screen } from './layout.js'
import type { limitCheckScreen } from './limit-check.js'
import { type Languages, type LocaleSettings, languages } from './locale.js'
import type { noticeScreen } from './notice.js'
import type { OwnedAccount } from './owned-account.js'
import type { NamedReceiver } from './receivers.js'
import type { SendSettings, sendCheckScreen, sendScreen } from './send.js'
import { requireTexts } from './texts.js'

/** The signed-in owner of a request. */
export interface Owner extends LocaleSettings {
  /** The host's identifier of the owner, as for `approve`. */
  readonly id: string
  /** How to name the owner. Default: `id`. */
  readonly name?: string
  /** When the owner has last proved who they are, such as by a password. Needed with `signInAgain`. */
  readonly signedInAt?: Instant | undefined
}

/** What the pages need of your wallet: its servers, the signed-in owner, and how they look. */
export interface PagesOptions {
  /** The authorization server, for its interactions and grants. */
  readonly auth: {
    readonly interactions: Pick<AuthorizationServer['interactions'], 'get' | 'approve' | 'deny'>
    readonly grants: Pick<
      AuthorizationServer['grants'],
      'get' | 'list' | 'history' | 'revoke' | 'amend' | 'displayOf'
    >
  }
  /**
   * The resource server, for what apps have spent, and for payments to confirm. Without it, the connected apps show
   * limits only, and there is nothing to confirm.
   */
  readonly resources?: {
    /** For the names of receivers in this wallet. */
    readonly incomingPayments?: Pick<ResourceServer['incomingPayments'], 'idOf' | 'get'>
    /** For the page on which owners send money. */
    readonly quotes?: Pick<ResourceServer['quotes'], 'create' | 'get'>
    readonly outgoingPayments: Pick<
      ResourceServer['outgoingPayments'],
      'budgetsOf' | 'limitsOf' | 'list'
    > &
      Partial<
        Pick<
          ResourceServer['outgoingPayments'],
          'get' | 'toConfirm' | 'listToConfirm' | 'confirm' | 'decline' | 'create'
        >
      >
  }
  /** Returns or resolves to the signed-in owner of a request, or `undefined`. */
  readonly ownerOf: (request: HttpRequest) => Owner | undefined | Promise<Owner | undefined>
  /** Returns or resolves to the accounts of an owner: wallet addresses with their assets. */
  readonly accountsOf: (
    ownerId: string,
  ) => readonly OwnedAccount[] | Promise<readonly OwnedAccount[]>
  /**
   * Returns or resolves to who gets the money of an incoming payment, or to `undefined`. The consent page waits for it
   * for at most 2 s. If it is late or rejects, the page shows the host and the URL. Default: the account of an incoming
   * payment of this wallet, from `resources`, with its public name.
   */
  readonly receiverOf?: (
    url: string,
  ) => NamedReceiver | undefined | Promise<NamedReceiver | undefined>
  /**
   * Returns or resolves to the response for a browser that is not signed in, such as a redirect to the login:
   * `seeOther('/login?next=…')`. The login then leads back to the URL of the request. If a session has ended while a
   * page was open, its form gets a page with the redirect as a link, which may lead to another origin.
   */
  readonly signIn: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>
  /**
   * Returns or resolves to a redirect to a login that asks for the password again, and then leads back to the URL of
   * the request, with a later `signedInAt` in `ownerOf`. With it, owners raise and remove limits for all apps within
   * five minutes after a sign-in. Default: they can only lower them.
   */
  readonly signInAgain?: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>
  /**
   * How an owner signs out: the URL of your page for it, to which a link leads; or a function that ends the session of
   * the request, and returns or resolves to a response such as `seeOther('/login', { 'set-cookie': … })`. It is called
   * for a form of the pages only, never for one of another site. Its redirect becomes the link of a page, which may
   * lead to another origin. Default: the pages only show who is signed in.
   */
  readonly signOut?: string | ((request: HttpRequest) => HttpResponse | Promise<HttpResponse>)
  /** Authenticates the forms: at least 32 random bytes, the same in every process of the wallet. */
  readonly formKey: Uint8Array
  /** The keys that owners register for their apps, for the page of keys. Default: there is no such page. */
  readonly keys?: OwnerKeys
  /**
   * The limits that owners set for all payments from an account, which `policy.accountLimits` returns, for a page to
   * which the connected apps link. Default: there is no such page.
   */
  readonly accountLimits?: AccountLimitSettings
  /** How owners pay others, for the page on which they send money. Default: there is no such page. */
  readonly send?: SendSettings
  /** The path or URL of the page of connected apps, to which the other pages link. Default: no link. */
  readonly connectedAppsUrl?: string
  /** The path or URL of the page of keys, to which the pages of apps and limits link. Default: no link. */
  readonly keysUrl?: string
  /** The path or URL of the page on which owners send money, to which the others link. Default: no link. */
  readonly sendUrl?: string
  readonly design?: Design
  /** The texts by language. Default: `languages` of this package. */
  readonly languages?: Languages
  /** The option `compatibility.intervalCounting` of the authorization server. Default: `occurrences`. */
  readonly intervalCounting?: IntervalCounting
  /** Replaces what pages show: the default functions of this package can be called in them. */
  readonly screens?: Partial<PageScreens>
  /** Receives the error of a hook or server, for which the page is a 500. */
  readonly onError?: (error: unknown) => void
  /** The source of the time. Default: the real time. */
  readonly clock?: Clock
}

/** What the pages show. */
export interface PageScreens {
  readonly consent: (view: InteractionView, options: ConsentOptions) => Screen
  readonly confirmation: typeof confirmationScreen
  readonly connectedApps: (apps: readonly ConnectedApp[], options: ConnectedAppsOptions) => Screen
  readonly connectedApp: typeof connectedAppScreen
  readonly endedApps: typeof endedAppsScreen
  readonly accountLimits: typeof accountLimitsScreen
  readonly limitCheck: typeof limitCheckScreen
  readonly keys: typeof keysScreen
  readonly send: typeof sendScreen
  readonly sendCheck: typeof sendCheckScreen
  readonly notice: typeof noticeScreen
}

const known: Readonly<Record<keyof PagesOptions, true>> = {
  auth: true,
  resources: true,
  ownerOf: true,
  accountsOf: true,
  receiverOf: true,
  signIn: true,
  signInAgain: true,
  signOut: true,
  formKey: true,
  keys: true,
  accountLimits: true,
  connectedAppsUrl: true,
  keysUrl: true,
  send: true,
  sendUrl: true,
  design: true,
  languages: true,
  intervalCounting: true,
  screens: true,
  onError: true,
  clock: true,
}

/** @throws {InvalidInputError} for an invalid option. */
export function requirePagesOptions(options: PagesOptions): void {
  requireKnownOptions('', options, known)
  for (const hook of ['ownerOf', 'accountsOf', 'signIn'] as const) {
    if (typeof options[hook] !== 'function') throw new InvalidInputError(hook, 'must be a function')
  }
  for (const hook of ['receiverOf', 'signInAgain'] as const) {
    if (!['undefined', 'function'].includes(typeof options[hook])) {
      throw new InvalidInputError(hook, 'must be a function')
    }
  }
  if (!['undefined', 'string', 'function'].includes(typeof options.signOut)) {
    throw new InvalidInputError('signOut', 'must be a URL or a function')
  }
  for (const [tag, given] of Object.entries(options.languages ?? languages)) {
    requireTexts(`languages.${tag}`, given, languages.en)
  }
}
