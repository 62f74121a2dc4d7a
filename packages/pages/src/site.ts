import type { Instant } from 'open-payments-server'
import type { Handler, HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { accountLimitsScreen } from './account-limits.js'
import { confirmationScreen } from './confirmation.js'
import { connectedAppScreen } from './connected-app.js'
import { connectedAppsScreen } from './connected-apps.js'
import { consentScreen } from './consent.js'
import { endedAppsScreen } from './ended-apps.js'
import { type FormTokens, fieldsOf, formTokens, isForeignForm, isStartedByNoPage } from './forms.js'
import { type Html, html } from './html.js'
import { keysScreen } from './keys.js'
import { page, type Screen, type SignedIn } from './layout.js'
import { limitCheckScreen } from './limit-check.js'
import { type Locale, languages, localeFor, say } from './locale.js'
import { navigationAt, type Place } from './navigation.js'
import { type NoticeName, noticeScreen } from './notice.js'
import { type Owner, type PageScreens, type PagesOptions, requirePagesOptions } from './options.js'
import { sendCheckScreen, sendScreen } from './send.js'

/** A request for a page, with its owner and the owner's language. */
export interface Visit {
  readonly request: HttpRequest
  readonly owner: Owner | undefined
  readonly locale: Locale
  /** The owner, as the top of the page shows it. */
  readonly signedIn?: SignedIn | undefined
}

/** A visit of a signed-in owner. */
export interface OwnersVisit extends Visit {
  readonly owner: Owner
}

/** The functions that the handlers of all pages share. */
export interface Site {
  readonly options: PagesOptions
  readonly tokens: FormTokens
  readonly screens: PageScreens
  readonly now: () => Instant
  /** Returns the response with a screen. With `place`, it has links to the other pages of the owner. */
  show(
    screen: Screen,
    visit: Visit,
    more?: { status?: number; place?: Place | 'elsewhere' | undefined },
  ): HttpResponse
  /** Returns the response with a short answer. */
  notice(status: number, name: NoticeName, visit: Visit, more?: NoticeParts): HttpResponse
  /** Returns the way to the login. For a form it is a page, because the login may be at another origin. */
  signIn(visit: Visit): Promise<HttpResponse>
  /** Returns a page with a link in place of a redirect, which browsers follow after a form only to this wallet. */
  linked(
    response: HttpResponse,
    name: 'goodbye' | 'sessionOver' | 'signInAgain',
    visit: Visit,
  ): HttpResponse
  /** Returns the handler of a page, which has a page for each error. */
  served(serve: (visit: Visit) => Promise<HttpResponse>): Handler
}

/** The parts that a short answer can have in addition to its text. */
export interface NoticeParts {
  /** Below the sentence. */
  readonly content?: Html
  /** The final destination of a form in `content`: see `Screen`. */
  readonly formTarget?: string | undefined
  /** Adds the links to the pages of the owner. */
  readonly place?: 'elsewhere'
}

/** @throws {InvalidInputError} for an invalid option. */
export function createSite(options: PagesOptions): Site {
  requirePagesOptions(options)
  const { design, connectedAppsUrl } = options
  const texts = options.languages ?? languages
  const { now } = options.clock ?? { now: () => Date.now() }
  const screens: PageScreens = {
    consent: consentScreen,
    confirmation: confirmationScreen,
    connectedApps: connectedAppsScreen,
    connectedApp: connectedAppScreen,
    endedApps: endedAppsScreen,
    accountLimits: accountLimitsScreen,
    limitCheck: limitCheckScreen,
    keys: keysScreen,
    send: sendScreen,
    sendCheck: sendCheckScreen,
    notice: noticeScreen,
    ...options.screens,
  }

  const tokens = formTokens(options.formKey)

  async function signedInAs({ id, name = id }: Owner): Promise<SignedIn> {
    const { signOut } = options
    if (signOut === undefined) return { name }
    if (typeof signOut === 'string') return { name, signOut: { url: signOut } }
    return { name, signOut: { token: await tokens.value('sign-out', id) } }
  }

  /** Ends the session of the owner to whom the page was shown, or else only shows who is signed in now. */
  async function signedOut({ request, owner }: Visit, token: string) {
    if (typeof options.signOut !== 'function' || owner === undefined) return undefined
    const isOwners = await tokens.isValid(token, 'sign-out', owner.id)
    return isOwners ? options.signOut(request) : undefined
  }

  const show: Site['show'] = (screen, { locale, signedIn }, { status = 200, place } = {}) => {
    const navigation = place && navigationAt(place, options, locale)
    return page(screen, { locale, owner: signedIn, navigation, design, status })
  }

  const notice: Site['notice'] = (status, name, visit, { content, formTarget, place } = {}) => {
    const { locale } = visit
    const link =
      connectedAppsUrl && html`<p><a href="${connectedAppsUrl}">${say(locale, 'appsTitle')}</a></p>`
    const below = html`${content}${link}`
    return show(
      {
        ...screens.notice(name, locale, { content: below }),
        formTarget,
      },
      visit,
      { status, place },
    )
  }

  const linked: Site['linked'] = ({ headers, ...response }, name, { locale, request }) => {
    const { location, 'content-security-policy': _policy, ...others } = headers
    if (location === undefined) return { headers, ...response }
    const content = html`<p><a class="button" href="${location}">${say(locale, 'login')}</a></p>`
    const visit = { request, locale, owner: undefined }
    const shown = show(screens.notice(name, locale, { content }), visit, {
      status: name === 'goodbye' ? 200 : 403,
    })
    return { ...shown, headers: { ...others, ...shown.headers } }
  }

  const signIn: Site['signIn'] = async (visit) => {
    const response = await options.signIn(visit.request)
    return visit.request.method === 'POST' ? linked(response, 'sessionOver', visit) : response
  }

  return {
    options,
    tokens,
    screens,
    now,
    show,
    notice,
    linked,
    signIn,
    served(serve) {
      return async (request) => {
        let visit: Visit = { request, owner: undefined, locale: localeFor(request, {}, texts) }
        try {
          const owner = await options.ownerOf(request)
          const signedIn = owner && (await signedInAs(owner))
          visit = { request, owner, locale: localeFor(request, owner, texts), signedIn }
          const { method } = request
          if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') {
            const { headers, ...refused } = notice(405, 'wrongMethod', visit)
            return { ...refused, headers: { ...headers, allow: 'GET, HEAD, POST' } }
          }
          if (method === 'POST' && isForeignForm(request)) {
            if (!isStartedByNoPage(request)) return notice(403, 'foreign', visit)
            return await serve({ ...visit, request: { ...request, method: 'GET' } })
          }
          const token = method === 'POST' ? fieldsOf(request).get('sign-out') : null
          if (token === null) return await serve(visit)
          if (owner === undefined) return await signIn(visit)
          const shown = { ...visit, request: { ...request, method: 'GET' } }
          const ended = await signedOut(visit, token)
          return ended === undefined ? await serve(shown) : linked(ended, 'goodbye', visit)
        } catch (error) {
          options.onError?.(error)
          return notice(500, 'broken', visit)
        }
      }
    },
  }
}

/** Whether the owner of the visit is known. */
export function isSignedIn(visit: Visit): visit is OwnersVisit {
  return visit.owner !== undefined
}
