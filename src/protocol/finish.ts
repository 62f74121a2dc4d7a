import type { HashMethod } from '../core/grant/record.js'
import { toBase64, toBase64url } from '../util/bytes.js'
import { sha256, sha512 } from '../util/hash.js'
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

export interface InteractionHashInput {
  readonly clientNonce: string
  readonly serverNonce: string
  readonly interactRef: string
  /** Exactly the string that is published as `authServer`; an additional slash changes the hash. */
  readonly grantEndpoint: string
}

/**
 * Computes the hash with which a client verifies that a redirect comes from its authorization server.
 *
 * @see RFC 9635 section 4.2.3
 */
export async function interactionHash(
  { clientNonce, serverNonce, interactRef, grantEndpoint }: InteractionHashInput,
  method: HashMethod,
  encoding: 'base64' | 'base64url',
): Promise<string> {
  const base = [clientNonce, serverNonce, interactRef, grantEndpoint].join('\n')
  const hash = await (method === 'sha-512' ? sha512(base) : sha256(base))
  return encoding === 'base64' ? toBase64(hash) : toBase64url(hash)
}
