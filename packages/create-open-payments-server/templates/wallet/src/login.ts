import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import {
  alertOf,
  browserTokens,
  type Design,
  fieldsOf,
  type Html,
  html,
  localeFor,
  loginScreen,
  noticeScreen,
  type Owner,
  page,
  seeOther,
} from 'open-payments-pages'
import type { Handler } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { design as ownDesign } from './design.js'
import type { WalletSettings } from './settings.js'

/**
 * A stub of your login, with one password for all owners and no limit of attempts: replace it with your own. The pages
 * need to know the owner of a browser, and where a browser signs in.
 */
export interface Login {
  /** Returns the signed-in owner. An owner can have a `language` and a `timeZone`. */
  ownerOf(request: HttpRequest): Owner | undefined
  /** Returns a redirect to the login, and then back to the page of the request. */
  redirect(request: HttpRequest): HttpResponse
  /** Removes the cookie, and returns a redirect to the login. A copy of the cookie is valid until its hour is over. */
  signOut(request: HttpRequest): HttpResponse
  readonly page: Handler
}

const lifetimeMs = 60 * 60_000

/** Tells the time zone of the browser, in which pages then show times. Without scripts, they show UTC. */
const zoneScript = `document.getElementById('zone').value =
  Intl.DateTimeFormat().resolvedOptions().timeZone`
const zoneLengthMax = 64

/** @param look `hint` stands above the fields, such as who can sign in while the wallet is a demonstration. */
export function createLogin(
  { baseUrl, sessionSecret, demoPassword }: WalletSettings,
  { design = ownDesign, hint }: { readonly design?: Design; readonly hint?: Html } = {},
): Login {
  const { protocol, port } = new URL(baseUrl)
  const isSecure = protocol === 'https:'
  // Cookies have no port: another wallet on this machine would end the session of this one.
  const cookieName = `${isSecure ? '__Host-' : ''}wallet${port && `-${port}`}`
  // Without https, another host of the same site can set this cookie, and sign the browser in.
  const tokens = browserTokens(sessionSecret, `${cookieName}-form`)
  const mac = (session: string) =>
    createHmac('sha256', sessionSecret).update(`session\n${session}`).digest('base64url')

  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...(isSecure ? ['Secure'] : [])]

  function cookieFor(owner: string, timeZone: string): string {
    const zone = Buffer.from(timeZone).toString('base64url')
    const session = `${owner}.${Date.now() + lifetimeMs}.${zone}`
    return [`${cookieName}=${session}.${mac(session)}`, ...attributes].join('; ')
  }

  function ownerOf(request: HttpRequest): Owner | undefined {
    const [owner = '', until = '', zone = '', given = ''] = cookieOf(request, cookieName).split('.')
    const session = `${owner}.${until}.${zone}`
    if (!isEqual(given, mac(session)) || Date.now() > Number(until)) return undefined
    const timeZone = Buffer.from(zone, 'base64url').toString()
    const signedInAt = Number(until) - lifetimeMs
    return { id: owner, signedInAt, ...(timeZone !== '' && { timeZone }) }
  }

  function redirect(request: HttpRequest): HttpResponse {
    const path = pathOf(request)
    // A link can fill the forms of keys and of sending, and a query selects one of the pages of apps.
    const keepsQuery = ['/keys', '/apps', '/send'].includes(path)
    const query = new URLSearchParams(keepsQuery ? request.url.slice(path.length) : '')
    const next = query.size === 0 ? path : `${path}?${query}`
    return seeOther(`/login?${new URLSearchParams({ next })}`)
  }

  /** The form, which another site must not send: it would sign the browser in as an owner of its choice. */
  async function form(request: HttpRequest, { name, alert, status = 200 }: FormAnswer = {}) {
    const locale = localeFor(request)
    const action = `/login?${new URLSearchParams({ next: nextOf(request) })}`
    const { field, headers } = await tokens.field(request)
    const zone = html`<input type="hidden" id="zone" name="zone">`
    const fields = html`${alert}${hint}${field}${zone}`
    const screen = loginScreen({ locale, action, refusedName: name, fields })
    return page({ ...screen, script: zoneScript }, { locale, design, status, headers })
  }

  return {
    ownerOf,
    redirect,
    signOut(request) {
      const { status, headers } = redirect(request)
      const cookie = [`${cookieName}=`, 'Max-Age=0', ...attributes].join('; ')
      return { status, headers: { ...headers, 'set-cookie': cookie } }
    },
    async page(request) {
      if (request.method === 'GET' || request.method === 'HEAD') return form(request)
      if (request.method !== 'POST') return wrongMethod(request, design)
      const sender = await tokens.check(request)
      if (sender === 'withoutCookie') {
        const link = html`<a href="${baseUrl}/login">${baseUrl}</a>`
        const alert = alertOf('noCookie', localeFor(request), undefined, { link })
        return form(request, { alert, status: 400 })
      }
      if (sender === 'foreign') return form(request)
      const fields = fieldsOf(request)
      const owner = fields.get('owner') ?? ''
      const isCorrect = isEqual(fields.get('password') ?? '', demoPassword)
      if (!isCorrect || !/^[a-z]{1,32}$/.test(owner)) {
        return form(request, { name: owner, status: 401 })
      }
      const zone = (fields.get('zone') ?? '').slice(0, zoneLengthMax)
      return seeOther(nextOf(request), { 'set-cookie': cookieFor(owner, zone) })
    },
  }
}

interface FormAnswer {
  /** The name that was given with a wrong password. */
  readonly name?: string
  readonly alert?: Html
  readonly status?: number
}

function wrongMethod(request: HttpRequest, design: Design): HttpResponse {
  const locale = localeFor(request)
  const headers = { allow: 'GET, HEAD, POST' }
  return page(noticeScreen('wrongMethod', locale), { locale, design, status: 405, headers })
}

/** Returns the page to show after the login: a path of this wallet, whatever the URL says. */
function nextOf({ url }: HttpRequest): string {
  const next = new URLSearchParams(url.split('?')[1]).get('next') ?? ''
  return /^\/(?:(?:apps|keys|send)(?:\?[\w.*%&=+-]*)?|(?:consent|confirm)\/[\w.-]+)$/.test(next)
    ? next
    : '/apps'
}

/** Returns the path of a request without its query. */
function pathOf({ url }: HttpRequest): string {
  return url.split('?', 1)[0] ?? ''
}

function cookieOf({ headers }: HttpRequest, name: string): string {
  const cookies = headers
    .filter(([header]) => header.toLowerCase() === 'cookie')
    .flatMap(([, value]) => value.split(/; */))
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
}

/** Compares in a time that does not tell where two texts differ. */
function isEqual(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}
