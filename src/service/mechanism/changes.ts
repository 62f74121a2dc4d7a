import type { Stored } from '../../core/stored.js'
import type { RecordChange, RecordKind } from '../../ports/store.js'

/**
 * Returns the change that writes a record over `before`, or creates it if there is none. The change says where
 * the replaced version is found, so that a store need not load it.
 */
export function changeOf(kind: RecordKind, before: Stored | undefined, next: Stored): RecordChange {
  if (before === undefined) return { kind, next, expectedVersion: 0 }
  const { version, lists, dueAt } = before
  const previous = { ...(lists && { lists }), ...(dueAt !== undefined && { dueAt }) }
  return { kind, next, expectedVersion: version, previous }
}
