import type { Instant } from './instant.js'
import type { JsonObject } from './stored.js'

/** The machine accepted the command: commit the record and its events together. */
export interface Changed<R, E> {
  readonly ok: true
  readonly outcome: 'changed'
  readonly record: R
  readonly events: readonly E[]
}

/** The command was carried out earlier: respond from the record and write nothing. */
export interface Unchanged<R> {
  readonly ok: true
  readonly outcome: 'unchanged'
  readonly record: R
}

/**
 * The state machine refuses the command. `reason` is for the operator; the client sees what `refusal` determines, and
 * `details`.
 */
export interface Refused<Refusal extends string> {
  readonly ok: false
  readonly outcome: 'refused'
  readonly refusal: Refusal
  readonly reason: string
  /** When the same call may succeed. Set only if waiting helps. */
  readonly retryAt?: Instant
  /** The part of the reason that the client receives: see `publicReasons`. Absent if the reason is private. */
  readonly details?: JsonObject
}

/** The reasons with which the host refuses or fails something. */
export interface HostReasons {
  /** For the operator; never part of a response. */
  readonly reason?: string
  /** For the client, of 1 to 256 characters. If absent, the client receives no reason. */
  readonly publicReason?: string
}

/** The result of a state machine, which never throws for anything that a caller can cause. */
export type Decision<R, E, Refusal extends string> = Changed<R, E> | Unchanged<R> | Refused<Refusal>

export function changed<R, E>(record: R, ...events: readonly E[]): Changed<R, E> {
  return { ok: true, outcome: 'changed', record, events }
}

export function unchanged<R>(record: R): Unchanged<R> {
  return { ok: true, outcome: 'unchanged', record }
}

export function refused<Refusal extends string>(
  refusal: Refusal,
  reason: string,
  retryAt?: Instant,
): Refused<Refusal> {
  return retryAt === undefined
    ? { ok: false, outcome: 'refused', refusal, reason }
    : { ok: false, outcome: 'refused', refusal, reason, retryAt }
}

/**
 * The result of a call of the host that can be refused.
 *
 * @typeParam Value what the call resolves to if it succeeds.
 * @typeParam Refusal the codes with which it can be refused.
 */
export type HostResult<Value = object, Refusal extends string = string> =
  | (Value & {
      readonly ok: true
      /** Whether this call changed anything. False if an earlier call has had the same effect. */
      readonly changed: boolean
    })
  | {
      readonly ok: false
      readonly refusal: Refusal
      /** For the operator, in plain words. */
      readonly reason: string
    }

/** The result of a call of the host on a payment. */
export type PaymentResult<Payment, Refusal extends string = never> = HostResult<
  { readonly payment: Payment },
  Refusal | 'payment_unknown'
>

/** Returns a refusal as the result of a call of the host. */
export function refusedCall<Refusal extends string>({ refusal, reason }: Refused<Refusal>) {
  return { ok: false, refusal, reason } as const
}

/**
 * Whether a command changed its record. If the response of the store was lost, the decision is `unchanged`, and the
 * record has the id of the command.
 */
export function hasChanged<R extends { readonly commandId: string }>(
  decision: Changed<R, unknown> | Unchanged<R>,
  commandId: string,
): boolean {
  return decision.outcome === 'changed' || decision.record.commandId === commandId
}

/** A value, or the reason why there is none. Check `ok` to tell them apart. */
export type Result<Value, Failure extends { readonly ok: false }> = Ok<Value> | Failure

/** The result of a call that succeeded. */
export interface Ok<Value> {
  readonly ok: true
  readonly value: Value
}

/** Text or data that a reader rejects. */
export interface Problem {
  readonly ok: false
  /** A predicate without its subject: `is longer than 128 characters`. */
  readonly problem: string
}

/**
 * Returns a result with a value.
 *
 * @example
 * ```ts
 * import { ok, type Problem, parseValue, type Result } from 'open-payments-server/core'
 *
 * function readValue(text: string): Result<bigint, Problem> {
 *   const value = parseValue(text)
 *   return value === undefined ? { ok: false, problem: 'is not a value' } : ok(value)
 * }
 * ```
 */
export function ok<Value>(value: Value): Ok<Value> {
  return { ok: true, value }
}
