import { wholeMilliseconds } from '../core/instant.js'
import { readMessage } from '../http/fields.js'
import { bodyBytesMax, type HttpRequest } from '../http/message.js'
import { publicUrl, resolveTarget, serverUrl } from '../http/target.js'
import type { Clock, PublicJwk } from '../ports/host.js'
import { clockOption } from '../protocol/host-options.js'
import { inspectSignatures, verifyCandidates } from '../protocol/http-signature/inspect.js'
import { group, type Members, optionsOf, readInput } from '../util/input.js'
import { type CompatibilityOptions, compatibilityOptions } from './compatibility.js'
import {
  requirePrefix,
  type SignatureOptions,
  signatureLimits,
  signatureRules,
  strippedPrefixOption,
} from './options.js'

/** The routes whose signatures are verified, and what counts as a valid one. */
export interface SignatureVerifierOptions {
  /** The base URL of the signed routes, as clients use it. */
  readonly url: string
  /** The source of the current time. Default: `Date`. */
  readonly clock?: Clock
  /** Limits of `created`. */
  readonly signatures?: Omit<SignatureOptions, 'clock'>
  /** Which forms of the signature fields are accepted: see `CompatibilityOptions`. */
  readonly compatibility?: Pick<CompatibilityOptions, 'signatureFields'>
  /** The prefix of the published path that a reverse proxy strips. Default: none. */
  readonly strippedPrefix?: string
}

const verifierOptions = optionsOf({
  url: serverUrl,
  clock: clockOption,
  signatures: group(signatureLimits),
  compatibility: group({ signatureFields: compatibilityOptions.signatureFields }),
  strippedPrefix: strippedPrefixOption,
} satisfies Members<SignatureVerifierOptions>)

/**
 * Checks whether a request has a valid signature by a key. `reason` is for logs; do not send it to the client.
 */
export type SignatureVerifier = (
  request: HttpRequest,
  key: PublicJwk,
) => Promise<
  | { readonly ok: true; readonly keyid: string; readonly nonce?: string }
  | { readonly ok: false; readonly reason: string }
>

/**
 * Creates a verifier of HTTP message signatures (RFC 9421, Ed25519) and content digests (RFC 9530) for the
 * host's own signed routes, with the same rules as the servers of this library. It does not store nonces: to
 * detect replays, the host must store the `nonce` of each result.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { createSignatureVerifier } from 'open-payments-server'
 *
 * const verify = createSignatureVerifier({ url: 'https://wallet.example/own' })
 * const verified = await verify(request, { kid: 'shop-1', x: 'O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik' })
 * if (!verified.ok) console.warn(verified.reason)
 * ```
 */
export function createSignatureVerifier(options: SignatureVerifierOptions): SignatureVerifier {
  const settings = readInput('', verifierOptions, options)
  const url = publicUrl(settings.url)
  const strippedPrefix = requirePrefix(settings.strippedPrefix, url)
  const rules = signatureRules(settings.signatures, settings.compatibility)
  const { now } = wholeMilliseconds(settings.clock)

  return async (request, key) => {
    if (request.body.length > bodyBytesMax) return unverified('the body is too large')
    const target = resolveTarget(request.url, url, strippedPrefix)
    if (!target.ok) return unverified(target.reason)
    const read = readMessage(request, url.origin, target.value.target)
    if (!read.ok) return unverified(read.reason)
    const inspection = await inspectSignatures(read.value, now(), rules)
    if (!inspection.ok) return unverified(inspection.problem)
    const proof = await verifyCandidates(inspection.value, key)
    if (proof === undefined) return unverified('no signature verifies with this key')
    const { keyid, nonce } = proof
    return nonce === undefined ? { ok: true, keyid } : { ok: true, keyid, nonce }
  }
}

function unverified(reason: string): Awaited<ReturnType<SignatureVerifier>> {
  return { ok: false, reason }
}
