/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number

/** Any JSON value. Records, events and metadata consist of these. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json }

/** An object of JSON values. */
export type JsonObject = { readonly [key: string]: Json }

/**
 * The members that every stored record has. A record is plain JSON: it contains no `Date`, `bigint`,
 * `undefined` or class instance, so any database can store it and any log can print it.
 */
export interface Stored {
  /** Matches `[A-Za-z0-9._-]{1,128}`; compared byte for byte. */
  readonly id: string
  /** 1 for the first commit; each later commit adds 1. */
  readonly version: number
  /** The id of the command that wrote this version, by which a writer recognises its own commit. */
  readonly commandId: string
  /** `Store.due` returns the record from this time on. */
  readonly dueAt?: Instant
  /** The record may be removed after this time, but need not be. */
  readonly retainUntil?: Instant
  /** The lists in which `Store.list` finds the record: at most three, without duplicates. */
  readonly lists?: readonly ListEntry[]
}

/** A list that contains the record, and the number that orders it there, usually an instant. */
export interface ListEntry {
  readonly list: string
  readonly at: Instant
}

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

/** The machine declined. `reason` is for the operator; `refusal` alone determines what the caller sees. */
export interface Refused<Refusal extends string> {
  readonly ok: false
  readonly outcome: 'refused'
  readonly refusal: Refusal
  readonly reason: string
  /** When the same call may succeed. Set only if waiting helps. */
  readonly retryAt?: Instant
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

/** Compares two hashes in constant time, so the duration does not disclose how much of them agrees. */
export function sameHash(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
