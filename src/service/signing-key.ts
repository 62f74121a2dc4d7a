import { ok, type Result } from '../core/decision.js'
import type { GrantClient, GrantKey } from '../core/grant/record.js'
import type { Bounded, ClientKeys } from '../ports/host.js'
import { kidLengthMax, thumbprintOf } from '../protocol/http-signature/jwk.js'

/**
 * Which keys sign for a grant of a client with a wallet address: all that it publishes now, or only the one that signed
 * the grant request.
 */
export type KeyBinding = 'published' | 'bound'

export interface KeyLookup {
  readonly clientKeys: Pick<Bounded<ClientKeys>, 'find'>
  readonly keyBinding: KeyBinding
}

interface KeyProblem {
  readonly ok: false
  readonly problem: 'other' | 'withdrawn' | 'replaced'
}

/**
 * Resolves to the key with this `kid` that signs for a grant now, or to why there is none: the grant is bound to
 * another key, the client does not publish this one, or it publishes a different key with the same `kid`.
 */
export async function signingKey(
  { walletAddress, ...own }: GrantClient,
  kid: string,
  { clientKeys, keyBinding }: KeyLookup,
): Promise<Result<GrantKey, KeyProblem>> {
  const isBound = keyBinding === 'bound' || walletAddress === undefined
  if (isBound && kid !== own.kid) return { ok: false, problem: 'other' }
  if (walletAddress === undefined) return ok(own)
  if (kid.length > kidLengthMax) return { ok: false, problem: 'withdrawn' }
  // The request presents a credential of the grant, so its sender is known, although the key may be new.
  const key = await clientKeys.find({ walletAddress, kid, mayBeNew: false })
  if (key === undefined) return { ok: false, problem: 'withdrawn' }
  const thumbprint = await thumbprintOf(key)
  if (isBound && thumbprint !== own.thumbprint) return { ok: false, problem: 'replaced' }
  return ok({ kid, x: key.x, thumbprint })
}
