import type { GrantClient } from '../core/grant/record.js'
import type { ClientKeys, PublicJwk } from '../ports/client-keys.js'
import { thumbprintOf } from '../protocol/http-signature/jwk.js'

/** The key that a grant is bound to, or why it is good no longer. */
export type BoundKey = PublicJwk | { readonly problem: 'withdrawn' | 'replaced' }

/**
 * Finds the key that a grant is bound to, as long as the client instance publishes it. Another key under
 * the same `kid` is another key: it ends the use of the grant.
 */
export async function boundKey(client: GrantClient, clientKeys: ClientKeys): Promise<BoundKey> {
  const { walletAddress, kid, thumbprint, x } = client
  if (x !== undefined) return { kid, x }
  if (walletAddress === undefined) return { problem: 'withdrawn' }
  const key = await clientKeys.find({ walletAddress, kid, mayBeNew: false })
  if (key === undefined) return { problem: 'withdrawn' }
  return (await thumbprintOf(key)) === thumbprint ? key : { problem: 'replaced' }
}
