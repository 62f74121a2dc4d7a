import { type Html, html } from './html.js'
import type { Screen } from './layout.js'
import { type Locale, plain, say } from './locale.js'
import type { TextKey } from './texts.js'

/** The short answers, by name. */
export type NoticeName = {
  [Key in TextKey]: `${Key}Title` extends TextKey ? Key : never
}[TextKey]

/**
 * Returns a page with a title and a sentence.
 *
 * @example
 * ```ts
 * import { noticeScreen, page } from 'open-payments-pages'
 *
 * const response = page(noticeScreen('stale', locale), { locale, status: 400 })
 * ```
 */
export function noticeScreen(
  name: NoticeName,
  locale: Locale,
  more: {
    /** Below the sentence, such as a link. */
    readonly content?: Html | undefined
  } = {},
): Screen {
  const title: TextKey = `${name}Title`
  const content = html`<section class="card"><h1>${say(locale, title)}</h1>
    <p>${say(locale, name)}</p>${more.content}</section>`
  return { title: plain(locale, title), content }
}

/**
 * Returns a summary of an error, which takes the focus and leads to what the owner has to change.
 *
 * @example
 * ```ts
 * import { alertOf } from 'open-payments-pages'
 *
 * const alert = alertOf('stale', locale) // above the form, which keeps the focus
 * ```
 */
export function alertOf(
  name: NoticeName,
  locale: Locale,
  target?: string,
  values: Readonly<Record<string, Html | string>> = {},
): Html {
  const text = say(locale, name, values)
  return html`<div class="error" role="alert" tabindex="-1" autofocus>
    <h2>${say(locale, `${name}Title`)}</h2>
    <p>${target === undefined ? text : html`<a href="${target}">${text}</a>`}</p></div>`
}

/** The values that the page for a login needs. */
export interface LoginOptions {
  readonly locale: Locale
  /** Where the form is posted. Default: the URL of the page. */
  readonly action?: string
  /** The name that was given with a wrong password. */
  readonly refusedName?: string | undefined
  /** More fields, such as a form token. */
  readonly fields?: Html
}

/**
 * Returns a page that asks for a name and a password, in the fields `owner` and `password`.
 *
 * @example
 * ```ts
 * import { loginScreen, page } from 'open-payments-pages'
 *
 * const response = page(loginScreen({ locale, action: '/login' }), { locale })
 * ```
 */
export function loginScreen({ locale, action, refusedName, fields }: LoginOptions): Screen {
  const refused =
    refusedName !== undefined &&
    html`<div class="error" role="alert"><p>${say(locale, 'loginRefused')}</p></div>`
  const content = html`<form method="post" class="card"${action !== undefined && html` action="${action}"`}>
    <h1>${say(locale, 'loginTitle')}</h1>${refused}${fields}
    <label for="owner">${say(locale, 'loginName')}</label>
    <input id="owner" name="owner" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" required value="${refusedName}">
    <label for="password">${say(locale, 'loginPassword')}</label>
    <input id="password" name="password" type="password" autocomplete="current-password" required>
    <div class="buttons"><button class="primary">${say(locale, 'login')}</button></div></form>`
  return { title: plain(locale, 'loginTitle'), content }
}
