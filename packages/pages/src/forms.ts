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
 * Returns whether a page of another origin posted a form, as browsers say it. `SameSite` of a cookie does not keep
 * other ports and subdomains of the same site from it.
 *
 * @example
 * ```ts
 * import { isForeignForm } from 'open-payments-pages'
 *
 * if (isForeignForm(request)) console.warn('another site has posted the form')
 * ```
 */
export function isForeignForm({ headers }: Pick<HttpRequest, 'headers'>): boolean {
  return headers.some(
    ([name, value]) =>
      name.toLowerCase() === 'sec-fetch-site' && value !== 'same-origin' && value !== 'none',
  )
}
