import { ok, type Problem, type Result } from '../../core/decision.js'
import type { PublicProblem } from '../../core/public-reasons.js'
import type { PublicJwk } from '../../ports/host.js'
import { hashText } from '../../util/hash.js'
import { isObject } from '../json.js'
import { verifierOf } from './ed25519.js'

/** No key has a longer `kid`. */
export const kidLengthMax = 256
/** 32 bytes in base64url. */
const xLength = 43

export type ScreenedJwk = Result<PublicJwk, JwkProblem>

interface JwkProblem extends Problem {
  readonly problem: PublicProblem<'client_invalid', 'client.jwk'>
}

/**
 * Screens a JSON Web Key that a client presents or publishes: an Ed25519 public key with `kid` and `alg`, in its
 * canonical encoding, on the curve and not of small order.
 *
 * @see RFC 9635 section 7.1; RFC 8037
 */
export function screenJwk(value: unknown): ScreenedJwk {
  const read = readPublicJwk(value)
  return read.ok && !isSoundKey(read.value) ? unsound : read
}

/** Reads `kid` and `x` of a JSON Web Key. Checks everything except whether `x` is a sound point, which takes longer. */
export function readPublicJwk(value: unknown): ScreenedJwk {
  if (!isObject(value)) return { ok: false, problem: 'must be a JSON object' }
  const { kty, crv, alg, use, kid, x } = value
  if (Object.hasOwn(value, 'd')) return { ok: false, problem: 'must not contain a private key' }
  if (kty !== 'OKP' || crv !== 'Ed25519') {
    return { ok: false, problem: 'must have kty OKP and crv Ed25519' }
  }
  if (alg !== 'EdDSA' && alg !== 'Ed25519') return { ok: false, problem: 'must have alg EdDSA' }
  if (use !== undefined && use !== 'sig') {
    return { ok: false, problem: 'must have use sig, or no use' }
  }
  if (typeof kid !== 'string' || kid === '' || kid.length > kidLengthMax) {
    return { ok: false, problem: `must have a kid of 1 to ${kidLengthMax} characters` }
  }
  return typeof x === 'string' && x.length === xLength ? ok({ kid, x }) : unsound
}

/** Whether the point of a key is canonically encoded, on the curve and not of small order. */
export function isSoundKey({ x }: Pick<PublicJwk, 'x'>): boolean {
  return verifierOf(x) !== undefined
}

const unsound: JwkProblem = {
  ok: false,
  problem: 'must have a canonical x that is not of small order',
}

/** Returns the thumbprint of a key (RFC 7638), computed over the canonical form that `screenJwk` accepts. */
export async function thumbprintOf({ x }: Pick<PublicJwk, 'x'>): Promise<string> {
  return hashText(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
}

/** Returns a public key in the form for publication in a JWKS. */
export function publishedJwk({ kid, x }: PublicJwk) {
  return { kid, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x } as const
}
