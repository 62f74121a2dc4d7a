import type { PublicJwk } from '../../ports/client-keys.js'
import { verifierOf } from './ed25519.js'
import type { SignatureCandidate } from './inspect.js'

/** How many signature bases are verified with one key, in the order of `Signature-Input`. */
const attemptsMax = 2

/**
 * Finds a signature by the given key among the candidates that passed inspection. Ignores signatures of other keys,
 * even if they are valid, and builds no signature base for them.
 */
export async function verifyCandidates(
  candidates: readonly SignatureCandidate[],
  key: PublicJwk,
): Promise<SignatureCandidate | undefined> {
  const verify = verifierOf(key.x)
  if (verify === undefined) return undefined
  let attempts = 0
  for (const candidate of candidates) {
    if (candidate.keyid !== key.kid) continue
    for (const base of candidate.bases()) {
      if (attempts === attemptsMax) return undefined
      attempts += 1
      if (await verify(candidate.signature, base)) return candidate
    }
  }
  return undefined
}
