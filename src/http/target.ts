import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { SignedMessage } from '../protocol/http-signature/components.js'
import { isSecure, parseUrl } from '../protocol/url.js'
import { checked } from '../util/input.js'

/** The public URL of a server, taken only from its configuration. */
export interface PublicUrl {
  readonly origin: string
  /** The path below which the server serves its routes, without a trailing slash; empty at the root. */
  readonly basePath: string
}

export const serverUrl = checked<string>((text) => {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url === undefined) return 'must be an absolute URL without userinfo'
  if (!isSecure(url)) return 'must use https, or http on loopback'
  if (String(text).includes('?') || String(text).includes('#')) {
    return 'must not have a query or fragment'
  }
  // Clients sign the URL that they send, so the published form must equal the sent form.
  const written = String(text).replace(/^[^:]+:\/\/[^/]*/, '')
  const asSent = written === '' ? url.pathname === '/' : written === url.pathname
  const isUnchanged = asSent && !/[",;]/.test(url.pathname) && !isAmbiguous(url.pathname)
  return isUnchanged ? undefined : 'must have a path that clients send unchanged'
})

export function publicUrl(configured: string): PublicUrl {
  const { origin, pathname } = new URL(configured)
  return { origin, basePath: pathname.replace(/\/$/, '') }
}

export function isBelow(path: string, basePath: string): boolean {
  return `${path}/`.startsWith(`${basePath}/`)
}

/** The longest request target, in characters: twice the longest URL that identifies a resource. */
const targetLengthMax = 4096

/** The longest part of a path or query that a reason contains, in characters: clients choose it. */
const shownLengthMax = 200

/** Path and query as the client sent them, or why they are refused. */
type Target = Result<
  { readonly target: string; readonly path: string },
  Refused<'headers_invalid' | 'route_unknown'>
>

/**
 * Resolves the received request target against the configured URL. `Host` and `X-Forwarded-*` are ignored:
 * a client that sets them could otherwise choose what a signature covers.
 */
export function resolveTarget(
  received: string,
  { origin, basePath }: PublicUrl,
  strippedPrefix: string,
): Target {
  if (received.length > targetLengthMax) {
    return refused(
      'headers_invalid',
      `the request target has more than ${targetLengthMax} characters`,
    )
  }
  if (!/^[\x21\x22\x24-\x7e]+$/.test(received)) {
    return refused('headers_invalid', 'the request target contains invalid characters')
  }
  const relative = received.startsWith('/') ? received : withoutOrigin(received, origin)
  if (relative === undefined) {
    return refused('headers_invalid', 'the request target has another origin')
  }
  const target = strippedPrefix + relative
  const [pathname = ''] = target.split('?', 1)
  if (isAmbiguous(pathname)) {
    return refused('route_unknown', 'the path has dot segments or escaped separators')
  }
  if (isBelow(pathname, basePath)) return ok({ target, path: pathname.slice(basePath.length) })
  return refused(
    'route_unknown',
    `the path ${shown(pathname)} is not below the configured URL ${origin}${basePath}`,
  )
}

/** Shortens a text that the client chose, for the reason of a refusal. */
function shown(text: string): string {
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text
}

/**
 * Names what a signature was verified for: the configured URL, which differs from what the client has signed if the
 * server is published under another one. A different `Host` shows this.
 */
export function verifiedFor({ method, origin, target, fields }: SignedMessage): string {
  const [path = ''] = target.split('?', 1)
  // Runtimes and proxies rewrite queries more often than paths.
  const query = shown(target.slice(path.length))
  const host = fields.get('host')?.[0]
  const isOther = host !== undefined && host.toLowerCase() !== new URL(origin).host
  return `${method} ${origin}${shown(path)}${query}${isOther ? `; Host is ${shown(host)}` : ''}`
}

/**
 * Says that a request has the prefix that the proxy should have removed, if it does; otherwise `undefined`. The path is
 * then looked up with the prefix twice.
 */
export function doubledPrefix(received: string, strippedPrefix: string): string | undefined {
  const [path = ''] = received.replace(/^[a-z]+:\/\/[^/]*/i, '').split('?', 1)
  return strippedPrefix !== '' && isBelow(path, strippedPrefix)
    ? `the path arrives with ${strippedPrefix}, which strippedPrefix adds again: leave strippedPrefix out`
    : undefined
}

/** Accepts a target in absolute form (RFC 9112 section 3.2.2) only if it has the configured origin. */
function withoutOrigin(received: string, origin: string): string | undefined {
  if (received === origin) return '/'
  if (received.startsWith(`${origin}/`)) return received.slice(origin.length)
  return received.startsWith(`${origin}?`) ? `/${received.slice(origin.length)}` : undefined
}

/** Whether two implementations might interpret the path differently. */
function isAmbiguous(pathname: string): boolean {
  return /\/\/|\\|%2[eEfF]|%5[cC]|(?:^|\/)\.{1,2}(?:\/|$)/.test(pathname)
}
