import type { Instant } from '../../core/instant.js'
import type { ListEntry, Stored } from '../../core/stored.js'
import type { RecordChange, RecordKind } from '../../ports/store.js'
import { namespaceLength } from '../../protocol/credential.js'
import { changeOf } from './changes.js'
import type { Call, ServiceContext } from './context.js'
import type { DomainEvent } from './event-types.js'
import { clockDifferenceMaxMs } from './steady-clock.js'

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

/**
 * Returns the change of a record over `before`, which is absent for a new record, and those of its events that
 * are recorded.
 */
export function changesOf(
  { recordsEvents, eventConsumers }: Pick<ServiceContext, 'recordsEvents' | 'eventConsumers'>,
  kind: RecordKind,
  before: Stored | undefined,
  next: Stored,
  events: readonly DomainEvent[],
): readonly RecordChange[] {
  const change = changeOf(kind, before, next)
  const recorded = events.filter(({ type }) => recordsEvents(type))
  // Ids are ordered byte by byte, so the numbers of one commit have the same length.
  const { length } = String(recorded.length)
  const numbered = recorded.flatMap((event, index) => {
    const number = String(index + 1).padStart(length, '0')
    return prefixesOf(next, eventConsumers).map((prefix) =>
      eventChange(prefix, kind, next, event, number),
    )
  })
  return [change, ...numbered]
}

/** Returns the prefixes of the ids of a record's events, one for each queue that gets the events. */
function prefixesOf({ id }: Stored, consumers: readonly string[] | undefined): readonly string[] {
  return (
    consumers?.map((consumer) => queueNamespace(id.slice(0, namespaceLength), consumer)) ?? ['']
  )
}

/**
 * Returns the namespace of the events of a named consumer: 41 bits that depend on the namespace of the server and the
 * name. It is derived synchronously, because the decision about a record is synchronous.
 */
export function queueNamespace(namespace: string, consumer: string): string {
  const half = (text: string) =>
    checksum(text)
      .padStart(7, '0')
      .slice(-namespaceLength / 2)
  return half(`${namespace} ${consumer}`) + half(`${consumer} ${namespace}`)
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

/** Returns the due time of a new event, which is in the past on every consumer's clock, so that no consumer waits. */
export function dueAtOnce(now: Instant): Instant {
  return now - clockDifferenceMaxMs
}

/**
 * The id of an event is its position, the id of the command, and a checksum of the event. After a failover that lost
 * commits, the servers write the same versions again. An id of the position alone would then give a new event the id of
 * one that the host has already handled.
 */
function eventChange(
  prefix: string,
  kind: RecordKind,
  { id: recordId, version, commandId }: Stored,
  event: DomainEvent,
  number: string,
): RecordChange {
  const id = `${prefix}${recordId}.${kind}.${version}.${number}.${commandId}.${checksum(JSON.stringify(event))}`
  const lists = [placeOf(id)] as const
  const record: EventRecord = {
    id,
    version: 1,
    commandId,
    dueAt: dueAtOnce(event.at) - (kind === 'outgoing-payment' ? headStartMs : 0),
    lists,
    attempts: 0,
    event,
  }
  return changeOf('event', undefined, record)
}

/** Changes an event. Resolves to false if another writer changed it. */
export function replaceEvent(
  { store }: ServiceContext,
  before: EventRecord,
  changed: EventRecord,
  { commandId }: Call,
): Promise<boolean> {
  const next = { ...changed, version: before.version + 1, commandId }
  return store.commit({ changes: [changeOf('event', before, next)], guards: [] })
}

/**
 * Returns the position of an event among those of its record, read from its id. Events are ordered by the
 * record's version, because the clocks of two hosts may differ.
 */
export function placeOf(eventId: string): ListEntry {
  const [recordId, kind, version] = eventId.split('.')
  return { list: `${recordId}.${kind}`, at: Number(version) }
}
