import type { IncomingPaymentPolicy } from '../../core/incoming-payment.js'
import type { MayPay } from '../../ports/may-pay.js'
import type { SpendingPolicy } from '../../service/outgoing-payment.js'
import { requireKnownOptions } from '../../util/known-options.js'
import { invalidOption } from '../../util/option-error.js'
import { durations, requireFunction } from '../options.js'

/** The host's policy for payments and quotes. Durations are in milliseconds. */
export interface ResourcePolicy {
  /** The lifetime of an incoming payment that is created without `expiresAt`. Default 30 days. */
  readonly incomingPaymentExpiryDefaultMs?: number
  /** How far in the future `expiresAt` of an incoming payment may be. Default 30 days. */
  readonly incomingPaymentExpiryMaxMs?: number
  /**
   * How long an incoming payment that received funds is kept after its expiry, before `sweep` may remove it.
   * Default 365 days.
   */
  readonly incomingPaymentRetentionMs?: number
  /**
   * The same for an incoming payment that received nothing: any client instance can create many of them.
   * Default 7 days, or `incomingPaymentRetentionMs` if that is shorter.
   */
  readonly unpaidIncomingPaymentRetentionMs?: number
  /** The lifetime of a quote, unless the host's price expires earlier. Default 300,000. */
  readonly quoteLifetimeMs?: number
  /** How long the host has to begin an outgoing payment, before it fails. Default 24 hours. */
  readonly outgoingPaymentHoldMs?: number
  /** How long an outgoing payment is kept after its end, before `sweep` may remove it. Default 365 days. */
  readonly outgoingPaymentRetentionMs?: number
  /**
   * Decides whether an outgoing payment may be created: balance, screening, step-up. Called after the payment is priced
   * and its grant permits it, before the commit; not for a repeat of an existing payment. Called again only if the grant
   * changes before the commit. Any answer other than `{ ok: true }` creates nothing: a refusal results in 403, an
   * exception or rejection in 503, an invalid answer in 500. Concurrent calls do not see each other's payments, so
   * `mayPay` must have no effects, or be idempotent by `holdId`. Default: every payment is allowed.
   */
  readonly mayPay?: MayPay
}

const day = 86_400_000

const defaults = {
  incomingPaymentExpiryDefaultMs: 30 * day,
  incomingPaymentExpiryMaxMs: 30 * day,
  incomingPaymentRetentionMs: 365 * day,
  unpaidIncomingPaymentRetentionMs: 7 * day,
  quoteLifetimeMs: 300_000,
  outgoingPaymentHoldMs: day,
  outgoingPaymentRetentionMs: 365 * day,
}

/** Validates the policy, fills in defaults, and splits it by the services that use it. */
export function resourcePolicy(given: ResourcePolicy): {
  readonly incoming: IncomingPaymentPolicy
  readonly spending: SpendingPolicy
  readonly mayPay: MayPay | undefined
} {
  requireKnownOptions('policy', given, { ...defaults, mayPay: true })
  if (given.mayPay !== undefined) requireFunction('policy.mayPay', given.mayPay)
  const {
    incomingPaymentExpiryDefaultMs: expiryDefaultMs,
    incomingPaymentExpiryMaxMs: expiryMaxMs,
    incomingPaymentRetentionMs: paidRetentionMs,
    unpaidIncomingPaymentRetentionMs,
    quoteLifetimeMs: lifetimeMs,
    outgoingPaymentHoldMs: holdMs,
    outgoingPaymentRetentionMs: retentionMs,
  } = durations('policy', defaults, given)
  for (const [option, value] of Object.entries({
    incomingPaymentExpiryDefaultMs: expiryDefaultMs,
    quoteLifetimeMs: lifetimeMs,
    outgoingPaymentHoldMs: holdMs,
  })) {
    if (value === 0) throw invalidOption(`policy.${option}`, 'must be positive')
  }
  if (expiryDefaultMs > expiryMaxMs) {
    throw invalidOption('policy.incomingPaymentExpiryDefaultMs', 'must not exceed the maximum')
  }
  if (retentionMs < lifetimeMs) {
    // The payment shows that its quote has been used, so it must be kept until the quote expires.
    throw invalidOption('policy.outgoingPaymentRetentionMs', 'must be at least quoteLifetimeMs')
  }
  return {
    mayPay: given.mayPay,
    incoming: {
      expiryDefaultMs,
      expiryMaxMs,
      retentionMs: paidRetentionMs,
      unpaidRetentionMs: Math.min(unpaidIncomingPaymentRetentionMs, paidRetentionMs),
    },
    spending: {
      payments: { holdMs, retentionMs },
      quotes: { lifetimeMs, retentionMs: day },
      // A budget is kept longer than its payments, which return unspent amounts to it when they end.
      budgets: { retentionMs: retentionMs + day },
    },
  }
}
