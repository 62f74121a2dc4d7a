import type { Instant } from './instant.js'

/**
 * The members that every stored record has. A record is plain JSON: it contains no `Date`, `bigint`,
 * `undefined` or class instance, so any database can store it and any log can print it.
 */
export interface Stored {
  /** Matches `[A-Za-z0-9._-]{8,128}`; compared byte for byte. */
  readonly id: string
  /** 1 for the first commit; each later commit adds 1. */
  readonly version: number
  /** The id of the command that wrote this version, by which a writer recognizes its own commit. */
  readonly commandId: string
  /** `Store.due` returns the record from this time on. */
  readonly dueAt?: Instant
  /** The record may be removed after this time, but need not be. */
  readonly retainUntil?: Instant
  /** The mark of the record's last event: its number, the command id and a checksum. */
  readonly lastEvent?: string
  /** The lists in which `Store.list` finds the record: at most three, without duplicates. */
  readonly lists?: readonly ListEntry[]
}

/** A list that contains the record, and the number that orders it there, usually an instant. */
export interface ListEntry {
  readonly list: string
  /** The number by which the list is ordered. */
  readonly at: Instant
}

/** Returns the members of a record that is next due when it may be removed. */
export function retained(until: Instant): Required<Pick<Stored, 'dueAt' | 'retainUntil'>> {
  return { dueAt: until, retainUntil: until }
}

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

/** Whether two JSON values are equal, whatever the order of the members of their objects. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
    return one === other
  }
  const names = Object.keys(one)
  return (
    Array.isArray(one) === Array.isArray(other) &&
    names.length === Object.keys(other).length &&
    names.every(
      (name) =>
        Object.hasOwn(other, name) &&
        sameJson((one as Record<string, unknown>)[name], (other as Record<string, unknown>)[name]),
    )
  )
}
