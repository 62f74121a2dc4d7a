import { InvalidInputError } from 'open-payments-server'
import type { HttpRequest } from 'open-payments-server/adapter'
import { type Html, html } from './html.js'

/** Tokens that other sites cannot put into a form, because they cannot read the page with the form. */
export interface FormTokens {
  /** Resolves to a hidden field for a form. `purpose` says what the form is for, and whose it is. */
  field(...purpose: readonly string[]): Promise<Html>
  /** Resolves to only the token, such as for the value of a button. */
  value(...purpose: readonly string[]): Promise<string>
  /** Resolves to whether a posted form has the token for this purpose, or whether a text is the token. */
  isValid(posted: HttpRequest | string, ...purpose: readonly string[]): Promise<boolean>
}

const keyBytesMin = 32

/**
 * Makes form tokens: the HMAC of their purpose.
 *
 * @param key at least 32 random bytes, the same in every process of the wallet.
 * @throws {InvalidInputError} for a shorter key.
 *
 * @example
 * ```ts
 * import { formTokens, html } from 'open-payments-pages'
 *
 * const tokens = formTokens(crypto.getRandomValues(new Uint8Array(32)))
 * const form = html`<form method="post">${await tokens.field('close account', 'alice')}</form>`
 * const isOurs = await tokens.isValid(request, 'close account', 'alice')
 * ```
 */
export function formTokens(key: Uint8Array): FormTokens {
  if (!(key instanceof Uint8Array) || key.length < keyBytesMin) {
    throw new InvalidInputError('formKey', `must be a Uint8Array of at least ${keyBytesMin} bytes`)
  }
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  let imported: ReturnType<typeof importKey> | undefined
  const importKey = () =>
    crypto.subtle.importKey('raw', new Uint8Array(key), algorithm, false, ['sign', 'verify'])
  const textOf = (purpose: readonly string[]) =>
    new TextEncoder().encode(JSON.stringify(['open-payments-pages', ...purpose]))
  async function value(...purpose: readonly string[]): Promise<string> {
    imported ??= importKey()
    const mac = await crypto.subtle.sign('HMAC', await imported, textOf(purpose))
    return hexOf(new Uint8Array(mac))
  }
  return {
    value,
    async field(...purpose) {
      return html`<input type="hidden" name="token" value="${await value(...purpose)}">`
    },
    async isValid(posted, ...purpose) {
      imported ??= importKey()
      const token = typeof posted === 'string' ? posted : fieldsOf(posted).get('token')
      const mac = bytesOf(token ?? '')
      return crypto.subtle.verify('HMAC', await imported, mac, textOf(purpose))
    },
  }
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  if (!/^[0-9a-f]{64}$/.test(hex)) return new Uint8Array()
  return Uint8Array.from({ length: 32 }, (_, index) =>
    Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16),
  )
}

/**
 * Returns the fields of a form that was posted.
 *
 * @example
 * ```ts
 * import { fieldsOf } from 'open-payments-pages'
 *
 * const password = fieldsOf(request).get('password')
 * ```
 */
export function fieldsOf({ body }: Pick<HttpRequest, 'body'>): URLSearchParams {
  return new URLSearchParams(new TextDecoder().decode(body))
}

/** Returns the query of a request. */
export function queryOf({ url }: Pick<HttpRequest, 'url'>): URLSearchParams {
  return new URLSearchParams(url.split('?')[1])
}

/**
 * Returns whether something else than a page of the same origin posted a form, as far as the browser says it in
 * `Sec-Fetch-Site`. `SameSite` of a cookie does not keep other ports and subdomains of the same site from it.
 *
 * It cannot keep out what a browser does not say: Safari before 16.4, and every browser over http with a name other
 * than localhost, send no such header, and the request then counts as one of yours. So it is a second defence. The
 * first is a token in the form: `formTokens` once somebody is signed in, `browserTokens` before.
 *
 * A value of `none` stands for a request that no page has started, as a form is not. Some browsers send it for forms of
 * other sites: answer with the form again.
 *
 * @example
 * ```ts
 * import { isForeignForm } from 'open-payments-pages'
 *
 * if (isForeignForm(request)) console.warn('another site has posted the form')
 * ```
 */
export function isForeignForm({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return fetchSitesOf(headers).some((site) => site !== 'same-origin')
}

/** Whether the browser says of each request that no page has started it. */
export function isStartedByNoPage({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return fetchSitesOf(headers).every((site) => site === 'none')
}

function fetchSitesOf(headers: HttpRequest['headers']): readonly string[] {
  return headers.flatMap(([name, value]) => (name.toLowerCase() === 'sec-fetch-site' ? value : []))
}

/** Tokens in forms for browsers that nobody has signed in yet. */
export interface BrowserTokens {
  /**
   * Resolves to a hidden field for the form, and to the headers of the page with it: they set the cookie to which the
   * token is bound, unless the browser has one. So two open pages of one browser both work.
   */
  field(request: Pick<HttpRequest, 'headers'>): Promise<{
    readonly field: Html
    readonly headers: Readonly<Record<string, string>>
  }>
  /**
   * Resolves to who has posted a form: a page of yours in this browser (`ours`); a page of another site or a page in
   * another browser (`foreign`), to which the answer is the form again; or a browser that does not keep the cookie
   * (`withoutCookie`), which no sign-in would help.
   */
  check(posted: HttpRequest): Promise<'ours' | 'foreign' | 'withoutCookie'>
}

/**
 * Makes tokens for the form of a login: without one, another site can sign a browser in, as an owner of its choice.
 *
 * With https, begin the name of the cookie with `__Host-`: no other host of the same site can then set it. Without
 * https, such a host, and whoever is between browser and server, can set the cookie and sign the browser in.
 *
 * @param key at least 32 random bytes, the same in every process of the wallet.
 * @param cookie the name of the cookie. Cookies have no port: give each wallet on one machine a name of its own.
 * @throws {InvalidInputError} for a shorter key.
 *
 * @example
 * ```ts
 * import { browserTokens, localeFor, loginScreen, page } from 'open-payments-pages'
 *
 * const tokens = browserTokens(crypto.getRandomValues(new Uint8Array(32)), '__Host-sign-in')
 * const locale = localeFor(request)
 * const { field: fields, headers } = await tokens.field(request)
 * const form = page(loginScreen({ locale, fields }), { locale, headers })
 * const isOurs = (await tokens.check(request)) === 'ours' // when it is posted
 * ```
 */
export function browserTokens(key: Uint8Array, cookie: string): BrowserTokens {
  const tokens = formTokens(key)
  const purpose = 'sign-in'
  const attributes = ['Path=/', 'HttpOnly', 'SameSite=Lax']
  if (cookie.startsWith('__Host-')) attributes.push('Secure')

  function browserOf(headers: HttpRequest['headers']): string | undefined {
    const cookies = headers
      .filter(([name]) => name.toLowerCase() === 'cookie')
      .flatMap(([, value]) => value.split(';').map((each) => each.trim()))
    const found = cookies.find((each) => each.startsWith(`${cookie}=`))?.slice(cookie.length + 1)
    return found !== undefined && /^[0-9a-f]{32}$/.test(found) ? found : undefined
  }

  return {
    async field({ headers }) {
      const known = browserOf(headers)
      const browser = known ?? hexOf(crypto.getRandomValues(new Uint8Array(16)))
      const set = { 'set-cookie': [`${cookie}=${browser}`, ...attributes].join('; ') }
      return {
        field: await tokens.field(purpose, browser),
        headers: known === undefined ? set : {},
      }
    },
    async check(posted) {
      if (isForeignForm(posted)) return 'foreign'
      const browser = browserOf(posted.headers)
      if (browser === undefined) return 'withoutCookie'
      return (await tokens.isValid(posted, purpose, browser)) ? 'ours' : 'foreign'
    },
  }
}
