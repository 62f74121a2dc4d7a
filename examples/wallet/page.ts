import type { HttpRequest, HttpResponse } from 'open-payments-server'

/** A page of the wallet. `title` and `content` are HTML. */
export function page(
  status: number,
  title: string,
  content: string,
  finishUri?: string,
): HttpResponse {
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>body{font:1.1rem/1.6 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}
    button{font:inherit;padding:.5rem 1.5rem;margin-right:.5rem}li{margin:.5rem 0}</style>
    <h1>${title}</h1>${content}</html>`
  return {
    status,
    headers: { ...safety(finishUri), 'content-type': 'text/html; charset=utf-8' },
    body,
  }
}

/** Redirects with 303, so that the browser does not repeat the form's POST (RFC 9635 section 11.19). */
export function seeOther(location: string): HttpResponse {
  return { status: 303, headers: { ...safety(), location } }
}

/** The response to a method that is not allowed. */
export function wrongMethod(): HttpResponse {
  const refused = page(405, 'Not allowed', '<p>Please open this page in a browser.</p>')
  return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD, POST' } }
}

/** Escapes text for HTML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Returns the value of a form field. */
export function fieldOf({ body }: HttpRequest, name: string): string | undefined {
  return new URLSearchParams(new TextDecoder().decode(body)).get(name) ?? undefined
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

function safety(finishUri?: string): Record<string, string> {
  return {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; form-action ${formActions(finishUri)}; frame-ancestors 'none'; base-uri 'none'`,
  }
}
