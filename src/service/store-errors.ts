import type { Store, TransactionError } from '../ports/store.js'
import { hasCode } from '../util/errors.js'

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

export function isTransactionError(error: unknown): error is TransactionError {
  return hasCode(error, 'ERR_RESTART_TRANSACTION') || hasCode(error, 'ERR_TRANSACTION_FAILED')
}
