import type { PublicJwk } from '../../ports/client-keys.js'
import { verifierOf } from './ed25519.js'
import type { SignatureCandidate } from './inspect.js'

/**
 * Finds a signature by the given key among the candidates that passed inspection. Ignores signatures of other keys,
 * even if they are valid.
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
