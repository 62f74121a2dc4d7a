/** A measured unit of work. It identifies no client instance, record, token or key. */
export type TelemetryActivity =
  | { readonly type: 'request'; readonly server: string; readonly method: string }
  | {
      readonly type: 'store'
      readonly server: string
      readonly call: string
      readonly kind?: string
    }
  | { readonly type: 'verify'; readonly server: string }

/** The outcome of a request, available when its response is ready. */
export interface RequestOutcome {
  /** The requested operation; absent if the request was refused before its operation was known. */
  readonly operation?: string
  readonly status: number
  /** The precise refusal, as `onRefusal` reports it; absent when the request succeeded. */
  readonly refusal?: string
}

/**
 * Measures requests, and within them store calls and signature verifications. `openTelemetry` in
 * `open-payments-server/opentelemetry` is an implementation.
 */
export interface Telemetry {
  /**
   * Calls `work` exactly once, synchronously, and returns its promise. For a request, `work` reports the
   * outcome through its argument before the promise resolves.
   *
   * The implementation cannot change what it measures: the server uses the result of `work` directly, and runs `work`
   * exactly once even if `observe` does not. Errors of `observe` go to `onError`.
   */
  observe<Result>(
    activity: TelemetryActivity,
    work: (tell: (outcome: RequestOutcome) => void) => Promise<Result>,
  ): Promise<Result>
}
