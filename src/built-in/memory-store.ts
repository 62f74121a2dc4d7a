import type { Instant } from '../core/instant.js'
import type { Stored } from '../core/stored.js'
import type { ListQuery, RecordKind, RecordPage, Store } from '../ports/store.js'

/** One record, stored as text so that callers cannot mutate it. */
interface Slot {
  readonly version: number
  readonly text: string
}

type Slots = Map<string, Slot>

/**
 * Creates a store in the memory of one process, for tests and experiments. Its records are lost when the process ends.
 * Each method yields to other callbacks between its steps, as a database does, so that tests find races.
 *
 * @example
 * ```ts
 * import { createWallet, memoryStore } from 'open-payments-server'
 *
 * const wallet = createWallet({
 *   baseUrl: 'https://wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   store: memoryStore(),
 *   walletAddresses: accounts,
 *   paymentMethods,
 * })
 * ```
 */
export function memoryStore(): Store {
  const slots = createSlots()

  return {
    async load(keys) {
      await pause()
      const found = keys.map(({ kind, id }) => slots(kind).get(id))
      await pause()
      return found.map((slot) => slot && recordIn(slot))
    },

    async commit({ changes, guards }) {
      const written = changes.map(({ kind, next }) => ({ kind, next, text: JSON.stringify(next) }))
      await pause()
      const committed =
        changes.every(
          ({ kind, next, expectedVersion }) => versionIn(slots(kind), next.id) === expectedVersion,
        ) && guards.every(({ kind, id, version }) => versionIn(slots(kind), id) === version)
      if (committed) {
        for (const { kind, next, text } of written) {
          slots(kind).set(next.id, { version: next.version, text })
        }
      }
      await pause()
      return committed
    },

    async list(query) {
      await pause()
      return page(recordsIn(slots(query.kind)), query)
    },

    async due(kind, namespace, before, limit, from) {
      await pause()
      return due(recordsIn(slots(kind)), namespace, before, from).slice(0, limit)
    },

    async remove(records) {
      await pause()
      return records.map(({ kind, id, version }) => {
        const isRemoved = version > 0 && versionIn(slots(kind), id) === version
        if (isRemoved) slots(kind).delete(id)
        return isRemoved
      })
    },
  }
}

function createSlots(): (kind: RecordKind) => Slots {
  const kinds = new Map<RecordKind, Slots>()
  return (kind) => {
    const found = kinds.get(kind) ?? new Map<string, Slot>()
    kinds.set(kind, found)
    return found
  }
}

/** Lets other pending callbacks run first. */
function pause(): Promise<void> {
  return Promise.resolve()
}

function recordIn({ text }: Slot): Stored {
  return JSON.parse(text) as Stored
}

function recordsIn(slots: Slots): readonly Stored[] {
  return Array.from(slots.values(), recordIn)
}

function versionIn(slots: Slots, id: string): number {
  return slots.get(id)?.version ?? 0
}

function due(
  records: readonly Stored[],
  namespace: string,
  before: Instant,
  from: Instant = Number.MIN_SAFE_INTEGER,
): readonly Stored[] {
  const isDue = (dueAt: Instant | undefined) =>
    dueAt !== undefined && from <= dueAt && dueAt <= before
  return records
    .filter(({ id, dueAt }) => id.slice(0, 8) === namespace && isDue(dueAt))
    .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || compareIds(a.id, b.id))
}

function page(
  records: readonly Stored[],
  { list: wanted, cursor, forward, limit }: ListQuery,
): RecordPage {
  const places = records
    .flatMap((record) => {
      const place = record.lists?.find((entry) => entry.list === wanted)
      return place === undefined ? [] : [{ record, at: place.at, id: record.id }]
    })
    .sort(comparePlaces)
  const reachable = places.filter((place) => {
    if (cursor === undefined) return true
    return forward ? comparePlaces(place, cursor) > 0 : comparePlaces(place, cursor) < 0
  })
  const first = forward ? 0 : Math.max(0, reachable.length - limit)
  const found = reachable.slice(first, first + limit)
  return { records: found.map(({ record }) => record), more: reachable.length > found.length }
}

type Place = NonNullable<ListQuery['cursor']>

function comparePlaces(a: Place, b: Place): number {
  return a.at - b.at || compareIds(a.id, b.id)
}

function compareIds(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
