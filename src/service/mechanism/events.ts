import type { Instant, ListEntry, Stored } from '../../core/decision.js'
import type { GrantEvent } from '../../core/grant/event.js'
import type { IncomingPaymentEvent } from '../../core/incoming-payment.js'
import type { OutgoingPaymentEvent } from '../../core/outgoing-payment/record.js'
import type { QuoteEvent } from '../../core/quote.js'
import type { RecordChange, RecordKind } from '../../ports/store.js'
import type { ServiceContext } from './context.js'

/** Something that happened, as a host hears of it. No event carries a token, reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent | OutgoingPaymentEvent | QuoteEvent

/** An event as it is stored: a record, written in the commit of what it tells, removed once delivered. */
export interface EventRecord extends Stored {
  readonly event: DomainEvent
  /** How often delivery has begun. */
  readonly attempts: number
  /** When a delivery of it last failed; absent while none has. */
  readonly failedAt?: Instant
  /** When it was given up; absent while it is to be delivered. */
  readonly setAsideAt?: Instant
  /** Its place among the events of its record, or among those that were given up. */
  readonly lists: readonly [ListEntry]
}

/** A record's change together with the events of it. */
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
    dueAt: event.at,
    lists,
    attempts: 0,
    event,
  }
  return { kind: 'event', next: record, expectedVersion: 0 }
}

/**
 * Where an event stands among those of its record, which its id says. They are ordered by the record's
 * version, since the clocks of two hosts may disagree.
 */
export function placeOf(eventId: string): ListEntry {
  const [recordId, kind, version] = eventId.split('.')
  return { list: `${recordId}.${kind}`, at: Number(version) }
}
