import type { Instant } from '../core/instant.js'
import type { ServerOperation } from './operations.js'

/** A call to count, before it is served. */
export interface RateLimitedCall {
  /**
   * The client instance: its wallet address, or the URN of its key's thumbprint. Its signature has been
   * verified, so no client can use up the limit of another. Absent for a call that needs no signature.
   */
  readonly client?: string
  /** The `kid` of the key that signed; absent if `client` is absent. */
  readonly keyid?: string
  readonly operation: ServerOperation
  readonly method: string
  readonly at: Instant
}

/** The result for a call over the limit: the caller may retry after this many milliseconds. */
export interface RateExceeded {
  readonly retryAfterMs: number
}

/** Counts a call. Returns or resolves to `undefined` if the call is within the limit. */
export type RateLimit = (
  call: RateLimitedCall,
) => RateExceeded | undefined | Promise<RateExceeded | undefined>

export interface RateLimiting {
  /**
   * Counts calls; a call over the limit gets 429 with `Retry-After`. A signed operation awaits it right after
   * the signature is verified, before it acts for the client; an operation that needs no signature awaits it
   * first. It does not see requests with an invalid signature: limit those by IP address in front of the
   * server. If it throws, the call is served and `onError` receives the error. Default: no limit.
   */
  readonly rateLimit?: RateLimit
}

const retryAfterDefaultMs = 1_000

/** Resolves to the time when the caller may retry, or to `undefined` if the call is within the limit. */
export async function limitedUntil(
  rateLimit: RateLimit,
  call: RateLimitedCall,
): Promise<Instant | undefined> {
  const exceeded = await rateLimit(call)
  // A host without types may return null or false.
  if (!exceeded) return undefined
  const { retryAfterMs } = exceeded
  return call.at + (Number.isFinite(retryAfterMs) ? retryAfterMs : retryAfterDefaultMs)
}
