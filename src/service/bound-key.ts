import type { GrantClient } from '../core/grant/record.js'
import type { ClientKeys, PublicJwk } from '../ports/client-keys.js'
import { thumbprintOf } from '../protocol/http-signature/jwk.js'

/** The key that a grant is bound to, or why it is no longer valid. */
export type BoundKey = PublicJwk | { readonly problem: 'withdrawn' | 'replaced' }

/**
 * Resolves to the key that a grant is bound to, if the client instance still publishes it. A different key
 * with the same `kid` does not replace it: the grant can then no longer be used.
 */
export async function boundKey(client: GrantClient, clientKeys: ClientKeys): Promise<BoundKey> {
  const { walletAddress, kid, thumbprint, x } = client
  if (x !== undefined) return { kid, x }
  if (walletAddress === undefined) return { problem: 'withdrawn' }
  const key = await clientKeys.find({ walletAddress, kid, mayBeNew: false })
  if (key === undefined) return { problem: 'withdrawn' }
  return (await thumbprintOf(key)) === thumbprint ? key : { problem: 'replaced' }
}
