import {
  type AuthorizationServer,
  type Clock,
  type GrantView,
  type HostResult,
  type InteractionView,
  InvalidInputError,
  type ItemView,
  type ResourceServer,
  readClientKey,
} from 'open-payments-server'
import {
  type Handler,
  type HttpRequest,
  type HttpResponse,
  requireKnownOptions,
} from 'open-payments-server/adapter'
import type { IntervalCounting } from 'open-payments-server/core'
import { readAmount } from './amounts.js'
import {
  type ConnectedApp,
  type ConnectedAppsOptions,
  connectedAppsScreen,
  untilResumed,
} from './connected-apps.js'
import { type ConsentOptions, consentScreen, isSameUrl, type OwnedAccount } from './consent.js'
import { fieldsOf, formTokens, isForeignForm } from './forms.js'
import { html } from './html.js'
import { type KeyProblem, keysScreen, type OwnerKeys, readKey } from './keys.js'
import { type Design, page, type Screen, seeOther } from './layout.js'
import {
  type Languages,
  type Locale,
  type LocaleSettings,
  languages,
  localeFor,
  say,
} from './locale.js'
import { type NoticeName, noticeScreen } from './notice.js'
import { requireTexts } from './texts.js'

/** The signed-in owner of a request. */
export interface Owner extends LocaleSettings {
  /** The host's identifier of the owner, as for `approve`. */
  readonly id: string
  /** How to name the owner. Default: `id`. */
  readonly name?: string
}

export interface PagesOptions {
  /** The authorization server, for its interactions and grants. */
  readonly auth: {
    readonly interactions: Pick<AuthorizationServer['interactions'], 'get' | 'approve' | 'deny'>
    readonly grants: Pick<
      AuthorizationServer['grants'],
      'get' | 'list' | 'revoke' | 'amend' | 'displayOf'
    >
  }
  /** The resource server, for what apps have spent. Without it, the connected apps show limits only. */
  readonly resources?: {
    readonly outgoingPayments: Pick<ResourceServer['outgoingPayments'], 'budgetsOf' | 'list'>
  }
  /** Returns or resolves to the signed-in owner of a request, or `undefined`. */
  readonly ownerOf: (request: HttpRequest) => Owner | undefined | Promise<Owner | undefined>
  /** Returns or resolves to the accounts of an owner: wallet addresses with their assets. */
  readonly accountsOf: (
    ownerId: string,
  ) => readonly OwnedAccount[] | Promise<readonly OwnedAccount[]>
  /**
   * Returns or resolves to the response for a browser that is not signed in, such as a redirect to the login:
   * `seeOther('/login?next=…')`. The login then leads back to the URL of the request.
   */
  readonly signIn: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>
  /** Authenticates the forms: at least 32 random bytes, the same in every process of the wallet. */
  readonly formKey: Uint8Array
  /** The keys that owners register for their apps, for the page of keys. Default: there is no such page. */
  readonly keys?: OwnerKeys
  /** The path or URL of the page of connected apps, to which the other pages link. Default: no link. */
  readonly connectedAppsUrl?: string
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
  readonly connectedApps: (apps: readonly ConnectedApp[], options: ConnectedAppsOptions) => Screen
  readonly keys: typeof keysScreen
  readonly notice: typeof noticeScreen
}

/** The pages as handlers, for the adapters of the library, such as `toExpress`. */
export interface Pages {
  /** The consent page, below the path of `consentUrl`: `/consent/{id}`. */
  readonly consent: Handler
  /** The page of connected apps. */
  readonly connectedApps: Handler
  /**
   * The page on which owners register the public keys of apps, and revoke them. An app can link to it with `account`,
   * `name` and `key` in the query, which only fill the form.
   */
  readonly keys: Handler
}

const known: Readonly<Record<keyof PagesOptions, true>> = {
  auth: true,
  resources: true,
  ownerOf: true,
  accountsOf: true,
  signIn: true,
  formKey: true,
  keys: true,
  connectedAppsUrl: true,
  design: true,
  languages: true,
  intervalCounting: true,
  screens: true,
  onError: true,
  clock: true,
}

/** The apps on one page. */
const appsMax = 20

/**
 * Creates the pages on which owners consent, and see and end the access of apps.
 *
 * @throws {InvalidInputError} for an invalid option.
 *
 * @example
 * ```ts
 * import { createPages, seeOther } from 'open-payments-pages'
 *
 * const pages = createPages({
 *   auth: wallet.auth,
 *   resources: wallet.resources,
 *   ownerOf: async () => ({ id: 'alice', name: 'Alice' }), // from your session
 *   accountsOf: async () => [
 *     { url: 'https://wallet.example/alice', assetCode: 'USD', assetScale: 2 },
 *   ],
 *   signIn: ({ url }) => seeOther(`/login?next=${encodeURIComponent(url)}`),
 *   formKey: Buffer.from(process.env['FORM_KEY'] ?? '', 'base64'),
 * })
 * ```
 */
export function createPages(options: PagesOptions): Pages {
  requireKnownOptions('', options, known)
  for (const hook of ['ownerOf', 'accountsOf', 'signIn'] as const) {
    if (typeof options[hook] !== 'function') throw new InvalidInputError(hook, 'must be a function')
  }
  const { auth, resources, accountsOf, design, connectedAppsUrl, intervalCounting } = options
  const { interactions, grants } = auth
  const texts = options.languages ?? languages
  for (const [tag, given] of Object.entries(texts)) {
    requireTexts(`languages.${tag}`, given, languages.en)
  }
  const tokens = formTokens(options.formKey)
  const { now } = options.clock ?? Date
  const screens: PageScreens = {
    consent: consentScreen,
    connectedApps: connectedAppsScreen,
    keys: keysScreen,
    notice: noticeScreen,
    ...options.screens,
  }

  function notice(
    status: number,
    name: NoticeName,
    locale: Locale,
    values: Readonly<Record<string, string>> = {},
  ): HttpResponse {
    const link =
      connectedAppsUrl && html`<p><a href="${connectedAppsUrl}">${say(locale, 'appsTitle')}</a></p>`
    const screen = screens.notice(name, locale, { values, content: link || undefined })
    return page(screen, { locale, design, status })
  }

  /** Serves a page: to the signed-in owner, in the owner's language, and with a page for each error. */
  function served(
    serve: (
      request: HttpRequest,
      owner: Owner | undefined,
      locale: Locale,
    ) => Promise<HttpResponse>,
  ): Handler {
    return async (request) => {
      let locale = localeFor(request, {}, texts)
      try {
        const owner = await options.ownerOf(request)
        locale = localeFor(request, owner, texts)
        const { method } = request
        if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') {
          const { headers, ...refused } = notice(405, 'wrongMethod', locale)
          return { ...refused, headers: { ...headers, allow: 'GET, HEAD, POST' } }
        }
        if (method === 'POST' && isForeignForm(request)) return notice(403, 'foreign', locale)
        return await serve(request, owner, locale)
      } catch (error) {
        options.onError?.(error)
        return notice(500, 'broken', locale)
      }
    }
  }

  async function askConsent(
    view: InteractionView,
    owner: Owner,
    locale: Locale,
    problem?: ConsentOptions['problem'],
  ): Promise<HttpResponse> {
    if (view.status === 'interaction-expired') return notice(410, 'expired', locale)
    if (!isOpen(view)) return notice(410, 'answered', locale)
    const accounts = await accountsOf(owner.id)
    const isForeign = view.access.some(
      ({ identifier }) =>
        identifier !== undefined && !accounts.some(({ url }) => isSameUrl(url, identifier)),
    )
    if (isForeign) return notice(403, 'notYours', locale)
    const screen = screens.consent(view, {
      locale,
      now: now(),
      intervalCounting,
      accounts,
      ownerName: owner.name ?? owner.id,
      token: await tokens.field('consent', owner.id, view.id),
      problem,
      connectedAppsUrl,
    })
    return page(screen, { locale, design, status: problem === undefined ? 200 : 400 })
  }

  async function decideConsent(
    request: HttpRequest,
    view: InteractionView,
    owner: Owner,
    locale: Locale,
  ): Promise<HttpResponse> {
    const { id } = view
    if (!(await tokens.isValid(request, 'consent', owner.id, id))) {
      return askConsent(view, owner, locale, 'stale')
    }
    const fields = fieldsOf(request)
    const decision = fields.get('decision')
    if (decision === 'deny') {
      const denied = await interactions.deny(id, { resourceOwner: owner.id })
      return answered(denied, 'denied', locale)
    }
    if (decision !== 'approve') return askConsent(view, owner, locale, 'undecided')
    const walletAddresses = await accountsOf(owner.id)
    if (walletAddresses.length === 0) return notice(403, 'notYours', locale)
    const account = view.needAccount.length === 0 ? undefined : fields.get('account')
    if (account && !walletAddresses.some(({ url }) => isSameUrl(url, account))) {
      return notice(403, 'notYours', locale)
    }
    const approval = { resourceOwner: owner.id, walletAddresses, ...(account && { account }) }
    const approved = await interactions.approve(id, approval)
    if (!approved.ok && /^(?:identifier_required|asset_mismatch)$/.test(approved.refusal)) {
      return askConsent(view, owner, locale, 'choose')
    }
    return answered(approved, 'approved', locale)
  }

  function answered(
    result: HostResult<{ readonly redirect?: string }>,
    done: 'approved' | 'denied',
    locale: Locale,
  ): HttpResponse {
    if (result.ok) {
      return result.redirect === undefined ? notice(200, done, locale) : seeOther(result.redirect)
    }
    if (result.refusal === 'not_the_owner') return notice(403, 'notYours', locale)
    return notice(409, 'failed', locale, { reason: result.reason })
  }

  const consent = served(async (request, owner, locale) => {
    const [path = ''] = request.url.split('?', 1)
    const view = await interactions.get(path.split('/').at(-1) ?? '')
    if (view === undefined) return notice(404, 'unknown', locale)
    if (request.method === 'POST') {
      if (owner === undefined) return options.signIn(request)
      return decideConsent(request, view, owner, locale)
    }
    if (!isOpen(view)) return askConsent(view, owner ?? { id: '' }, locale)
    return owner === undefined ? options.signIn(request) : askConsent(view, owner, locale)
  })

  async function connected(grant: GrantView): Promise<ConnectedApp> {
    const payments = resources?.outgoingPayments
    const { grantId } = grant
    const isPaying = grant.access.some(({ type }) => type === 'outgoing-payment')
    const [display, budgets, last] = await Promise.all([
      grants.displayOf(grant.client),
      isPaying ? payments?.budgetsOf(grantId) : undefined,
      isPaying ? payments?.list({ grantId, last: 1 }) : undefined,
    ])
    return {
      grant,
      display,
      ...(budgets && { budgets }),
      ...(last && { lastPayment: last.result[0] ?? null }),
    }
  }

  async function listApps(
    request: HttpRequest,
    owner: Owner,
    locale: Locale,
    outcome?: ConnectedAppsOptions['outcome'],
  ): Promise<HttpResponse> {
    const query = new URLSearchParams(request.url.split('?')[1])
    const newest = { resourceOwner: owner.id, statuses: ['approved'], last: appsMax } as const
    const cursor = query.get('before')
    const { result, pagination } = await (cursor === null
      ? grants.list(newest)
      : grants.list({ ...newest, cursor }).catch((error) => {
          // A link on any page can contain any cursor.
          if (error instanceof InvalidInputError) return grants.list(newest)
          throw error
        }))
    const { hasPreviousPage, startCursor } = pagination
    const done = query.get('done')
    const screen = screens.connectedApps(
      await Promise.all(result.toReversed().map((grant) => connected(grant))),
      {
        locale,
        now: now(),
        intervalCounting,
        ownerName: owner.name ?? owner.id,
        token: await tokens.field('apps', owner.id),
        outcome: outcome ?? (done === 'changed' || done === 'removed' ? done : undefined),
        olderUrl:
          hasPreviousPage && startCursor !== undefined
            ? `?${new URLSearchParams({ before: startCursor })}`
            : undefined,
      },
    )
    return page(screen, { locale, design, status: outcome === undefined ? 200 : 400 })
  }

  /** Changes a grant, after it has checked that it is the owner's: a form can contain any id. */
  async function changeApp(
    request: HttpRequest,
    owner: Owner,
    locale: Locale,
  ): Promise<HttpResponse> {
    const refuse = (outcome: ConnectedAppsOptions['outcome']) =>
      listApps(request, owner, locale, outcome)
    if (!(await tokens.isValid(request, 'apps', owner.id))) return refuse('stale')
    const fields = fieldsOf(request)
    const grantId = fields.get('grant') ?? ''
    const grant = await grants.get(grantId)
    if (grant?.resourceOwner !== owner.id) return notice(404, 'notApproved', locale)
    if (fields.get('do') === 'revoke') {
      await grants.revoke(grantId)
      return seeOther('?done=removed')
    }
    const changes = changesOf(grant, fields, locale)
    if (changes === undefined) return refuse('unreadable')
    const amended = await grants.amend(grantId, { resourceOwner: owner.id, ...changes })
    return amended.ok ? seeOther('?done=changed') : refuse('notNarrower')
  }

  const connectedApps = served(async (request, owner, locale) => {
    if (owner === undefined) return options.signIn(request)
    return request.method === 'POST'
      ? changeApp(request, owner, locale)
      : listApps(request, owner, locale)
  })

  const keys = served(async (request, owner, locale) => {
    const registered = options.keys
    if (registered === undefined) return notice(404, 'unknown', locale)
    if (owner === undefined) return options.signIn(request)
    const isPosted = request.method === 'POST'
    const given = isPosted ? fieldsOf(request) : new URLSearchParams(request.url.split('?')[1])
    const accounts = await accountsOf(owner.id)
    const wanted = given.get('account') ?? accounts[0]?.url
    const account = accounts.find(({ url }) => url === wanted)
    if (account === undefined) return notice(403, 'notYours', locale)
    const show = async (problem?: KeyProblem) => {
      const screen = await screens.keys(await registered.of(account.url), {
        locale,
        account,
        accounts,
        given,
        problem,
        ownerName: owner.name ?? owner.id,
        token: await tokens.field('keys', owner.id),
      })
      return page(screen, { locale, design, status: problem === undefined ? 200 : 400 })
    }
    if (!isPosted) {
      const read = given.has('key') ? readClientKey(given.get('key') ?? '') : undefined
      return show(read?.ok === false ? { reason: read.reason } : undefined)
    }
    if (!(await tokens.isValid(request, 'keys', owner.id))) return show('stale')
    const revoked = given.get('revoke')
    if (revoked !== null) {
      await registered.revoke(account.url, revoked)
    } else {
      const read = readKey(given, now())
      if (!read.ok) return show(read.problem)
      const isTaken = account.keys?.some(({ kid }) => kid === read.key.kid)
      const outcome = isTaken ? 'kidTaken' : await registered.add(account.url, read.key)
      if (outcome !== 'added') return show(outcome)
    }
    const done = revoked === null ? 'added' : 'revoked'
    return seeOther(`?${new URLSearchParams({ account: account.url, done })}`)
  })

  return { consent, connectedApps, keys }
}

/** Whether the owner can decide, or repeat an approval. */
function isOpen({ status, issuedAt }: InteractionView): boolean {
  return status === 'pending' || (status === 'approved' && issuedAt === undefined)
}

/** Returns what the form of an owner changes, or `undefined` if it cannot be read. */
function changesOf({ access }: GrantView, fields: URLSearchParams, locale: Locale) {
  const isChosen = ({ itemId }: ItemView) => itemId === fields.get('item')
  switch (fields.get('do')) {
    case 'pause':
      return { conditions: { pausedUntil: untilResumed } }
    case 'resume':
      return { conditions: { pausedUntil: null } }
    case 'remove':
      return { access: access.filter((item) => !isChosen(item)) }
    case 'lower': {
      const item = access.find(isChosen)
      const lower = item && lowered(item, fields.get('most') ?? '', locale)
      return lower && { access: access.map((each) => (each === item ? lower : each)) }
    }
    default:
      return undefined
  }
}

/** Returns the item with another limit, or `undefined` if the amount cannot be read. */
function lowered(item: ItemView, text: string, locale: Locale): ItemView | undefined {
  const limit = item.limits?.debitAmount
  if (limit === undefined) return undefined
  const value = readAmount(text, limit, locale)
  if (value === undefined) return undefined
  return { ...item, limits: { ...item.limits, debitAmount: { ...limit, value } } }
}
