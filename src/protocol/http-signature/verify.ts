import type { PublicJwk } from '../../ports/client-keys.js'
import { verifierOf } from './ed25519.js'
import type { SignatureCandidate } from './inspect.js'

/**
 * Finds, among signatures that passed inspection, one that the given key made. A valid signature by any
 * other key is no proof of this one.
 */
export async function verifyCandidates(
  candidates: readonly SignatureCandidate[],
  key: PublicJwk,
): Promise<SignatureCandidate | undefined> {
  const verify = verifierOf(key.x)
  if (verify === undefined) return undefined
  for (const candidate of candidates) {
    if (candidate.keyid !== key.kid) continue
    for (const base of candidate.bases) {
      if (await verify(candidate.signature, base)) return candidate
    }
  }
  return undefined
}
