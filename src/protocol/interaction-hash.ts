import type { HashMethod } from '../core/grant/record.js'
import { toBase64, toBase64url } from '../util/bytes.js'
import { sha256, sha512 } from '../util/hash.js'

/** The encoding of the interaction hash. Deployed clients compare standard base64 with padding. */
export type InteractionHashEncoding = 'base64' | 'base64url'

export interface InteractionHashInput {
  readonly clientNonce: string
  readonly serverNonce: string
  readonly interactRef: string
  /** Exactly the string that is published as `authServer`; an additional slash changes the hash. */
  readonly grantEndpoint: string
}

/**
 * Computes the hash with which a client instance verifies that a redirect comes from its authorization server.
 *
 * @see RFC 9635 section 4.2.3
 */
export async function interactionHash(
  { clientNonce, serverNonce, interactRef, grantEndpoint }: InteractionHashInput,
  method: HashMethod,
  encoding: InteractionHashEncoding,
): Promise<string> {
  const base = [clientNonce, serverNonce, interactRef, grantEndpoint].join('\n')
  const hash = await (method === 'sha-512' ? sha512(base) : sha256(base))
  return encoding === 'base64' ? toBase64(hash) : toBase64url(hash)
}
