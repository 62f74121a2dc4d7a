import type { Commit, RecordKind, VersionGuard } from '../../src/index.js'
import { type Cells, cellsOf } from './columns.js'

/** What a commit does with one record: without cells it locks the record, at version 0 it creates it. */
export interface Step extends VersionGuard {
  readonly cells?: Cells
}

/** The steps of a commit, in the order in which its statement takes the records. */
export interface Steps {
  /** Records that exist: guarded ones, and ones to replace. */
  readonly existing: readonly Step[]
  readonly created: readonly Step[]
}

/**
 * The order in which a commit locks existing records. It creates new records in the opposite order, so that it begins
 * with those that another commit is most likely to have created.
 */
const kinds: readonly RecordKind[] = [
  'event',
  'grant',
  'incoming-payment',
  'quote',
  'outgoing-payment',
  'nonce',
  'transfer',
  'budget',
]

/** Sorts the steps, so that all commits take records in the same order. */
export function stepsOf({ changes, guards }: Commit): Steps {
  const written = changes.map(({ kind, next, expectedVersion: version }) => {
    return { kind, id: next.id, version, cells: cellsOf(kind, next) }
  })
  const sorted = [...guards, ...written].toSorted(compareKeys)
  return {
    existing: sorted.filter((step) => !isNew(step)),
    created: sorted.filter(isNew).toReversed(),
  }
}

function isNew({ version, cells }: Step): boolean {
  return version === 0 && cells !== undefined
}

function compareKeys(one: VersionGuard, other: VersionGuard): number {
  const [left, right] = [kinds.indexOf(one.kind), kinds.indexOf(other.kind)]
  if (left !== right) return left - right
  if (one.id === other.id) return 0
  return one.id < other.id ? -1 : 1
}
