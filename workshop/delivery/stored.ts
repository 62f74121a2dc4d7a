import {
  type EventRecord,
  isPending,
  placeOf,
  predecessorOf,
} from '../../src/service/event-record.js'
import {
  abandonedAfterMs,
  type ClaimRecord,
  decideClaim,
  decideRelease,
} from '../../src/service/events/claims.js'
import {
  failedRecord,
  leasedRecord,
  postponedRecord,
  suspectRecord,
} from '../../src/service/events/outcomes.js'
import type { Answer, Delivery, StoreAction } from '../../src/service/events/state.js'

/** What the consumers of the model share. */
export interface Stored {
  /** The events, the first of each record first. */
  readonly events: ReadonlyMap<string, EventRecord>
  readonly claims: ReadonlyMap<number, ClaimRecord>
  /** How many claims were written, which is the command id of the last one. */
  readonly claimed: number
}

/** What a process knows of the claims of others. */
export interface Known {
  readonly name: string
  readonly seen: ReadonlyMap<number, { readonly commandId: string; readonly since: number }>
  /** The last holder of each slice that has ended without giving the slice back. */
  readonly ended: ReadonlyMap<number, string>
}

export const deliverySettings = {
  attemptsMax: 3,
  backoffMs: 1_000,
  backoffMaxMs: 3_600_000,
  leaseMs: 60_000,
  skewMaxMs: 0,
}

/** An action that took effect: what is stored then, what its process knows, and its answer. */
export interface Effect {
  readonly stored: Stored
  readonly known: Known
  readonly answer: Answer
  /** The law that the action breaks. */
  readonly broken?: string
}

const sliceOf = (id: string) => Number(id[7])

/** Carries out an action as the library does, by the same decisions. */
export function effectOf(action: StoreAction, stored: Stored, known: Known, now: number): Effect {
  const answered = (answer: Answer): Effect => ({ stored, known, answer })
  const changed = (changes: readonly (readonly [EventRecord, EventRecord])[]) => {
    const events = new Map(stored.events)
    const records = new Map<string, EventRecord>()
    for (const [before, next] of changes) {
      if (events.get(before.id)?.version !== before.version) continue
      const written = { ...next, version: before.version + 1 }
      events.set(before.id, written)
      records.set(before.id, written)
    }
    return { stored: { ...stored, events }, known, records }
  }
  switch (action.type) {
    case 'look up': {
      const due = [...stored.events.values()]
        .filter((event) => sliceOf(event.id) === action.slice && isPending(event))
        .filter(({ dueAt = Number.POSITIVE_INFINITY }) => dueAt <= now)
        .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || (a.id < b.id ? -1 : 1))
        .slice(0, action.limit)
      return answered({ type: 'found', due, isCut: due.length === action.limit })
    }
    case 'load': {
      const found = action.ids.flatMap((id) => stored.events.get(id) ?? [])
      return answered({ type: 'loaded', records: new Map(found.map((each) => [each.id, each])) })
    }
    case 'claim':
      return claim(action, stored, known, now)
    case 'release': {
      const { claim: held, slice } = action
      const commandId = `${stored.claimed + 1}`
      const next = decideRelease(stored.claims.get(slice), held.holder, commandId)
      if (next === undefined) return answered({ type: 'released' })
      const claims = new Map(stored.claims).set(slice, next)
      const claimed = stored.claimed + 1
      return { stored: { ...stored, claims, claimed }, known, answer: { type: 'released' } }
    }
    case 'suspect': {
      const found = action.ids.flatMap((id) => stored.events.get(id) ?? []).filter(isPending)
      const next = changed(found.map((each) => [each, suspectRecord(each, deliverySettings, now)]))
      return { ...next, answer: { type: 'suspected' } }
    }
    case 'postpone': {
      const behind = action.behind.filter(({ record, until }) => (record.dueAt ?? 0) < until)
      const next = changed(behind.map(({ record, until }) => [record, { ...record, dueAt: until }]))
      return { ...next, answer: { type: 'postponed', moved: next.records.size } }
    }
    case 'lease': {
      const next = changed(
        action.deliveries.map(({ record, attempt }) => [
          record,
          leasedRecord(record, attempt, deliverySettings, now),
        ]),
      )
      return { ...next, answer: { type: 'leased', records: next.records } }
    }
    case 'acknowledge':
      return acknowledge(action.deliveries, stored, known, now)
  }
}

function acknowledge(
  deliveries: readonly Delivery[],
  stored: Stored,
  known: Known,
  now: number,
): Effect {
  const events = new Map(stored.events)
  for (const { record, attempt, end } of deliveries) {
    if (events.get(record.id)?.version !== record.version) continue
    const write = (next: EventRecord) =>
      events.set(record.id, { ...next, version: record.version + 1 })
    if (end?.handled.type === 'failed') {
      write(failedRecord(record, attempt, deliverySettings, 'set-aside', now))
    } else if (end?.handled.type === 'postponed') {
      write(postponedRecord(record, attempt, deliverySettings, end.handled.retryAt, now))
    } else events.delete(record.id)
  }
  return { stored: { ...stored, events }, known, answer: { type: 'acknowledged' } }
}

function claim(
  { slice, held, started }: Extract<StoreAction, { readonly type: 'claim' }>,
  stored: Stored,
  known: Known,
  now: number,
): Effect {
  const found = stored.claims.get(slice)
  const seen = known.seen.get(slice)
  const isOld = seen !== undefined && now - seen.since >= abandonedAfterMs
  const commandId = `${stored.claimed + 1}`
  const claimed = decideClaim(found, {
    id: `${slice}`,
    commandId,
    holder: held?.holder ?? `${known.name}.${commandId}`,
    started,
    isRenewal: held !== undefined,
    isAbandoned: (other) =>
      (isOld && other.commandId === seen.commandId) || other.holder === known.ended.get(slice),
  })
  if (!claimed.isHeld) {
    const isKnown = seen?.commandId === claimed.claim.commandId
    const since = isKnown ? seen.since : now
    const { commandId: id } = claimed.claim
    const next = new Map(known.seen).set(slice, { commandId: id, since })
    const answer = { type: 'refused', claim: claimed.claim } as const
    return { stored, known: { ...known, seen: next }, answer }
  }
  const { isHeld: _isHeld, ...answer } = claimed
  const claims = new Map(stored.claims).set(slice, claimed.claim)
  const written = { ...stored, claims, claimed: stored.claimed + 1 }
  return { stored: written, known, answer: { type: 'claimed', ...answer } }
}

/** Returns the events of a record, in a slice, that are due from an instant on. */
export function eventsOf(name: string, count: number, slice: number, dueAt: number) {
  const events: EventRecord[] = []
  const mark = (place: number) => `${String(place).padStart(4, '0')}.c.x`
  for (let place = 1; place <= count; place++) {
    events.push({
      id: `server-${slice}${name}.payment.${mark(place)}`,
      version: 1,
      commandId: 'c',
      attempts: 0,
      event: {} as EventRecord['event'],
      dueAt,
      ...(place > 1 && { after: mark(place - 1) }),
    })
  }
  return events
}

/** Whether an event of the same record comes earlier and is still to be delivered. */
export function isBehind({ events }: Stored, record: EventRecord): boolean {
  const before = predecessorOf(record)
  const found = before === undefined ? undefined : events.get(before)
  return found !== undefined && isPending(found)
}

/** What a path calls an event: its record, and its place there. */
export function shortName(id: string): string {
  const { stream, place } = placeOf(id)
  return `${stream.slice(8, -'.payment'.length)}${place}`
}
