import type { Store } from 'open-payments-server'
import type { Stored } from 'open-payments-server/adapter'
import { namespaceOf } from '../../src/protocol/credential.js'
import { type PublicKind, storedId } from '../../src/service/public-ids.js'
import { loadOne } from './one-record.js'
import { resourceServer } from './world.js'

/** Loads a payment or a quote of a server by its public id. */
export async function loadPublicRecord<Found extends Stored = Stored>(
  store: Store,
  kind: PublicKind,
  id: string,
  serverUrl = resourceServer,
): Promise<Found | undefined> {
  return loadOne<Found>(store, kind, storedId(await namespaceOf(serverUrl), kind, id))
}
