import type { IncomingPaymentPolicy } from '../../core/incoming-payment.js'
import type { SpendingPolicy } from '../../service/outgoing-payment.js'
import { invalidOption } from '../../util/option-error.js'
import { durations, requireKnown } from '../options.js'

/** What the host decides about payments. Durations are in milliseconds. */
export interface ResourcePolicy {
  /** Life of an incoming payment whose creator named no `expiresAt`. Default 30 days. */
  readonly incomingPaymentExpiryDefaultMs?: number
  /** How far away `expiresAt` may be. Default 30 days. */
  readonly incomingPaymentExpiryMaxMs?: number
  /** How long after its expiry a payment is kept, before `purge` may remove it. Default 365 days. */
  readonly incomingPaymentRetentionMs?: number
  /** Life of a quote, if the host's price does not end sooner. Default 300,000. */
  readonly quoteLifetimeMs?: number
  /** How long an outgoing payment waits for the host to begin it, before it fails. Default 24 hours. */
  readonly outgoingPaymentHoldMs?: number
  /** How long after its end an outgoing payment is kept, before `purge` may remove it. Default 365 days. */
  readonly outgoingPaymentRetentionMs?: number
}

const day = 86_400_000

const defaults = {
  incomingPaymentExpiryDefaultMs: 30 * day,
  incomingPaymentExpiryMaxMs: 30 * day,
  incomingPaymentRetentionMs: 365 * day,
  quoteLifetimeMs: 300_000,
  outgoingPaymentHoldMs: day,
  outgoingPaymentRetentionMs: 365 * day,
}

/** Fills the policy in with its defaults, and sorts it by who decides by it. */
export function resourcePolicy(given: ResourcePolicy): {
  readonly incoming: IncomingPaymentPolicy
  readonly spending: SpendingPolicy
} {
  requireKnown('policy', given, Object.keys(defaults))
  const {
    incomingPaymentExpiryDefaultMs: expiryDefaultMs,
    incomingPaymentExpiryMaxMs: expiryMaxMs,
    incomingPaymentRetentionMs,
    quoteLifetimeMs: lifetimeMs,
    outgoingPaymentHoldMs: holdMs,
    outgoingPaymentRetentionMs: retentionMs,
  } = durations('policy', defaults, given)
  for (const [option, value] of Object.entries({
    incomingPaymentExpiryDefaultMs: expiryDefaultMs,
    quoteLifetimeMs: lifetimeMs,
    outgoingPaymentHoldMs: holdMs,
  })) {
    if (value === 0) throw invalidOption(`policy.${option}`, 'must be more than nothing')
  }
  if (expiryDefaultMs > expiryMaxMs) {
    throw invalidOption('policy.incomingPaymentExpiryDefaultMs', 'exceeds the maximum')
  }
  if (retentionMs < lifetimeMs) {
    // A quote must not outlive the payment by which it is known to have been used.
    throw invalidOption('policy.outgoingPaymentRetentionMs', 'is less than quoteLifetimeMs')
  }
  return {
    incoming: { expiryDefaultMs, expiryMaxMs, retentionMs: incomingPaymentRetentionMs },
    spending: {
      payments: { holdMs, retentionMs },
      quotes: { lifetimeMs, retentionMs: day },
      // Longer than its payments, which give back to it when they end.
      budgets: { retentionMs: retentionMs + day },
    },
  }
}
