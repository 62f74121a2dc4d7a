import type { HttpResponse } from 'open-payments-server/adapter'
import { type Html, html, trustedHtml } from './html.js'
import { type Locale, plain, say } from './locale.js'
import { stylesheet } from './stylesheet.js'

/** What a page shows. */
export interface Screen {
  /** The title of the window, as text. */
  readonly title: string
  /** The content, with its heading. */
  readonly content: Html
  /**
   * Where a form of the page leads besides this wallet: the client's finish URI, which may redirect to other origins.
   */
  readonly formTarget?: string | undefined
  /** The only script that the page may run. */
  readonly script?: string
  /** Whether the script may send requests to the origin of the page. Default: false. */
  readonly fetches?: boolean
}

/** The look of the pages. */
export interface Design {
  /** The name of the wallet, above each page. */
  readonly name?: string
  /** A logo above each page, such as inline SVG. An image needs `imageSources`. */
  readonly logo?: Html
  /** CSS after the stylesheet of the package, such as other values of its custom properties. */
  readonly css?: string
  /**
   * The sources of `img-src` in the Content-Security-Policy, besides `'self'`, which Firefox needs for the icon.
   * Default: no others.
   */
  readonly imageSources?: string
  /** Below each page, such as an imprint. */
  readonly footer?: Html | ((locale: Locale) => Html)
}

/** Who is signed in, for the top of a page. */
export interface SignedIn {
  /** How to name the owner. */
  readonly name: string
  /**
   * How to sign out: the page to which a link leads, or the token that a form posts to the URL of the page, in the
   * field `sign-out`. Default: the page offers nothing.
   */
  readonly signOut?: { readonly url: string } | { readonly token: string } | undefined
}

/** A link to another page of the owner. */
export interface NavigationLink {
  readonly url: string
  readonly text: string
  /** Whether it leads to this page. */
  readonly isCurrent: boolean
}

/** What every page shows around its content. */
export interface PageOptions {
  readonly locale: Locale
  /** Links to the other pages of the owner. Default: none. */
  readonly navigation?: readonly NavigationLink[] | undefined
  /** The signed-in owner. Default: the page names nobody. */
  readonly owner?: SignedIn | undefined
  readonly design?: Design | undefined
  /** Default: 200. */
  readonly status?: number
  /** More headers, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Returns the response with a page: no other origin can frame it, nothing caches it, and its Content-Security-Policy
 * lets it load nothing, and run no script except `script`.
 *
 * @example
 * ```ts
 * import { html, page } from 'open-payments-pages'
 *
 * const screen = { title: 'Closed', content: html`<h1>The account is closed</h1>` }
 * const response = page(screen, { locale, design: { name: 'Example Bank' }, status: 410 })
 * ```
 */
export function page(
  { title, content, formTarget, script, fetches = false }: Screen,
  { locale, owner, navigation = [], design = {}, status = 200, headers = {} }: PageOptions,
): HttpResponse {
  const { tag, texts } = locale
  const { name, logo, css = '', imageSources, footer } = design
  if (/<\/style/i.test(css)) throw new TypeError('design.css must not contain </style')
  if (script !== undefined && /<\/script|<!--/i.test(script)) {
    throw new TypeError('script must not contain </script or <!--')
  }
  const nonce = newNonce()
  const above =
    (logo || name || owner) &&
    html`<header>${logo}${name && html`<span>${name}</span>`}${owner && ownerLine(owner, locale)}</header>`
  const body = html`<!doctype html>
<html lang="${tag}" dir="${texts.direction}">
<head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style nonce="${nonce}">${trustedHtml(stylesheet + css)}</style></head>
<body>${above}${navigationHtml(navigation, locale)}<main>${content}</main>${footer && html`<footer>${typeof footer === 'function' ? footer(locale) : footer}</footer>`}
${script && html`<script nonce="${nonce}">${trustedHtml(script)}</script>`}</body></html>`
  const policy = [
    "default-src 'none'",
    `style-src 'nonce-${nonce}'`,
    ...(script === undefined ? [] : [`script-src 'nonce-${nonce}'`]),
    ...(fetches ? ["connect-src 'self'"] : []),
    `img-src 'self'${imageSources === undefined ? '' : ` ${imageSources}`}`,
    `form-action ${formActions(formTarget)}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  return {
    status,
    headers: {
      ...safety,
      'content-security-policy': policy,
      'content-language': tag,
      'content-type': 'text/html; charset=utf-8',
      ...headers,
    },
    body: String(body),
  }
}

function navigationHtml(links: readonly NavigationLink[], locale: Locale): Html {
  if (links.length === 0) return html``
  const items = links.map(
    ({ url, text, isCurrent }) =>
      html`<li><a href="${url}"${isCurrent && html` aria-current="page"`}>${text}</a></li>`,
  )
  return html`<nav aria-label="${plain(locale, 'navigationTitle')}"><ul>${items}</ul></nav>`
}

function ownerLine({ name, signOut }: SignedIn, locale: Locale): Html {
  const text = say(locale, 'signOut')
  const way =
    signOut &&
    ('url' in signOut
      ? html`<a href="${signOut.url}">${text}</a>`
      : html`<form method="post"><button class="link" name="sign-out" value="${signOut.token}">${text}</button></form>`)
  return html`<div class="owner"><span>${say(locale, 'signedIn', { owner: name })}</span> ${way}</div>`
}

const safety = {
  'cache-control': 'no-store',
  // No path, which can be a secret, but an `Origin` that is not `null` in the forms of the pages.
  'referrer-policy': 'strict-origin',
  'x-content-type-options': 'nosniff',
}

/**
 * Redirects with 303, so that the browser does not repeat the POST of a form (RFC 9635 section 11.19).
 *
 * @example
 * ```ts
 * import { seeOther } from 'open-payments-pages'
 *
 * const signIn = () => seeOther(`/login?next=${encodeURIComponent(request.url)}`)
 * ```
 */
export function seeOther(
  location: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  const policy = "default-src 'none'; frame-ancestors 'none'"
  return {
    status: 303,
    headers: { ...safety, 'content-security-policy': policy, ...headers, location },
  }
}

/**
 * Chromium and WebKit apply `form-action` to each redirect after a form, also to those of the client, which nobody
 * knows before. Otherwise the owner would stay on a page that asks again.
 */
function formActions(formTarget: string | undefined): string {
  const isLeading = formTarget !== undefined && canArrive(formTarget)
  return isLeading ? "'self' https: http://localhost:* http://127.0.0.1:*" : "'self'"
}

/**
 * Whether every browser follows a redirect to this URL after a form of a page with it as `formTarget`. A policy cannot
 * name an IPv6 address, and browsers follow a redirect to an app only if they know its scheme. Show a link instead.
 * False for text that is no URL.
 *
 * @example
 * ```ts
 * import { canArrive } from 'open-payments-pages'
 *
 * canArrive('https://shop.example/thanks') // true
 * canArrive('com.example.shop:/thanks') // false
 * ```
 */
export function canArrive(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, hostname } = new URL(url)
  return (
    protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127\.0\.0\.1)$/.test(hostname))
  )
}

function newNonce(): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))))
}
