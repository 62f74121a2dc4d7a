import * as v from 'valibot'
import type { Instant } from '../core/instant.js'
import type { RequestOutcome, Telemetry, TelemetryActivity } from '../ports/host.js'
import { askHost } from '../service/ask-host.js'
import { callHook, type OnError, printError } from '../util/errors.js'
import { given } from '../util/given.js'
import { callback, type Members, port, positiveDuration } from '../util/input.js'
import { hasSubscribers, publish } from './diagnostics.js'
import type { Refusal } from './public-errors.js'
import { type HttpRefusal, publicError, type RefusalContext, refuse } from './refusals.js'
import type { Server, ServerOperation } from './routes.js'

/** The report of a refused request for the operator. It contains the failed check, not the request. */
export interface RefusalReport {
  /** The precise refusal. */
  readonly refusal: Refusal
  /** The failed check in words; never part of the response. */
  readonly reason: string
  /** The HTTP status of the response, and its `error.code`. */
  readonly status: number
  readonly code: string
  readonly method: string
  /** The requested operation; absent if the request was refused before its operation was known. */
  readonly operation?: ServerOperation
  /** The claimed `keyid`; present once the form of the signature has been checked. */
  readonly keyid?: string
  /** The client; present once its signature has been verified. */
  readonly client?: string
  /** When the request arrived. */
  readonly at: Instant
}

/** A refused request, as subscribers of `open-payments-server:refusal` receive it: it names no client. */
export interface RefusalMessage extends Omit<RefusalReport, 'client' | 'keyid'> {
  readonly server: string
}

/**
 * Hooks by which the host observes a server and limits its clients. A hook may be asynchronous; no response waits for
 * it, except for `rateLimit`, and its error does not change a response.
 */
export interface ServerHooks {
  /**
   * Receives each refused request, with the precise reason, which the client does not see. Your own calls, such as
   * `outgoingPayments.create`, return their refusal, and are not reported. Default: none.
   */
  readonly onRefusal?: (report: RefusalReport) => void
  /**
   * Receives the error of a failing store, port, `onRefusal` or telemetry, such as the cause of a 500 or 503. Its own
   * errors are ignored. Default: `console.error`.
   */
  readonly onError?: (error: unknown) => void
  /** Measures requests, store calls and signature verifications. Default: none. */
  readonly telemetry?: Telemetry
  /**
   * Counts calls; a call over the limit gets 429 with `Retry-After`. A signed operation awaits it right after
   * the signature is verified, before it acts for the client; an operation that needs no signature awaits it
   * first. It does not see requests with an invalid signature: limit those by IP address in front of the
   * server. If it fails or does not answer in time, the call is served and `onError` receives the error. Default: no
   * limit.
   */
  readonly rateLimit?: RateLimit
  /**
   * How long one call of a function of yours may take, in milliseconds: `walletAddresses`, `clientKeys`, `subjects`,
   * `paymentMethods`, `pricing`, `rateLimit`, `accountLimits`, `mayRequest`, `mayReceive`. Its signal is then aborted,
   * the request gets 503, and a later answer changes nothing. A call of `mayPay` may take
   * `policy.outgoingPayments.decideMs`, the names of clients 2 s. Default 10,000.
   */
  readonly hostTimeoutMs?: number
}

/**
 * Counts a call, before it is served. Returns or resolves to `undefined` if the call is within the limit, and otherwise
 * to the time after which the client may retry, in milliseconds.
 */
export type RateLimit = (
  call: RateLimitedCall,
) =>
  | { readonly retryAfterMs: number }
  | undefined
  | Promise<{ readonly retryAfterMs: number } | undefined>

/** A call that a rate limit counts. */
export interface RateLimitedCall {
  /**
   * The client: its wallet address, or the URN of its key's thumbprint. Its signature has been verified, so no client
   * can use up the limit of another. Absent for a call that needs no signature.
   */
  readonly client?: string
  /** The `kid` of the key that signed; absent if `client` is absent. */
  readonly keyid?: string
  readonly operation: ServerOperation
  readonly method: string
  /**
   * What to count together: `revocations` of tokens, and of grants by their cancellation, apart from all other
   * `requests`. A client that has used up its limit can then still give up its access.
   */
  readonly bucket: 'requests' | 'revocations'
  /** When the request arrived. */
  readonly at: Instant
}

const retryAfterDefaultMs = 1_000

/** Resolves to the time when the client may retry, or to `undefined` if the call is within the limit. */
async function limitedUntil(
  rateLimit: RateLimit,
  timeoutMs: number,
  call: RateLimitedCall,
): Promise<Instant | undefined> {
  const exceeded = await askHost('rateLimit', timeoutMs, () => rateLimit(call))
  // A host without types may return null or false.
  if (!exceeded) return undefined
  const { retryAfterMs } = exceeded
  return call.at + (Number.isFinite(retryAfterMs) ? retryAfterMs : retryAfterDefaultMs)
}

/** The options of every server. */
export const hookOptions = {
  onRefusal: v.optional(callback<NonNullable<ServerHooks['onRefusal']>>()),
  onError: v.optional(callback<Hooks['onError']>(), () => printError),
  telemetry: v.optional(port<Telemetry>('observe')),
  rateLimit: v.optional(callback<RateLimit>()),
  hostTimeoutMs: v.optional(positiveDuration, 10_000),
} satisfies Members<ServerHooks>

/** The hooks of a server; errors always go somewhere. */
export interface Hooks extends ServerHooks {
  readonly onError: (error: unknown) => void
  readonly hostTimeoutMs: number
}

export function hooksOf(options: Hooks): Hooks {
  const { onRefusal, onError, rateLimit, telemetry, hostTimeoutMs } = options
  return { ...given({ onRefusal, rateLimit, telemetry }), onError, hostTimeoutMs }
}

export type SigningClient = Required<Pick<RateLimitedCall, 'client' | 'keyid'>>

/** The client of a request as far as it is known: the claimed `keyid`, then the client. */
export type KnownClient = Partial<SigningClient>

/** Fails open: if the host's `rateLimit` throws, the call is served, so that its outage does not spread. */
export function limiter(
  { rateLimit, onError, hostTimeoutMs }: Hooks,
  call: Omit<RateLimitedCall, keyof SigningClient | 'bucket'>,
): (client?: SigningClient) => Promise<HttpRefusal | undefined> {
  return async (client) => {
    if (rateLimit === undefined) return undefined
    try {
      const { operation } = call
      const isRevocation = operation === 'revokeToken' || operation === 'cancelGrant'
      const bucket = isRevocation ? 'revocations' : 'requests'
      const retryAt = await limitedUntil(rateLimit, hostTimeoutMs, { ...call, ...client, bucket })
      if (retryAt === undefined) return undefined
      return { ...refuse('rate_limited', 'the call exceeds the rate limit of the host'), retryAt }
    } catch (error) {
      void callHook(() => onError(error))
      return undefined
    }
  }
}

export function reportRefusal(
  server: Server,
  refused: HttpRefusal,
  method: string,
  context: RefusalContext,
  client: KnownClient,
  watch: Hooks,
): void {
  if (watch.onRefusal === undefined && !hasSubscribers('refusal')) return
  const { refusal, reason } = refused
  const { operation, now: at } = context
  const { status, code } = publicError(refusal, context)
  const where = operation !== undefined && { operation }
  const about = { refusal, reason, status, code, method, ...where, at }
  const message: RefusalMessage = { server, ...about }
  publish('refusal', message)
  if (watch.onRefusal === undefined) return
  const report = { ...about, ...client }
  void callHook(() => watch.onRefusal?.(report), watch.onError)
}

/**
 * Returns telemetry that cannot change what it measures: the work runs exactly once, its own result is returned, and
 * errors of the telemetry go to `onError`.
 */
export function harmless(telemetry: Telemetry, onError: OnError): Telemetry {
  return {
    observe<Result>(
      activity: TelemetryActivity,
      work: (tell: (outcome: RequestOutcome) => void) => Promise<Result>,
    ): Promise<Result> {
      let result: Promise<Result> | undefined
      let failure: { readonly error: unknown } | undefined
      const run = (tell?: (outcome: RequestOutcome) => void): Promise<Result> => {
        if (result !== undefined) return result
        // An async function also turns a thrown error into a rejection.
        const started = async () => work((outcome) => void callHook(() => tell?.(outcome), onError))
        result = started()
        result.catch((error: unknown) => {
          failure = { error }
        })
        return result
      }
      const isNew = (error: unknown) => failure === undefined || failure.error !== error
      const reportNew = (error: unknown) => (isNew(error) ? onError?.(error) : undefined)
      void callHook(() => telemetry.observe(activity, run), reportNew)
      return run()
    },
  }
}
