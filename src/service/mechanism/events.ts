import type { Instant, ListEntry, Stored } from '../../core/decision.js'
import type { GrantEvent } from '../../core/grant/event.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import type { RecordChange, RecordKind } from '../../ports/store.js'
import type { Call, ServiceContext } from './context.js'

/** A change of a record, for the host. No event contains a token, interaction reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent | OutgoingPaymentEvent | QuoteEvent

/** The record of an event, written in the same commit as the change, and removed after delivery. */
export interface EventRecord extends Stored {
  readonly event: DomainEvent
  /** The number of deliveries started. */
  readonly attempts: number
  /** When a delivery last failed; absent if none has failed. */
  readonly failedAt?: Instant
  /** When the event was set aside; absent if it is still to be delivered. */
  readonly setAsideAt?: Instant
  /** The event's position among the events of its record, or among the events that were set aside. */
  readonly lists: readonly [ListEntry]
}

/** Returns the change of a record and those of its events. */
export function changesOf(
  { recordsEvents }: Pick<ServiceContext, 'recordsEvents'>,
  kind: RecordKind,
  next: Stored,
  events: readonly DomainEvent[],
): readonly RecordChange[] {
  const change = { kind, next, expectedVersion: next.version - 1 }
  if (!recordsEvents) return [change]
  return [change, ...events.map((event, index) => eventChange(kind, next, event, index + 1))]
}

/**
 * The outbox delivers events in the order of their due time. A payment that waits to be sent is delivered before
 * the events of the last day of other records, which client instances can create without consent.
 */
const headStartMs = 86_400_000

function eventChange(
  kind: RecordKind,
  { id: recordId, version, commandId }: Stored,
  event: DomainEvent,
  number: number,
): RecordChange {
  const id = `${recordId}.${kind}.${version}.${number}`
  const lists = [placeOf(id)] as const
  const record: EventRecord = {
    id,
    version: 1,
    commandId,
    dueAt: event.at - (kind === 'outgoing-payment' ? headStartMs : 0),
    lists,
    attempts: 0,
    event,
  }
  return { kind: 'event', next: record, expectedVersion: 0 }
}

/** Changes an event. Resolves to false if another writer changed it. */
export function replaceEvent(
  { store }: ServiceContext,
  record: EventRecord,
  changes: Partial<EventRecord>,
  { commandId }: Call,
): Promise<boolean> {
  const next = { ...record, ...changes, version: record.version + 1, commandId }
  const change = { kind: 'event', next, expectedVersion: record.version } as const
  return store.commit({ changes: [change], guards: [] })
}

/**
 * Returns the position of an event among those of its record, read from its id. Events are ordered by the
 * record's version, because the clocks of two hosts may differ.
 */
export function placeOf(eventId: string): ListEntry {
  const [recordId, kind, version] = eventId.split('.')
  return { list: `${recordId}.${kind}`, at: Number(version) }
}
