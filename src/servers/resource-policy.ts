import * as v from 'valibot'
import type { IncomingPaymentPolicy } from '../core/incoming-payment.js'
import type { AccountLimits, BoundedFunction, MayPay, MayReceive } from '../ports/host.js'
import type { SpendingPolicy } from '../service/outgoing-payment.js'
import { clockDifferenceMaxMs, lateCommitMaxMs, replayMarginMs } from '../service/time.js'
import {
  callback,
  duration,
  group,
  type Members,
  optionsOf,
  positiveDuration,
} from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { hostAccountLimits, hostFunction } from './host-ports.js'

/** The host's policy for payments and quotes. Durations are in milliseconds. */
export interface ResourcePolicy {
  readonly incomingPayments?: {
    /** The lifetime of an incoming payment that is created without `expiresAt`. Default 30 days. */
    readonly expiryDefaultMs?: number
    /** How far in the future `expiresAt` may be. Default 30 days. */
    readonly expiryMaxMs?: number
    /**
     * How long a payment that received funds is kept after its expiry, before `sweep` may remove it. Default 365 days.
     */
    readonly retentionMs?: number
    /**
     * The same for a payment that received nothing: any client can create many of them. Default 7 days, or
     * `retentionMs` if that is shorter.
     */
    readonly unpaidRetentionMs?: number
  }
  readonly quotes?: {
    /** The lifetime of a quote, unless the host's price expires earlier. Default 300,000. */
    readonly lifetimeMs?: number
  }
  readonly outgoingPayments?: {
    /** How long the host has to begin a payment, before it fails. Default 24 hours. */
    readonly holdMs?: number
    /**
     * How long a payment is kept after its end, before `sweep` may remove it; at least 5 minutes longer than
     * `quotes.lifetimeMs`. Default 365 days.
     */
    readonly retentionMs?: number
    /** How long one call of `mayPay` may take. Default 30,000. */
    readonly decideMs?: number
  }
  /**
   * Decides whether an outgoing payment is created, and may hold its funds: balance, screening, step-up. Called once
   * the payment is priced, permitted by its grant and counted in its budget. Called again about the same payment only
   * if the owner confirms it, if the call or the commit after it failed, or if the `data` of the conditions has
   * changed. Any answer other than `{ ok: true }` creates nothing: a refusal results in 403, an exception or rejection
   * in 503, an invalid answer in 500. Requires that `recordsEvents` contains the three events by which holds are
   * released. Default: every payment is allowed.
   */
  readonly mayPay?: MayPay
  /**
   * Decides whether an incoming payment may be created, by a client or by `incomingPayments.create`, and whether funds
   * that arrive for one may be counted: frozen accounts, screening, the largest amount. Called last, before the commit;
   * never for a repeat. Any answer other than `{ ok: true }` creates and counts nothing. For a client, a refusal
   * results in 400 or 403, an exception, a rejection, or no answer within `hostTimeoutMs`, in 503, an invalid
   * answer in 500. `create` and `receive` resolve to the refusal, and reject with the error. Default: every payment
   * and arrival is allowed.
   */
  readonly mayReceive?: MayReceive
  /**
   * Returns the limits that the owner of an account has set for all payments that apps make. They are counted in the
   * commit of the payment. An exception, a rejection, or no answer within `hostTimeoutMs`, results in 503, an invalid
   * answer in 500; nothing is created. Default: no account has limits.
   */
  readonly accountLimits?: AccountLimits
}

const day = 86_400_000

/**
 * How much longer than a quote its payment is kept, in milliseconds: it shows that the quote has been used. The clock
 * that ends the quote may be ahead of the one that ends the payment, and the clock that removes the payment ahead of
 * the one that still accepts the quote. The commit may be late, too.
 */
const quoteMarginMs = 2 * clockDifferenceMaxMs + lateCommitMaxMs

export const resourcePolicyOptions = {
  incomingPayments: group({
    expiryDefaultMs: v.optional(positiveDuration, 30 * day),
    expiryMaxMs: v.optional(duration, 30 * day),
    retentionMs: v.optional(duration, 365 * day),
    unpaidRetentionMs: v.optional(duration, 7 * day),
  }),
  quotes: group({ lifetimeMs: v.optional(positiveDuration, 300_000) }),
  outgoingPayments: group({
    holdMs: v.optional(positiveDuration, day),
    retentionMs: v.optional(duration, 365 * day),
    decideMs: v.optional(positiveDuration, 30_000),
  }),
  mayPay: v.optional(callback<MayPay>()),
  mayReceive: v.optional(callback<MayReceive>()),
  accountLimits: v.optional(callback<AccountLimits>()),
} satisfies Members<ResourcePolicy>

export const policyOptions = optionsOf(resourcePolicyOptions)

export type ResourcePolicySettings = v.InferOutput<typeof policyOptions>

/**
 * Splits the policy by the services that use it.
 *
 * @throws {InvalidInputError} for options that contradict each other.
 */
export function resourcePolicy(
  { mayPay, mayReceive, accountLimits, ...policy }: ResourcePolicySettings,
  hostTimeoutMs: number,
): {
  readonly incoming: IncomingPaymentPolicy
  readonly spending: SpendingPolicy
  readonly mayPay: MayPay | undefined
  readonly mayReceive: BoundedFunction<MayReceive> | undefined
  readonly accountLimits: BoundedFunction<AccountLimits> | undefined
} {
  const { incomingPayments: incoming, quotes } = policy
  const { decideMs, ...outgoing } = policy.outgoingPayments
  if (incoming.expiryDefaultMs > incoming.expiryMaxMs) {
    throw new InvalidInputError(
      'policy.incomingPayments.expiryDefaultMs',
      'must not exceed expiryMaxMs',
    )
  }
  if (outgoing.retentionMs < quotes.lifetimeMs + quoteMarginMs) {
    throw new InvalidInputError(
      'policy.outgoingPayments.retentionMs',
      `must exceed quotes.lifetimeMs by at least ${quoteMarginMs}`,
    )
  }
  return {
    mayPay,
    mayReceive: mayReceive && hostFunction('mayReceive', hostTimeoutMs, mayReceive),
    accountLimits: accountLimits && hostAccountLimits(accountLimits, hostTimeoutMs),
    incoming: {
      ...incoming,
      unpaidRetentionMs: Math.min(incoming.unpaidRetentionMs, incoming.retentionMs),
    },
    spending: {
      payments: outgoing,
      reservations: { decideMs, lateMs: replayMarginMs },
      // As long as a quote is known, so is what became of it.
      quotes: {
        ...quotes,
        retentionMs: Math.min(day, outgoing.retentionMs - quotes.lifetimeMs),
      },
      // A budget is kept longer than its payments, which return unspent amounts to it when they end.
      budgets: { retentionMs: outgoing.retentionMs + day },
    },
  }
}
