import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Handler } from 'open-payments-server'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import { escapeHtml, fieldsOf, methodNotAllowed, page, pathOf, seeOther } from './page.js'
import type { WalletSettings } from './settings.js'

/**
 * A stub of your login, with one password for all owners and no limit of attempts: replace it with your own. The pages
 * need to know the owner of a browser, and a token that other sites cannot put into a form.
 */
export interface Login {
  /** Returns the signed-in owner. */
  ownerOf(request: HttpRequest): string | undefined
  /** Returns a hidden field for the forms of this browser. */
  formField(request: HttpRequest): string
  /** Returns whether the form was shown in this browser. */
  isOwnForm(request: HttpRequest): boolean
  /** Returns a redirect to the login, and then back to the page of the request. */
  redirect(request: HttpRequest): HttpResponse
  readonly page: Handler
}

const lifetimeMs = 60 * 60_000

export function createLogin({ baseUrl, sessionSecret, demoPassword }: WalletSettings): Login {
  const isSecure = baseUrl.startsWith('https:')
  const cookieName = isSecure ? '__Host-wallet' : 'wallet'
  const mac = (...parts: readonly string[]) =>
    createHmac('sha256', sessionSecret).update(parts.join('\n')).digest('base64url')

  function cookieFor(owner: string): string {
    const session = `${owner}.${Date.now() + lifetimeMs}`
    const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax', ...(isSecure ? ['Secure'] : [])]
    return [`${cookieName}=${session}.${mac('session', session)}`, ...attributes].join('; ')
  }

  function sessionOf(request: HttpRequest) {
    const [owner = '', until = '', given = ''] = cookieOf(request, cookieName).split('.')
    const session = `${owner}.${until}`
    if (!isEqual(given, mac('session', session)) || Date.now() > Number(until)) return undefined
    return { owner, formToken: mac('form', session) }
  }

  return {
    ownerOf: (request) => sessionOf(request)?.owner,
    formField: (request) =>
      `<input type="hidden" name="token" value="${sessionOf(request)?.formToken ?? ''}">`,
    isOwnForm(request) {
      const session = sessionOf(request)
      return (
        session !== undefined && isEqual(fieldsOf(request).get('token') ?? '', session.formToken)
      )
    },
    redirect(request) {
      const path = pathOf(request)
      // The link of an app to the page of keys fills its form.
      const query = new URLSearchParams(path === '/keys' ? request.url.slice(path.length) : '')
      const next = query.size === 0 ? path : `${path}?${query}`
      return seeOther(`/login?${new URLSearchParams({ next })}`)
    },
    async page(request) {
      if (request.method === 'GET' || request.method === 'HEAD') return loginPage(nextOf(request))
      if (request.method !== 'POST') return methodNotAllowed()
      // Another site must not sign a browser in, as an owner of its choice.
      if (isForeignForm(request)) return loginPage(nextOf(request))
      const fields = fieldsOf(request)
      const owner = fields.get('owner') ?? ''
      const isCorrect = isEqual(fields.get('password') ?? '', demoPassword)
      if (!isCorrect || !/^[a-z]{1,32}$/.test(owner)) return loginPage(nextOf(request), owner)
      return seeOther(nextOf(request), { 'set-cookie': cookieFor(owner) })
    },
  }
}

function loginPage(next: string, refusedOwner?: string): HttpResponse {
  const problem =
    refusedOwner === undefined
      ? ''
      : '<p role="alert"><strong>The name or the password is not correct.</strong></p>'
  return page({
    status: refusedOwner === undefined ? 200 : 401,
    title: 'Sign in to your wallet',
    content: `${problem}
<form method="post" action="/login?${escapeHtml(new URLSearchParams({ next }).toString())}">
<label for="owner">Name</label>
<input id="owner" name="owner" autocomplete="username" required value="${escapeHtml(refusedOwner ?? '')}">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Sign in</button>
</form>`,
  })
}

/** Returns the page to show after the login: a path of this wallet, whatever the URL says. */
function nextOf({ url }: HttpRequest): string {
  const next = new URLSearchParams(url.split('?')[1]).get('next') ?? ''
  return /^\/(?:apps|keys(?:\?[\w.*%&=+-]*)?|consent\/[\w.-]+)$/.test(next) ? next : '/apps'
}

/** Browsers say which site posts a form. */
function isForeignForm({ headers }: HttpRequest): boolean {
  return headers.some(
    ([name, value]) =>
      name.toLowerCase() === 'sec-fetch-site' && value !== 'same-origin' && value !== 'none',
  )
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
