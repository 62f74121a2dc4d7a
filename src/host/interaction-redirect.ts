import type { Grant } from '../core/grant/record.js'
import { withParameters } from '../protocol/finish-uri.js'
import { type InteractionHashEncoding, interactionHash } from '../protocol/interaction-hash.js'

/**
 * The query parameters of the redirect after a denial: only `result=grant_rejected`, which deployed clients
 * expect, or hash and interaction reference as in RFC 9635 section 4.2.
 */
export type DenialRedirect = 'open-payments' | 'rfc9635'

/** How the redirect at the end of an interaction is made. */
export interface RedirectOptions {
  /** Exactly the string that wallet addresses publish as `authServer`. */
  readonly grantEndpoint: string
  readonly hashEncoding: InteractionHashEncoding
  readonly denialRedirect: DenialRedirect
}

/** Returns the URL to which the browser is redirected after an approval (RFC 9635 section 4.2.1). */
export async function approvalUrl(
  { interaction }: Grant,
  interactRef: string,
  { grantEndpoint, hashEncoding }: RedirectOptions,
): Promise<string | undefined> {
  const { finish, nonce: serverNonce } = interaction ?? {}
  if (finish === undefined || serverNonce === undefined) return undefined
  const input = { clientNonce: finish.nonce, serverNonce, interactRef, grantEndpoint }
  const hash = await interactionHash(input, finish.hashMethod, hashEncoding)
  return withParameters(finish.uri, [
    ['hash', hash],
    ['interact_ref', interactRef],
  ])
}

/** Returns the URL to which the browser is redirected after a denial. */
export async function denialUrl(
  grant: Grant,
  interactRef: string,
  options: RedirectOptions,
): Promise<string | undefined> {
  if (options.denialRedirect === 'rfc9635') return approvalUrl(grant, interactRef, options)
  const uri = grant.interaction?.finish?.uri
  return uri && withParameters(uri, [['result', 'grant_rejected']])
}
