import type { RequestOutcome, Telemetry, TelemetryActivity } from '../ports/telemetry.js'
import { callHook, type OnError } from '../util/call-hook.js'

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
