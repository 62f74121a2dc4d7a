import type { PublicJwk } from '../ports/client-keys.js'
import type { Clock } from '../ports/clock.js'
import { inspectSignatures } from '../protocol/http-signature/inspect.js'
import { verifyCandidates } from '../protocol/http-signature/verify.js'
import { readMessage } from './fields.js'
import { bodyBytesMax, type HttpRequest } from './message.js'
import { requireMethods, requirePrefix, type SignatureOptions, signatureRules } from './options.js'
import { publicUrl, resolveTarget } from './target.js'

export interface SignatureVerifierOptions {
  /** URL below which the signed routes lie, as clients know it. */
  readonly url: string
  /** Tells the time. Default: `Date`. */
  readonly clock?: Clock
  /** How old and how early `created` may be, and whether the forms of SDKs are refused. */
  readonly signatures?: Omit<SignatureOptions, 'repeats'>
  /** The path prefix that a proxy in front takes away. Default: none. */
  readonly strippedPrefix?: string
}

/** What a signature turned out to be worth. `reason` is for logs, not for the caller. */
export type SignatureVerdict =
  | { readonly verified: true; readonly keyid: string; readonly nonce?: string }
  | { readonly verified: false; readonly reason: string }

/** Checks whether a request was signed with a key. */
export type SignatureVerifier = (request: HttpRequest, key: PublicJwk) => Promise<SignatureVerdict>

/**
 * Creates a check of HTTP message signatures (RFC 9421, Ed25519) and content digests (RFC 9530), by the same
 * rules as those of the servers here, for signed routes of the host's own. It keeps no nonces: a host that
 * needs each request to count once remembers the nonce that it is told.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
 */
export function createSignatureVerifier(options: SignatureVerifierOptions): SignatureVerifier {
  const { clock = Date } = options
  const url = publicUrl('url', options.url)
  const strippedPrefix = requirePrefix(options.strippedPrefix ?? '', url)
  const rules = signatureRules(options.signatures ?? {})
  requireMethods('clock', clock, ['now'])

  return async (request, key) => {
    if (request.body.length > bodyBytesMax) return unverified('the body is too large')
    const target = resolveTarget(request.url, url, strippedPrefix)
    if ('refusal' in target) return unverified(target.reason)
    const read = readMessage(request, url.origin, target.target)
    if ('refusal' in read) return unverified(read.reason)
    const inspection = await inspectSignatures(read.message, clock.now(), rules)
    if ('problem' in inspection) return unverified(inspection.problem)
    const proof = await verifyCandidates(inspection.candidates, key)
    if (proof === undefined) return unverified('no signature verifies with this key')
    const { keyid, nonce } = proof
    return nonce === undefined ? { verified: true, keyid } : { verified: true, keyid, nonce }
  }
}

function unverified(reason: string): SignatureVerdict {
  return { verified: false, reason }
}
