import type { GrantEvent } from '../../core/grant/record.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { Instant } from '../../core/instant.js'
import type { OutgoingPaymentEvent, PaymentRecord } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import type { ListEntry, Stored } from '../../core/stored.js'
import type { RecordKind } from '../../ports/store.js'
import { InvalidInputError, listOf, oneOf } from '../../util/input.js'
import { clockDifferenceMaxMs } from '../time.js'

/** A change of a record, for the host. No event contains a token, interaction reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent | OutgoingPaymentEvent | QuoteEvent

/** The type of an event, such as `outgoing-payment.created`. */
export type EventType =
  | GrantEvent['type']
  | IncomingPaymentEvent['type']
  | OutgoingPaymentEvent['type']
  | QuoteEvent['type']

/** Whether a type of event is recorded. */
export type RecordedEvents = (type: EventType) => boolean

/**
 * Every type, and whether it is recorded by default: if a host acts on it, because it is about consent, revocation or
 * money. The others only repeat what the host did itself, or what a client did without an effect on money or rights.
 */
export const eventTypes: Readonly<Record<EventType, boolean>> = {
  'grant.requested': false,
  'grant.approved': true,
  'grant.denied': true,
  'grant.issued': false,
  'grant.rotated': false,
  'grant.key-changed': false,
  'grant.token-revoked': true,
  'grant.amended': true,
  'grant.cancelled': true,
  'grant.revoked': true,
  'incoming-payment.created': false,
  'incoming-payment.received': true,
  'incoming-payment.completed': true,
  'incoming-payment.expired': true,
  'quote.created': false,
  'outgoing-payment.created': true,
  'outgoing-payment.begun': false,
  'outgoing-payment.sent': true,
  'outgoing-payment.completed': true,
  'outgoing-payment.failed': true,
  'outgoing-payment.declined': true,
}

/** The events that end a payment, by which a host releases what it holds. */
export const paymentEnds = [
  'outgoing-payment.completed',
  'outgoing-payment.failed',
  'outgoing-payment.declined',
] as const satisfies readonly EventType[]

/** The record of an event, written in the same commit as the change, and removed after delivery. */
export interface EventRecord extends Stored {
  readonly event: DomainEvent
  /** The number of deliveries started. */
  readonly attempts: number
  /** When a delivery last failed; absent if none has failed. */
  readonly failedAt?: Instant
  /** The event must not be delivered before this instant, even if nothing else precedes it. */
  readonly notBefore?: Instant
  /** When the event was set aside; absent if it is still to be delivered. */
  readonly setAsideAt?: Instant
  /** The event's position among the events of its record, or among the events that were set aside. */
  readonly lists: readonly [ListEntry]
}

/**
 * Returns the records of the events of one commit about a record.
 *
 * The id of an event is its position, the id of the command, and a checksum of the event. After a failover that lost
 * commits, the servers write the same versions again. If the id were only the position, a new event would then get the
 * id of an event that the host has already handled.
 */
export function eventRecords(
  kind: RecordKind,
  record: Stored,
  events: readonly DomainEvent[],
): readonly EventRecord[] {
  const { id: recordId, version, commandId } = record
  // Ids are ordered byte by byte, so the numbers of one commit have the same length.
  const { length } = String(events.length)
  return events.map((event, index) => {
    const number = String(index + 1).padStart(length, '0')
    const sum = checksum(JSON.stringify(event))
    const id = `${recordId}.${kind}.${version}.${number}.${commandId}.${sum}`
    const dueAt = dueAtOnce(event.at) - (hasHeadStart(event) ? headStartMs : 0)
    const created = { id, version: 1, commandId, lists: [placeOf(id)], attempts: 0, event } as const
    const notBefore = isEnd(event) ? (record as PaymentRecord).lateHoldsUntil : undefined
    return notBefore === undefined || notBefore <= event.at
      ? { ...created, dueAt }
      : { ...created, dueAt: notBefore, notBefore }
  })
}

/**
 * Returns a 32-bit FNV-1a hash. If one command is decided on two different histories of a record, its two events
 * differ.
 */
function checksum(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return (hash >>> 0).toString(36)
}

/**
 * The outbox delivers events in the order of their due time. A payment that waits to be sent is delivered before
 * the events of the last day of other records, which client instances can create without consent.
 */
const headStartMs = 86_400_000

/** Clients can make many payments that the host declines, so the event of these has no head start. */
function hasHeadStart({ type }: DomainEvent): boolean {
  return type.startsWith('outgoing-payment.') && type !== 'outgoing-payment.declined'
}

function isEnd({ type }: DomainEvent): boolean {
  return paymentEnds.some((end) => end === type)
}

/** Returns the due time of a new event, which is in the past on every consumer's clock, so that no consumer waits. */
export function dueAtOnce(now: Instant): Instant {
  return now - clockDifferenceMaxMs
}

/**
 * Returns the position of an event among the events of its record, read from its id. Events are ordered by the
 * record's version, because the clocks of two hosts may differ.
 */
export function placeOf(eventId: string): ListEntry {
  const [recordId, kind, version] = eventId.split('.')
  return { list: `${recordId}.${kind}`, at: Number(version) }
}

/**
 * Reads the option `recordsEvents`: true for all types, false for none, a list of types, or the default.
 *
 * @throws {InvalidInputError} for an unknown type.
 */
export function recordedEvents(option: boolean | readonly EventType[] | undefined): RecordedEvents {
  if (option === undefined) return (type) => eventTypes[type]
  if (typeof option === 'boolean') return () => option
  if (!Array.isArray(option)) {
    throw new InvalidInputError('recordsEvents', 'must be a boolean or a list of event types')
  }
  listOf(oneOf(eventTypes))('recordsEvents', option)
  const types = new Set(option)
  return (type) => types.has(type)
}
