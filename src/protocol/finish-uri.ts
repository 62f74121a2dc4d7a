import { isSecure, parseUrl } from './url.js'

/** Parameters that the redirect adds. A client that had its own of that name would read the wrong one. */
const reserved = ['hash', 'interact_ref', 'result']

/** A private-use scheme of an app, named by a reversed domain (RFC 8252 section 7.1). */
const appScheme = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/

/**
 * Why a URI may not be where the browser is sent after an interaction, or `undefined` if it may: https,
 * http on loopback, or an app's own scheme; no fragment, no userinfo (RFC 9635 section 2.5.2).
 */
export function finishUriProblem(text: string): string | undefined {
  const url = parseUrl(text)
  if (url === undefined)
    return 'must be an absolute URI of printable ASCII characters, without userinfo'
  if (text.includes('#')) return 'must not have a fragment'
  if (!isSecure(url) && !appScheme.test(url.protocol)) {
    return 'must use https, http on loopback, or an app scheme'
  }
  if (reserved.some((name) => url.searchParams.has(name))) {
    return 'must not have a parameter named hash, interact_ref or result'
  }
  return undefined
}

/** Adds parameters to a finish URI, leaving what the client instance wrote as it is. */
export function withParameters(
  uri: string,
  parameters: readonly (readonly [name: string, value: string])[],
): string {
  const added = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  if (!uri.includes('?')) return `${uri}?${added}`
  return /[?&]$/.test(uri) ? uri + added : `${uri}&${added}`
}
