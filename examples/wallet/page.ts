import { createHash } from 'node:crypto'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'
import type { Messages } from './languages/messages.js'
import type { Locale } from './locale.js'

/** What a page needs beside its content. */
export interface PageOptions {
  readonly locale: Locale
  /** Where a form of the page leads: the client's finish URI. */
  readonly finishUri?: string | undefined
  /** The only script that the page may run. */
  readonly script?: string
}

/**
 * A page of the wallet. Its colours are those of the browser, in light and dark, so that their contrast suffices. Its
 * sizes follow the text, and long words break, so that nothing is cut off on a phone or when zoomed.
 *
 * @param content HTML.
 */
export function page(
  status: number,
  title: string,
  content: string,
  { locale, finishUri, script }: PageOptions,
): HttpResponse {
  const { tag, messages } = locale
  const body = `<!doctype html><html lang="${tag}" dir="${messages.direction}">
    <head><meta charset="utf-8"><title>${escapeHtml(title)}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>${style}</style></head>
    <body><main><h1>${escapeHtml(title)}</h1>${content}</main>${script === undefined ? '' : `<script>${script}</script>`}</body></html>`
  return {
    status,
    headers: {
      ...safety(finishUri, script),
      'content-language': tag,
      'content-type': 'text/html; charset=utf-8',
    },
    body,
  }
}

const style = `
:root{color-scheme:light dark}
body{font:1.1rem/1.6 system-ui,sans-serif;background:Canvas;color:CanvasText;overflow-wrap:anywhere;margin:0}
main{max-width:36rem;margin:auto;padding:24px 16px}
h1,h2{line-height:1.25}h2{font-size:1.15rem}
ul{padding-inline-start:20px}li{margin-block:.4rem}
.card{border:1px solid;border-radius:.5rem;padding:0 16px 16px;margin-block:1rem}
.error{border:2px solid;border-radius:.5rem;padding:0 16px;margin-block:1rem}
.buttons{display:flex;flex-wrap:wrap;gap:1rem;margin-block:1.5rem}
button,select{font:inherit;color:CanvasText;background:Canvas;border:2px solid;border-radius:.5rem;padding:8px 16px;
  min-height:2.75rem;min-width:min(8rem,100%);max-width:100%;box-sizing:border-box}
label,input,select,textarea{display:block;font:inherit;width:100%;box-sizing:border-box}
input,select,textarea{min-height:2.75rem;padding:8px;margin-block:.25rem 1rem}
:focus-visible{outline:3px solid;outline-offset:3px}`

/** A page with a title and one sentence. */
export function notice(
  status: number,
  name: keyof Messages['notices'],
  locale: Locale,
  more = '',
): HttpResponse {
  const [title, text] = locale.messages.notices[name]
  return page(status, title, `<p>${escapeHtml(text)}</p>${more}`, { locale })
}

/** A list of texts. */
export function list(lines: readonly string[]): string {
  return `<ul>${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>`
}

/** Redirects with 303, so that the browser does not repeat the form's POST (RFC 9635 section 11.19). */
export function seeOther(location: string): HttpResponse {
  return { status: 303, headers: { ...safety(), location } }
}

/** The response to a method that is not allowed. */
export function wrongMethod(locale: Locale): HttpResponse {
  const refused = notice(405, 'wrongMethod', locale)
  return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD, POST' } }
}

/** Escapes text for HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Returns the value of a form field. */
export function fieldOf({ body }: HttpRequest, name: string): string | undefined {
  return fieldsOf({ body }).get(name) ?? undefined
}

/** Returns the fields of a form. */
export function fieldsOf({ body }: Pick<HttpRequest, 'body'>): URLSearchParams {
  return new URLSearchParams(new TextDecoder().decode(body))
}

/** A scheme, or an origin with a name or address: neither can add a source or directive to a policy. */
const policySource = /^[a-z][a-z0-9+.-]*:(?:\/\/[a-z0-9._:[\]-]+)?$/

/** Browsers apply `form-action` to redirects of a form, so the policy includes the client's origin. */
function formActions(finishUri: string | undefined): string {
  if (finishUri === undefined) return "'self'"
  const { origin, protocol } = new URL(finishUri)
  const target = origin === 'null' ? protocol : origin
  return policySource.test(target) ? `'self' ${target}` : "'self'"
}

function safety(finishUri?: string, script?: string): Record<string, string> {
  const hash = script && createHash('sha256').update(script).digest('base64')
  const scripts = hash === undefined ? '' : ` script-src 'sha256-${hash}';`
  return {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline';${scripts} form-action ${formActions(finishUri)}; frame-ancestors 'none'; base-uri 'none'`,
  }
}
