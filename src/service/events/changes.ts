import type { Instant } from '../../core/instant.js'
import { storeBounds, type VersionGuard } from '../../ports/store.js'
import { newCall, type ServiceContext } from '../context.js'
import type { EventRecord } from '../event-record.js'
import { recordsOf } from '../load.js'

/** The number of events that one commit changes, each with a list entry. */
export const changesMax = storeBounds.commitSize / 2

export interface EventChange {
  readonly before: EventRecord
  readonly next: EventRecord
}

/** Changes events. Resolves to the new records, by their ids, of those that no other writer has changed. */
export async function changeEvents(
  context: Pick<ServiceContext, 'run' | 'clock' | 'random'>,
  changes: readonly EventChange[],
): Promise<ReadonlyMap<string, EventRecord>> {
  const changed = new Map<string, EventRecord>()
  for (let i = 0; i < changes.length; i += changesMax) {
    const some = changes.slice(i, i + changesMax)
    for (const record of await changeSome(context, some)) changed.set(record.id, record)
  }
  return changed
}

function changeSome(
  context: Pick<ServiceContext, 'run' | 'clock' | 'random'>,
  changes: readonly EventChange[],
): Promise<readonly EventRecord[]> {
  const { commandId } = newCall(context)
  const keyOf = ({ before: { id } }: EventChange) => ({ kind: 'event', id }) as const
  return context.run<readonly EventRecord[]>({
    reads: changes.map(keyOf),
    basis: { type: 'loaded', records: recordsOf('event', ...changes.map(({ before }) => before)) },
    decide(read) {
      const result: EventRecord[] = []
      const written: { readonly kind: 'event'; readonly next: EventRecord }[] = []
      for (const change of changes) {
        const found = read<EventRecord>(keyOf(change))
        const { before } = change
        if (found?.commandId === commandId) result.push(found)
        if (found?.version !== before.version) continue
        const next = { ...change.next, version: before.version + 1, commandId }
        written.push({ kind: 'event', next })
        result.push(next)
      }
      return { type: 'commit', changes: written, result }
    },
  })
}

/** Loads events by the ids of their records, of any number, and leaves out those that do not exist. */
export async function loadEvents(
  { store }: Pick<ServiceContext, 'store'>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, EventRecord>> {
  const found = new Map<string, EventRecord>()
  for (let i = 0; i < ids.length; i += storeBounds.loadKeys) {
    const some = ids.slice(i, i + storeBounds.loadKeys)
    for (const record of await store.load(some.map((id) => ({ kind: 'event', id })))) {
      if (record !== undefined) found.set(record.id, record as EventRecord)
    }
  }
  return found
}

const pauseMs = 50

/** Removes delivered events, unless another writer has changed them. A repeated removal changes nothing. */
export async function removeEvents(
  { store, pacing, storeTimeoutMs }: ServiceContext,
  records: readonly EventRecord[],
): Promise<void> {
  const endsAt = pacing.elapsedMs() + storeTimeoutMs
  for (let i = 0; i < records.length; i += storeBounds.removeRecords) {
    const some: readonly VersionGuard[] = records
      .slice(i, i + storeBounds.removeRecords)
      .map(({ id, version }) => ({ kind: 'event', id, version }))
    for (;;) {
      try {
        await store.remove(some)
        break
      } catch (error) {
        if (pacing.elapsedMs() >= endsAt) throw error
        await pacing.sleep(pauseMs)
      }
    }
  }
}

/** Reschedules events that wait for another one. Resolves to the number of those that no other writer has changed. */
export async function postponeEvents(
  context: ServiceContext,
  behind: readonly { readonly record: EventRecord; readonly until: Instant }[],
): Promise<number> {
  const changes = behind.map(({ record, until }) => {
    return { before: record, next: { ...record, dueAt: until } }
  })
  return (await changeEvents(context, changes)).size
}
