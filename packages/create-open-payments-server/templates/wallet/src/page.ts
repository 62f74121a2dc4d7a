import { createHash } from 'node:crypto'
import type { HttpRequest, HttpResponse } from 'open-payments-server/adapter'

const style = `
:root { color-scheme: light dark }
body { font: 1.0625rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.5rem; line-height: 1.25 }
li { margin: .5rem 0 }
label, input, select, textarea { display: block; font: inherit; box-sizing: border-box; width: 100% }
input, select, textarea { padding: .6rem; margin: .25rem 0 1rem }
button { font: inherit; min-height: 2.75rem; padding: .5rem 1.5rem; margin: 0 .5rem .5rem 0 }
`
const styleHash = createHash('sha256').update(style).digest('base64')

export interface Page {
  readonly status?: number
  /** Text. */
  readonly title: string
  /** HTML: escape each text in it with `escapeHtml`. */
  readonly content: string
  /** Where a form of the page may lead, besides this wallet. */
  readonly formTarget?: string
  /** The only script that the page may run. */
  readonly script?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns a page without frames and other scripts, which caches must not store. */
export function page(options: Page): HttpResponse {
  const { status = 200, title, content, formTarget, script, headers } = options
  const safeTitle = escapeHtml(title)
  return {
    status,
    headers: {
      ...safety(formTarget, script),
      ...headers,
      'content-type': 'text/html; charset=utf-8',
    },
    body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${safeTitle}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${safeTitle}</h1>
${content}
</main>
${script === undefined ? '' : `<script>${script}</script>`}
</body>
</html>`,
  }
}

/** Redirects with 303, so that the browser does not repeat the form's POST (RFC 9635 section 11.19). */
export function seeOther(location: string, headers: Readonly<Record<string, string>> = {}) {
  return { status: 303, headers: { ...safety(), ...headers, location } }
}

export function methodNotAllowed(): HttpResponse {
  const content = '<p>Open this page in a browser.</p>'
  return page({ status: 405, title: 'Not allowed', content, headers: { allow: 'GET, HEAD, POST' } })
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Returns HTML with the name that an app chose, if it has one, and always with its wallet address, which is verified. */
export function appName(walletAddress: string, display?: { readonly name?: string }): string {
  const address = `<code>${escapeHtml(walletAddress)}</code>`
  return display?.name === undefined
    ? address
    : `<bdi>${escapeHtml(display.name)}</bdi> (${address})`
}

/** Returns the fields of a form that was posted. */
export function fieldsOf({ body }: HttpRequest): URLSearchParams {
  return new URLSearchParams(new TextDecoder().decode(body))
}

/** Returns the path of a request without its query. */
export function pathOf({ url }: HttpRequest): string {
  return url.split('?', 1)[0] ?? ''
}

/** A scheme, or an origin: neither can add a source or a directive to the policy. */
const policySource = /^[a-z][a-z0-9+.-]*:(?:\/\/[a-z0-9._:[\]-]+)?$/

function safety(formTarget?: string, script?: string): Readonly<Record<string, string>> {
  const scriptHash = script && createHash('sha256').update(script).digest('base64')
  // Browsers apply form-action to the redirect after a form, too.
  const formActions = ["'self'", ...(formTarget === undefined ? [] : [sourceOf(formTarget)])]
  return {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': [
      "default-src 'none'",
      `style-src 'sha256-${styleHash}'`,
      ...(scriptHash === undefined ? [] : [`script-src 'sha256-${scriptHash}'`]),
      `form-action ${formActions.join(' ')}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
  }
}

/** Returns the origin of a URL, or the scheme of an app's own. */
function sourceOf(url: string): string {
  const { origin, protocol } = new URL(url)
  const source = origin === 'null' ? protocol : origin
  return policySource.test(source) ? source : "'self'"
}
