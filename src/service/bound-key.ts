import type { GrantClient } from '../core/grant/record.js'
import { ok, type Result } from '../core/result.js'
import type { ClientKeys, PublicJwk } from '../ports/client-keys.js'
import { thumbprintOf } from '../protocol/http-signature/jwk.js'

/** The key that a grant is bound to, or why it is no longer valid. */
export type BoundKey = Result<PublicJwk, KeyProblem>

interface KeyProblem {
  readonly ok: false
  readonly problem: 'withdrawn' | 'replaced'
}

/**
 * Resolves to the key that a grant is bound to, if the client instance still publishes it. A different key
 * with the same `kid` does not replace it: the grant can then no longer be used.
 */
export async function boundKey(client: GrantClient, clientKeys: ClientKeys): Promise<BoundKey> {
  const { walletAddress, kid, thumbprint, x } = client
  if (x !== undefined) return ok({ kid, x })
  if (walletAddress === undefined) return { ok: false, problem: 'withdrawn' }
  const key = await clientKeys.find({ walletAddress, kid, mayBeNew: false })
  if (key === undefined) return { ok: false, problem: 'withdrawn' }
  return (await thumbprintOf(key)) === thumbprint ? ok(key) : { ok: false, problem: 'replaced' }
}
