import { isSecure, parseUrl } from './url.js'

/**
 * Parameters that the redirect adds. The client could not distinguish them from its own parameters with the same names.
 */
const reserved = ['hash', 'interact_ref', 'result']

/** A private-use scheme of an app: a reversed domain name (RFC 8252 section 7.1). */
const appScheme = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/

/**
 * Returns why a finish URI is not acceptable, or `undefined` if it is. It must use https, http on loopback or an app
 * scheme, and must have no fragment and no userinfo (RFC 9635 section 2.5.2).
 */
export function finishUriProblem(text: string): string | undefined {
  const url = parseUrl(text)
  if (url === undefined)
    return 'must be an absolute URI of printable ASCII characters, without userinfo, and with a valid host'
  if (text.includes('#')) return 'must not have a fragment'
  if (!isSecure(url) && !appScheme.test(url.protocol)) {
    return 'must use https, http on loopback, or an app scheme'
  }
  if (reserved.some((name) => url.searchParams.has(name))) {
    return 'must not have a parameter named hash, interact_ref or result'
  }
  return undefined
}

/** Adds parameters to a finish URI without changing the rest of it. */
export function withParameters(
  uri: string,
  parameters: readonly (readonly [name: string, value: string])[],
): string {
  const added = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  if (!uri.includes('?')) return `${uri}?${added}`
  return /[?&]$/.test(uri) ? uri + added : `${uri}&${added}`
}
