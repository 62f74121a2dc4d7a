import * as v from 'valibot'
import type { GrantEvent } from '../core/grant/record.js'
import type { IncomingPaymentEvent } from '../core/incoming-payment.js'
import type { Instant } from '../core/instant.js'
import type { OutgoingPaymentEvent, PaymentRecord } from '../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../core/quote.js'
import type { ListEntry, Stored } from '../core/stored.js'
import type { RecordKey } from '../ports/store.js'
import { boolean, listOf, oneOf } from '../util/input.js'
import { clockDifferenceMaxMs } from './time.js'

/** A change of a record, for the host. No event contains a token, interaction reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent | OutgoingPaymentEvent | QuoteEvent

/** The type of an event, such as `outgoing-payment.created`. */
export type EventType =
  | GrantEvent['type']
  | IncomingPaymentEvent['type']
  | OutgoingPaymentEvent['type']
  | QuoteEvent['type']

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
  /**
   * The mark of the event before it in its stream; absent for the first. This event is delivered once that one is done.
   */
  readonly after?: string
  /** The number of deliveries that failed, have a lease, or may have begun in a consumer that has died. */
  readonly attempts: number
  /** When a delivery last failed; absent if the outcome of the last one is not known, and before the first. */
  readonly failedAt?: Instant
  /** The event must not be delivered before this instant, even if nothing else precedes it. */
  readonly notBefore?: Instant
  /** When the event was set aside; absent if it is still to be delivered. */
  readonly setAsideAt?: Instant
  /** The list of the events that were set aside. */
  readonly lists?: readonly [ListEntry]
}

/** Whether an event is still to be delivered. */
export function isPending({ setAsideAt }: EventRecord): boolean {
  return setAsideAt === undefined
}

/** Whether the last delivery of an event has neither ended nor failed: it has a lease, or its consumer has died. */
export function isInDelivery({ attempts, failedAt }: EventRecord): boolean {
  return attempts > 0 && failedAt === undefined
}

/**
 * Returns the records of the events of one commit about a record with this key in the store.
 *
 * The events of a record are a stream. The id of an event is the id of its stream and its mark: its place in the
 * stream, the id of the command, and a checksum of the event. After a failover that lost commits, the servers fill the
 * same places again. If the id were only the place, a new event would then get the id of an event that the host has
 * already handled, and the acknowledgement of the old event would remove the new one.
 */
export function eventRecords(
  { kind, id: storedId }: RecordKey,
  record: Pick<Stored, 'commandId'>,
  events: readonly DomainEvent[],
  last: string | undefined,
): readonly EventRecord[] {
  const { commandId } = record
  const stream = streamOf(storedId, kind)
  let [before, place] = [last, last === undefined ? 0 : placeIn(last)]
  return events.map((event) => {
    place += 1
    // Ids are ordered byte by byte, and the outbox looks up events that are due at one time in this order.
    const number = String(place).padStart(placeDigits, '0')
    const mark = `${number}.${commandId}.${checksum(JSON.stringify(event))}`
    const heldUntil = isEnd(event) ? (record as PaymentRecord).lateHoldsUntil : undefined
    const notBefore = heldUntil !== undefined && heldUntil > event.at ? heldUntil : undefined
    const created: EventRecord = {
      id: `${stream}.${mark}`,
      version: 1,
      commandId,
      attempts: 0,
      event,
      dueAt: notBefore ?? dueAtOnce(event.at),
      ...(before !== undefined && { after: before }),
      ...(notBefore !== undefined && { notBefore }),
    }
    before = mark
    return created
  })
}

/** Returns a record to write, with the mark of its last event. */
export function withLastEvent<Next extends Stored>(
  next: Next,
  recorded: readonly EventRecord[],
  before: Stored | undefined,
): Next {
  const last = recorded.at(-1)
  const lastEvent = last === undefined ? before?.lastEvent : placeOf(last.id).mark
  if (lastEvent === undefined) return next
  // In Node 20, a literal that begins with a spread takes 0.5 µs for each member that the spread object lacks.
  return next.lastEvent === undefined ? { lastEvent, ...next } : { ...next, lastEvent }
}

/** The digits of a place, with zeros in front. A longer number is not cut. */
const placeDigits = 4

/**
 * The number of slices into which the streams of a server are divided. More slices let more consumers work at a time,
 * and cost an idle consumer one look-up each in every poll; eight are four for payments and four for all else.
 *
 * The number is part of the ids of events. A server with another number looks for a stream in another slice: it would
 * deliver the new events of a record before the old ones, and not find those that were set aside. A store therefore has
 * one number for all versions of its servers. To change it, deliver every event and stop every server first.
 */
export const sliceCount = 8

/** The length of the namespace of an id, whose last character is the number of the slice in the id of an event. */
const namespaceEnd = 8

/**
 * Returns what the ids of the events of a slice begin with: the namespace of the server, with the number of the slice
 * as its last character. A store treats it as a namespace of its own.
 */
export function sliceNamespace(namespace: string, slice: number): string {
  return namespace.slice(0, namespaceEnd - 1) + slice
}

/**
 * Returns the id of the stream of a record, which the ids of its events begin with. Outgoing payments, which need
 * consent, have half of the slices: they do not wait behind the events of records that client instances create without
 * it.
 */
function streamOf(recordId: string, kind: string): string {
  const half = sliceCount / 2
  const first = kind === 'outgoing-payment' ? 0 : half
  const namespace = sliceNamespace(recordId, first + (fnv(recordId) % half))
  return `${namespace}${recordId.slice(namespaceEnd)}.${kind}`
}

/** Where an event is: its stream, and its mark there. */
export interface EventPlace {
  readonly stream: string
  readonly mark: string
  /** 1 for the first event of the stream. */
  readonly place: number
}

/** Reads the place of an event from the id of its record. */
export function placeOf(id: string): EventPlace {
  const markAt = id.indexOf('.', id.indexOf('.') + 1) + 1
  const mark = id.slice(markAt)
  return { stream: id.slice(0, markAt - 1), mark, place: placeIn(mark) }
}

function placeIn(mark: string): number {
  return Number(mark.slice(0, mark.indexOf('.')))
}

/** Returns the id of the record of the event before, or `undefined` for the first of its stream. */
export function predecessorOf({ id, after }: EventRecord): string | undefined {
  return after === undefined ? undefined : `${placeOf(id).stream}.${after}`
}

/** Returns the id under which the host knows an event: that of its record, with the namespace of the server. */
export function deliveredId(namespace: string, { id }: Pick<EventRecord, 'id'>): string {
  return namespace + id.slice(namespaceEnd)
}

/** Returns the record of an event as the host knows it: its kind and its id. */
export function subjectOf(event: DomainEvent): string {
  const kind = event.type.slice(0, event.type.indexOf('.'))
  if ('incomingPaymentId' in event) return `${kind}/${event.incomingPaymentId}`
  if ('outgoingPaymentId' in event) return `${kind}/${event.outgoingPaymentId}`
  return 'quoteId' in event ? `${kind}/${event.quoteId}` : `${kind}/${event.grantId}`
}

/** Returns the id of the record of an event that the host knows by an id. */
export function eventRecordId(deliveredId: string): string {
  const [recordId = '', kind = '', ...mark] = deliveredId.split('.')
  return [streamOf(recordId, kind), ...mark].join('.')
}

/**
 * Returns a 32-bit FNV-1a hash. If one command is decided on two different histories of a record, its two events
 * differ.
 */
function checksum(text: string): string {
  return fnv(text).toString(36)
}

function fnv(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}

function isEnd({ type }: DomainEvent): boolean {
  return paymentEnds.some((end) => end === type)
}

/** Returns the due time of a new event, which is in the past on every consumer's clock, so that no consumer waits. */
export function dueAtOnce(now: Instant): Instant {
  return now - clockDifferenceMaxMs
}

export const eventTypesOption = v.pipe(
  v.custom<boolean | readonly EventType[]>(
    (option) => typeof option === 'boolean' || Array.isArray(option),
    'must be a boolean or a list of event types',
  ),
  v.lazy((option) =>
    typeof option === 'boolean'
      ? boolean
      : listOf(oneOf(...(Object.keys(eventTypes) as EventType[]))),
  ),
)

/** Reads the option `recordsEvents`: true for all types, false for none, a list of types, or the default. */
export function recordedEvents(option: boolean | readonly EventType[] | undefined): RecordedEvents {
  if (option === undefined) return (type) => eventTypes[type]
  if (typeof option === 'boolean') return () => option
  const types = new Set(option)
  return (type) => types.has(type)
}
