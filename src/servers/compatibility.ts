import * as v from 'valibot'
import type { IntervalCounting } from '../core/interval.js'
import { group, type Members, oneOf } from '../util/input.js'

/**
 * What clients see where deployed clients and the specifications differ. Each default is what deployed clients expect;
 * docs/clients.md says which clients, and when a host needs the other value.
 */
export interface CompatibilityOptions {
  /**
   * The encoding of the interaction hash, with which a client checks the redirect (RFC 9635 section 4.2.3): standard
   * base64 with padding, or `base64url`, as in the RFC. Default `base64`.
   */
  readonly interactionHash?: 'base64' | 'base64url'
  /**
   * The query parameters of the redirect after a denial: only `result=grant_rejected` (`open-payments`), or hash and
   * interaction reference as after an approval (RFC 9635 section 4.2). Default `open-payments`.
   */
  readonly denialRedirect?: 'open-payments' | 'rfc9635'
  /**
   * The meaning of the count of an interval: `R3/…` is 3 windows (`occurrences`), or the first window and 3 repetitions
   * of it, so 4 windows (`repetitions`). A change applies to new grants; existing grants keep their windows. Default
   * `occurrences`.
   */
  readonly intervalCounting?: IntervalCounting
  /**
   * Whether every operation is carried out once for byte-identical requests without a nonce (`refuse`). Continuation,
   * rotation and payments without a quote always are. In other operations, two legitimate requests in the same second
   * can be byte-identical. Default `accept`.
   */
  readonly repeatedRequests?: 'accept' | 'refuse'
  /**
   * Which forms of `Signature-Input` and `Signature` are accepted: only Structured Fields, as RFC 9421 section 4
   * requires (`rfc9421`), or also the two that the official PHP and Rust SDKs send (`sdks`), see docs/clients.md.
   * Introspection always accepts only Structured Fields. Default `sdks`.
   */
  readonly signatureFields?: 'sdks' | 'rfc9421'
}

/** The default of each is what deployed clients expect. */
export const compatibilityOptions = {
  interactionHash: v.optional(oneOf('base64', 'base64url'), 'base64'),
  denialRedirect: v.optional(oneOf('open-payments', 'rfc9635'), 'open-payments'),
  intervalCounting: v.optional(oneOf('occurrences', 'repetitions'), 'occurrences'),
  repeatedRequests: v.optional(oneOf('accept', 'refuse'), 'accept'),
  signatureFields: v.optional(oneOf('sdks', 'rfc9421'), 'sdks'),
} satisfies Members<CompatibilityOptions>

export const compatibilityGroup = group(compatibilityOptions)

export type Compatibility = v.InferOutput<typeof compatibilityGroup>
