import type { HttpRequest, HttpResponse } from 'open-payments-server'

/** A page of the wallet. The title and the content are HTML. */
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

/** Leads the browser on with 303, so that it does not send the form along (RFC 9635 section 11.19). */
export function seeOther(location: string): HttpResponse {
  return { status: 303, headers: { ...safety(), location } }
}

/** The page for a method that there is not. */
export function wrongMethod(): HttpResponse {
  const refused = page(405, 'Not allowed', '<p>Open this page in a browser.</p>')
  return { ...refused, headers: { ...refused.headers, allow: 'GET, HEAD, POST' } }
}

/** Text as it stands in a page. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** What a form says under a name. */
export function fieldOf({ body }: HttpRequest, name: string): string | undefined {
  return new URLSearchParams(new TextDecoder().decode(body)).get(name) ?? undefined
}

/** Browsers hold a form's redirect to `form-action`, so that the client's own origin has to be named. */
function safety(finishUri?: string): Record<string, string> {
  const { origin = '', protocol = '' } = finishUri === undefined ? {} : new URL(finishUri)
  const target = origin === 'null' ? protocol : origin
  return {
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; form-action 'self' ${target}; frame-ancestors 'none'; base-uri 'none'`,
  }
}
