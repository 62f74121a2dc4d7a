import type { Store } from 'open-payments-server'
import type { RecordKind, Stored } from 'open-payments-server/adapter'
import { namespaceOf } from '../../src/protocol/credential.js'
import { type PublicKind, storedId } from '../../src/service/public-ids.js'
import { resourceServer } from './world.js'

/** Loads one record. */
export async function loadOne<Found extends Stored = Stored>(
  store: Store,
  kind: RecordKind,
  id: string,
): Promise<Found | undefined> {
  const [found] = await store.load([{ kind, id }])
  return found as Found | undefined
}

/** Loads a payment or a quote of a server by its public id. */
export async function loadPublicRecord<Found extends Stored = Stored>(
  store: Store,
  kind: PublicKind,
  id: string,
  serverUrl = resourceServer,
): Promise<Found | undefined> {
  return loadOne<Found>(store, kind, storedId(await namespaceOf(serverUrl), kind, id))
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
