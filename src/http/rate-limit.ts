import type { Instant } from '../core/decision.js'
import type { ServerOperation } from './refusals.js'

/** A call that is about to be served. */
export interface RateLimitedCall {
  /**
   * The client instance, whose signature has been verified, so that nobody spends what another is allowed:
   * its wallet address, or the URN of its key's thumbprint. Absent where a call needs no signature.
   */
  readonly client?: string
  /** The `kid` of the key that signed; absent with `client`. */
  readonly keyid?: string
  readonly operation: ServerOperation
  readonly method: string
  readonly at: Instant
}

/** The caller has called too often, and may come back after that many milliseconds. */
export interface RateExceeded {
  readonly retryAfterMs: number
}

/** The host's way of counting calls. Answers nothing for a call that is within limits. */
export type RateLimit = (
  call: RateLimitedCall,
) => RateExceeded | undefined | Promise<RateExceeded | undefined>

export interface RateLimiting {
  /**
   * Counts calls and refuses those that are too many with 429 and `Retry-After`. It is asked and waited for
   * when a signature has been verified, before anything is read or written in the name of its client, and for
   * what needs no signature at the beginning. What comes without a good signature it never sees: limit that
   * by address, in front of the server. When it throws, the call is served and `onError` hears of it.
   * Default: no limit.
   */
  readonly rateLimit?: RateLimit
}

const retryAfterDefaultMs = 1_000

/** When the caller may come back, or `undefined` if the call is within limits. */
export async function limitedUntil(
  rateLimit: RateLimit,
  call: RateLimitedCall,
): Promise<Instant | undefined> {
  const exceeded = await rateLimit(call)
  // Without types a host may well answer null or false.
  if (!exceeded) return undefined
  const { retryAfterMs } = exceeded
  return call.at + (Number.isFinite(retryAfterMs) ? retryAfterMs : retryAfterDefaultMs)
}
