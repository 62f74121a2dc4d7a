import type { Stored } from '../../core/stored.js'
import type { RecordKind } from '../../ports/store.js'
import { isIdOf } from '../../protocol/credential.js'
import type { ServiceContext } from './context.js'
import type { DomainEvent } from './event-types.js'
import { changesOf } from './events.js'
import type { SignedCall } from './nonces.js'
import { type Operation, type Replayed, transactSigned } from './transact.js'

/** Loads a record of this server. Resolves to `undefined` for invalid ids and those of other servers. */
export async function loadOwn<Found extends Stored>(
  { store, namespace }: Pick<ServiceContext, 'store' | 'namespace'>,
  kind: RecordKind,
  id: string,
): Promise<Found | undefined> {
  if (!isIdOf(await namespace(), id)) return undefined
  return (await store.load(kind, id)) as Found | undefined
}

/**
 * Commits a new record with its events. The id is unique to this command: an existing record with this id
 * means that this commit succeeded and its response was lost.
 */
export function commitNew<Result>(
  context: ServiceContext,
  kind: RecordKind,
  { record, events }: { readonly record: Stored; readonly events: readonly DomainEvent[] },
  result: Result,
  { replay }: SignedCall,
): Promise<Result | Replayed> {
  const operation: Operation<Stored | undefined, Result> = {
    loaded: undefined,
    reload: () => loadOwn(context, kind, record.id),
    decide(loaded) {
      const changes = loaded ? [] : changesOf(context, kind, undefined, record, events)
      return { changes, result, refused: false }
    },
  }
  return transactSigned(context, operation, replay)
}
