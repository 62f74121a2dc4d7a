/** A piece of work that is worth measuring. Names no client, record, token or key. */
export type TelemetryActivity =
  | { readonly type: 'request'; readonly server: string; readonly method: string }
  | { readonly type: 'store'; readonly call: string; readonly kind?: string }
  | { readonly type: 'verify' }

/** What is known of a request once it has been answered. */
export interface RequestOutcome {
  /** The operation that was asked for; absent when there was none at that path. */
  readonly operation?: string
  readonly status: number
  /** The precise refusal, as `onRefusal` reports it; absent when the request was served. */
  readonly refusal?: string
}

/**
 * Watches work as it is done: requests, and within them store calls and signature verifications.
 * `openTelemetry` in `open-payments-server/opentelemetry` is one.
 */
export interface Telemetry {
  /**
   * Calls `work` once and at once, and returns what it returns. A request tells its outcome before it ends.
   */
  observe<Result>(
    activity: TelemetryActivity,
    work: (tell: (outcome: RequestOutcome) => void) => Promise<Result>,
  ): Promise<Result>
}
