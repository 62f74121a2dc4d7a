import type { Stored } from '../core/stored.js'
import type { Clock, Telemetry } from '../ports/host.js'
import type { RecordKind, Store } from '../ports/store.js'
import { inTime } from './in-time.js'
import { ContentionError, StoreTimeoutError } from './store-errors.js'
import { replayMarginMs } from './time.js'

interface StoreGuardOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** The name of the server in the activities of `telemetry`. */
  readonly server: string
  readonly telemetry?: Telemetry | undefined
}

/**
 * Returns the store of the host, as the services use it:
 *
 * - Each call has a time limit, so that a frozen database does not hold requests.
 * - Rejections are marked for `failedDependency`, so that they result in 503.
 * - Each call is measured, if there is telemetry.
 * - A commit with a replay record whose signature has expired rejects with a `ContentionError`.
 */
export function guardedStore(store: Store, options: StoreGuardOptions): Store {
  const { clock, timeoutMs, server, telemetry } = options

  function call<Value>(
    name: keyof Store,
    kind: RecordKind | undefined,
    work: () => Promise<Value>,
  ): Promise<Value> {
    if (telemetry === undefined) return withinTime(name, timeoutMs, work)
    const activity = {
      type: 'store',
      server,
      call: name,
      ...(kind !== undefined && { kind }),
    } as const
    return telemetry.observe(activity, () => withinTime(name, timeoutMs, work))
  }

  return {
    load: (keys) => call('load', keys[0]?.kind, () => store.load(keys)),
    list: (query) => call('list', query.kind, () => store.list(query)),
    due: (kind, ...query) => call('due', kind, () => store.due(kind, ...query)),
    remove: (records) => call('remove', records[0]?.kind, () => store.remove(records)),
    commit(commit) {
      if (commit.changes.some(({ kind, next }) => kind === 'replay' && isTooLate(next, clock))) {
        const error = new ContentionError(
          'the signature expired before its operation was committed',
        )
        return Promise.reject(error)
      }
      return call('commit', commit.changes[0]?.kind, () => store.commit(commit))
    },
  }
}

/**
 * Whether a commit that begins now may take effect after a server has removed the replay record of a copy of the
 * request, so that both requests count. A port of the host may be slow, and a process can be suspended.
 */
function isTooLate({ retainUntil }: Stored, clock: Clock): boolean {
  return retainUntil !== undefined && clock.now() + replayMarginMs > retainUntil
}

/**
 * Waits for a call of the store for a limited time, and marks its rejection for `failedDependency`.
 *
 * @throws {StoreTimeoutError} if it does not settle in time.
 */
export function withinTime<Value>(
  call: keyof Store,
  timeoutMs: number,
  work: () => Promise<Value>,
): Promise<Value> {
  const late = () => new StoreTimeoutError(call, Math.round(timeoutMs))
  return inTime('the store', timeoutMs, work, late)
}
