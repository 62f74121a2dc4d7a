import type { HashMethod } from '../core/grant/record.js'
import { toBase64, toBase64url } from '../util/bytes.js'
import { sha256, sha512 } from '../util/hash.js'

/** How the interaction hash is written. Deployed clients compare standard base64 with padding. */
export type InteractionHashEncoding = 'base64' | 'base64url'

export interface InteractionHashInput {
  readonly clientNonce: string
  readonly serverNonce: string
  readonly interactRef: string
  /** Exactly the string that is published as `authServer`: a slash more gives another hash. */
  readonly grantEndpoint: string
}

/**
 * The hash by which a client instance knows that a redirect comes from the server that it asked.
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
