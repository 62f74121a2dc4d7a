import { isLoopback } from '../util/loopback.js'

const urlLengthMax = 2048
const encodedUnreserved = /%(?:2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|7[eE])/
const malformedEscape = /%(?![0-9a-fA-F]{2})/
const printableAscii = /^[\x21-\x7e]+$/
/** A name or an address. URL parsers accept other characters, such as `;` and `'`, in the host. */
const hostForm = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/

/**
 * Returns the canonical form of a URL that identifies a resource, such as a wallet address: the WHATWG form without
 * a trailing slash, so that URLs can be compared byte for byte. Returns `undefined` for ambiguous URLs (with userinfo,
 * query, fragment, unnecessary escapes or empty segments), and for http except on loopback.
 */
export function canonicalUrl(text: string): string | undefined {
  const url = parseUrl(text)
  if (url === undefined || !isSecure(url)) return undefined
  if (text.includes('?') || text.includes('#')) return undefined
  if (encodedUnreserved.test(text) || malformedEscape.test(text)) return undefined
  if (url.hostname.endsWith('.') || url.pathname.includes('//')) return undefined
  const canonical = url.origin + url.pathname.replace(/\/$/, '')
  return canonical.length > urlLengthMax ? undefined : canonical
}

/**
 * Parses an absolute URL of at most 2048 printable ASCII characters and without userinfo. The host of an http or https
 * URL must be a name or an address. Such a URL must contain `//` and a host, because browsers resolve it relative to
 * the current page otherwise.
 */
export function parseUrl(text: string): URL | undefined {
  if (text.length > urlLengthMax || !printableAscii.test(text) || text.includes('\\')) {
    return undefined
  }
  if (/^https?:/i.test(text) && !/^https?:\/\/[^/@?#]+(?:[/?#]|$)/i.test(text)) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.username !== '' || url.password !== '') return undefined
  return /^https?:$/.test(url.protocol) && !hostForm.test(url.hostname) ? undefined : url
}

/** https, or http to a loopback host. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))
}

/** The path of a collection, relative to the URL of the resource server. */
export type Collection = 'incoming-payments' | 'outgoing-payments' | 'quotes'

/** Returns the URL of a resource. `baseUrl` must have no trailing slash. */
export function resourceUrl(baseUrl: string, collection: Collection, id: string): string {
  return `${baseUrl}/${collection}/${id}`
}

/** Returns the id in the URL of a resource, or `undefined` for a URL of another server or collection. */
export function resourceId(
  baseUrl: string,
  collection: Collection,
  url: string,
): string | undefined {
  const canonical = canonicalUrl(url)
  const prefix = resourceUrl(baseUrl, collection, '')
  if (canonical === undefined || !canonical.startsWith(prefix)) return undefined
  const id = canonical.slice(prefix.length)
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined
}
