import { sameBytes } from '../../util/bytes.js'
import { sha256, sha512 } from '../../util/hash.js'
import { byteSequence, type Dictionary } from './dictionary.js'

/** The supported algorithms (RFC 9530). Digests with deprecated and unknown algorithms are ignored. */
const algorithms = [
  { name: 'sha-512', digest: sha512 },
  { name: 'sha-256', digest: sha256 },
] as const

/**
 * Checks the dictionary in `Content-Digest` against the received body. It must contain a supported digest, and all
 * supported digests must match. Returns the problem, or `undefined` if there is none.
 */
export async function contentDigestProblem(
  dictionary: Dictionary | undefined,
  body: Uint8Array,
): Promise<string | undefined> {
  if (dictionary === undefined) return 'Content-Digest is malformed'
  let matches = 0
  for (const { name, digest } of algorithms) {
    if (!dictionary.has(name)) continue
    const claimed = byteSequence(dictionary.get(name))
    if (claimed === undefined) return `Content-Digest ${name} is not a byte sequence`
    if (!sameBytes(claimed, await digest(body))) return `Content-Digest ${name} does not match`
    matches += 1
  }
  return matches > 0 ? undefined : 'Content-Digest has neither sha-512 nor sha-256'
}
