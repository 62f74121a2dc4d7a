import { isSecure, parseUrl } from '../protocol/url.js'
import { invalidOption } from '../util/option-error.js'

/** Where a server is reached, taken from its configuration and from nowhere else. */
export interface PublicUrl {
  readonly origin: string
  /** The path below which it answers, without a trailing slash; empty at the root. */
  readonly basePath: string
}

/** Reads the URL that a server is configured with. */
export function publicUrl(option: string, text: unknown): PublicUrl {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url === undefined) throw invalidOption(option, 'must be an absolute URL without userinfo')
  if (!isSecure(url)) throw invalidOption(option, 'must be https (http only on loopback)')
  if (String(text).includes('?') || String(text).includes('#')) {
    throw invalidOption(option, 'must have neither query nor fragment')
  }
  // Clients sign the URL as it was published, so it has to be published as they will send it.
  const written = String(text).replace(/^[^:]+:\/\/[^/]*/, '')
  const asSent = written === '' ? url.pathname === '/' : written === url.pathname
  if (!asSent || /[",;]/.test(url.pathname) || isAmbiguous(url.pathname)) {
    throw invalidOption(option, 'has a path with characters that do not survive the wire')
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/$/, '') }
}

/** Path and query as the client sent them, or why they are not to be served. */
export type Target =
  | { readonly target: string; readonly path: string }
  | { readonly refusal: 'headers_invalid' | 'route_unknown'; readonly reason: string }

/**
 * Finds what was asked for from the request target as received and the configured URL. `Host` and
 * `X-Forwarded-*` have no say: whoever may set them could otherwise choose what a signature covers.
 */
export function resolveTarget(
  received: string,
  { origin, basePath }: PublicUrl,
  strippedPrefix: string,
): Target {
  if (!/^[\x21\x22\x24-\x7e]+$/.test(received)) {
    return { refusal: 'headers_invalid', reason: 'the request target has what no target has' }
  }
  const relative = received.startsWith('/') ? received : withoutOrigin(received, origin)
  if (relative === undefined) {
    return { refusal: 'headers_invalid', reason: 'the request target is of another origin' }
  }
  const target = strippedPrefix + relative
  const [pathname = ''] = target.split('?', 1)
  if (isAmbiguous(pathname)) {
    return { refusal: 'route_unknown', reason: 'the path has dot segments or escaped separators' }
  }
  const below = pathname === basePath || pathname.startsWith(`${basePath}/`)
  return below
    ? { target, path: pathname.slice(basePath.length) }
    : { refusal: 'route_unknown', reason: 'the path is not below the configured URL' }
}

/** An absolute-form target (RFC 9112 section 3.2.2) is good for our own origin only. */
function withoutOrigin(received: string, origin: string): string | undefined {
  if (received === origin) return '/'
  if (received.startsWith(`${origin}/`)) return received.slice(origin.length)
  return received.startsWith(`${origin}?`) ? `/${received.slice(origin.length)}` : undefined
}

/** Paths that two pieces of software may read in two ways. */
function isAmbiguous(pathname: string): boolean {
  return /\/\/|\\|%2[eEfF]|%5[cC]|(?:^|\/)\.{1,2}(?:\/|$)/.test(pathname)
}
