import type { Stored } from '../core/stored.js'
import type { Clock, Telemetry } from '../ports/host.js'
import type { RecordKind, Store, TransactionError } from '../ports/store.js'
import { hasCode, isWrongAnswer } from '../util/errors.js'
import { replayMarginMs } from './time.js'

/**
 * A call of the store that did not settle in time. A commit may still take effect.
 *
 * @example
 * ```ts
 * import { StoreTimeoutError } from 'open-payments-server'
 *
 * try {
 *   await wallet.resources.outgoingPayments.begin('payment-1')
 * } catch (error) {
 *   if (!(error instanceof StoreTimeoutError)) throw error
 *   // Its outcome is unknown: call it again.
 * }
 * ```
 */
export class StoreTimeoutError extends Error {
  readonly code = 'ERR_STORE_TIMEOUT'

  constructor(call: keyof Store, timeoutMs: number) {
    super(`${call} of the store did not settle within ${timeoutMs} ms`)
  }
}

/**
 * The error of an operation that fails because other writers keep changing the same records. Nothing was written; the
 * call may be repeated.
 *
 * @example
 * ```ts
 * import { ContentionError } from 'open-payments-server'
 *
 * const funds = { transferId: 'rail-1', amount: { value: '100', assetCode: 'USD', assetScale: 2 } }
 * try {
 *   await wallet.resources.incomingPayments.receive('payment-1', funds)
 * } catch (error) {
 *   if (!(error instanceof ContentionError)) throw error
 *   // Nothing was counted: report the same transfer again.
 * }
 * ```
 */
export class ContentionError extends Error {
  readonly code = 'ERR_CONTENTION'

  constructor(message = 'other writers kept changing the same records until the deadline passed') {
    super(message)
  }
}

/** The settings that limit and measure the calls of a store. */
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
function isTooLate({ dueAt }: Stored, clock: Clock): boolean {
  return dueAt !== undefined && clock.now() + replayMarginMs > dueAt
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
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => fail(new StoreTimeoutError(call, Math.round(timeoutMs))),
      timeoutMs,
    )
    function fail(error: unknown): void {
      clearTimeout(timer)
      reject(dependencyFailure('the store', error))
    }
    try {
      work().then((value) => {
        clearTimeout(timer)
        resolve(value)
      }, fail)
    } catch (error) {
      fail(error)
    }
  })
}

/**
 * Rejections of the store and of the ports of the host, with the name of each. The errors keep their classes, because
 * hosts catch them.
 */
const failed = new WeakMap<object, string>()

/** Returns the name of the store or port that rejected with this error, or `undefined` for a fault of the code. */
export function failedDependency(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null ? failed.get(error) : undefined
}

/** Marks the rejection of a store or port. The failed transaction or a wrong answer of a host is not an outage. */
function dependencyFailure(name: string, cause: unknown): unknown {
  if (isTransactionError(cause) || isWrongAnswer(cause)) return cause
  const isObject = typeof cause === 'object' && cause !== null
  const error = isObject ? cause : new Error(`${name} failed`, { cause })
  if (!failed.has(error)) failed.set(error, name)
  return error
}

/** Calls a port of the host, and marks its error for `failedDependency`. Does not check what it resolves to. */
export async function ofDependency<Value>(
  name: string,
  call: () => Promise<Value> | Value,
): Promise<Value> {
  try {
    return await call()
  } catch (cause) {
    throw dependencyFailure(name, cause)
  }
}

export function isTransactionError(error: unknown): error is TransactionError {
  return hasCode(error, 'ERR_RESTART_TRANSACTION') || hasCode(error, 'ERR_TRANSACTION_FAILED')
}
