/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number

/** Any value that JSON can carry: what records, events and metadata are made of. */
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
 * What every stored record has. A record is plain JSON: no `Date`, `bigint`, `undefined` or class
 * instance, so that any database keeps it and any log prints it.
 */
export interface Stored {
  /** Matches `[A-Za-z0-9._-]{1,128}`; compared byte for byte. */
  readonly id: string
  /** 1 for the first commit, then one more each time. */
  readonly version: number
  /** The id of the command that wrote this version: how a writer recognises its own work. */
  readonly commandId: string
  /** `Store.due` lists the record from then on. */
  readonly dueAt?: Instant
  /** The record may be removed after that; it never has to be. */
  readonly retainUntil?: Instant
  /** Where `Store.list` finds the record: at most three places, each once. */
  readonly lists?: readonly ListEntry[]
}

/** One place in which a record is listed, and the number that orders it there: most often an instant. */
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

/** The command has been carried out before: answer from the record, write nothing. */
export interface Unchanged<R> {
  readonly ok: true
  readonly outcome: 'unchanged'
  readonly record: R
}

/** The machine declined. `reason` is for the operator; only `refusal` decides what the caller sees. */
export interface Refused<Refusal extends string> {
  readonly ok: false
  readonly outcome: 'refused'
  readonly refusal: Refusal
  readonly reason: string
  /** When the same call may succeed, if it is a matter of waiting. */
  readonly retryAt?: Instant
}

/** What a state machine answers. It never throws for anything that a caller can cause. */
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

/** Compares two hashes without telling by its duration how much of them agrees. */
export function sameHash(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
