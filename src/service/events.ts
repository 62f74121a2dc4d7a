import type { Instant, Stored } from '../core/decision.js'
import type { GrantEvent } from '../core/grant/event.js'
import type { IncomingPaymentEvent } from '../core/incoming-payment.js'
import type { Change, Kind } from '../ports/store.js'

/** Something that happened, as a host hears of it. No event carries a token, reference, key or secret. */
export type DomainEvent = GrantEvent | IncomingPaymentEvent

/** An event as it is stored: a record, written in the commit of what it tells. */
export interface EventRecord extends Stored {
  readonly dueAt: Instant
  readonly event: DomainEvent
}

/** A record's change together with the events of it. */
export function changesOf(
  kind: Kind,
  next: Stored,
  events: readonly DomainEvent[],
): readonly Change[] {
  const change = { kind, next, expectedVersion: next.version - 1 }
  const records = events.map((event, index): Change => {
    const id = `${next.id}.${kind}.${next.version}.${index + 1}`
    const record: EventRecord = { id, version: 1, by: next.by, dueAt: event.at, event }
    return { kind: 'event', next: record, expectedVersion: 0 }
  })
  return [change, ...records]
}
