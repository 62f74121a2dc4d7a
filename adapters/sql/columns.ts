import { type RecordChange, storeBounds } from '../../src/index.js'
import { textOf } from './record-text.js'

/** The number of lists of a record. Each list has its own columns, so that a commit writes one table. */
const listsMax = storeBounds.recordLists
/** The numbers in the column names of the lists. */
export const listNumbers: readonly number[] = Array.from({ length: listsMax }, (_, i) => i + 1)

export const requiredColumns: readonly string[] = ['kind', 'id', 'version', 'value']
/** The number of key columns, which come first. */
export const keyLength = 2

export const columns: readonly string[] = [
  ...requiredColumns,
  'due_at',
  ...listNumbers.flatMap((n) => [`list_${n}`, `list_${n}_at`]),
]

/** The values of a record's columns, null for an empty one. */
export type Cells = readonly SqlValue[]
export type SqlValue = string | number | null

export function cellsOf(kind: string, next: RecordChange['next']): Cells {
  const { id, version, dueAt = null, lists = [] } = next
  if (lists.length > listsMax) {
    throw new RangeError(`a record can be in ${listsMax} lists, not in ${lists.length}`)
  }
  const cells: SqlValue[] = [kind, id, version, textOf(next), dueAt]
  for (let n = 0; n < listsMax; n++) cells.push(lists[n]?.list ?? null, lists[n]?.at ?? null)
  return cells
}

/** Returns cells with other names for the lists, by which the database finds them. */
export function renameLists(cells: Cells, nameOf: (list: string) => string): Cells {
  return cells.map((cell, i) => {
    const isName = /^list_\d+$/.test(columns[i] ?? '')
    return isName && typeof cell === 'string' ? nameOf(cell) : cell
  })
}

export function typeOf(column = ''): 'bigint' | 'text' {
  return column === 'version' || column.endsWith('_at') ? 'bigint' : 'text'
}
