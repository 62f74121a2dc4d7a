import type { Store } from 'open-payments-server'
import type { RecordKind, Stored } from 'open-payments-server/adapter'

/** Loads one record. */
export async function loadOne<Found extends Stored = Stored>(
  store: Store,
  kind: RecordKind,
  id: string,
): Promise<Found | undefined> {
  const [found] = await store.load([{ kind, id }])
  return found as Found | undefined
}

/** Removes one record if it is at this version; resolves to whether it did. */
export async function removeOne(
  store: Store,
  kind: RecordKind,
  id: string,
  version: number,
): Promise<boolean> {
  const [removed = false] = await store.remove([{ kind, id, version }])
  return removed
}
