import {
  type ListQuery,
  type RecordChange,
  type RecordKey,
  type RecordPage,
  type Stored,
  storeBounds,
} from '../../src/entry-adapter.js'

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

/** A row of a result. Which columns it has depends on the statement. */
export interface Row {
  readonly kind?: unknown
  readonly id?: unknown
  readonly value?: unknown
}

/** Returns the records of a row that has a value or null for each key. */
export function recordsOf(row: Row = {}): readonly (Stored | undefined)[] {
  return Object.values(row).map((value) => (value === null ? undefined : recordIn(String(value))))
}

export function recordOf({ value }: Row): Stored {
  return recordIn(String(value))
}

/** Returns for each record whether the result has a row with its key. */
export function removedOf(records: readonly RecordKey[], rows: readonly Row[]): readonly boolean[] {
  const removed = new Set(rows.map(({ kind, id }) => `${kind} ${id}`))
  return records.map(({ kind, id }) => removed.has(`${kind} ${id}`))
}

/** Returns the page of a query whose statement asked for one row more than the limit. */
export function pageOf({ forward, limit }: ListQuery, rows: readonly Row[]): RecordPage {
  const records = rows.slice(0, limit).map(recordOf)
  return { records: forward ? records : records.reverse(), more: rows.length > limit }
}

/**
 * A record's text is JSON that `jsonb` accepts. `jsonb` refuses U+0000 and lone surrogates. One such character, for
 * example in the metadata of a client, would make every query over all records fail, and every write to an index over
 * them. The text therefore replaces each such character, and U+E000 itself, with U+E000 and four hexadecimal digits.
 * U+E000 belongs to a private use area, so almost no other text contains it.
 */
const mark = '\ue000'

/** Matches each escape as a whole, so that the second half of an escaped backslash begins none. */
const escapes = /\\(?:u(0000|d[89a-f]..)|.)|\ue000/g

/**
 * Returns the text of a record. `JSON.stringify` writes each character to replace as an escape, except for the mark.
 */
export function textOf(record: Stored): string {
  return JSON.stringify(record).replace(escapes, (found, code: string | undefined) => {
    if (found === mark) return `${mark}e000`
    return code === undefined ? found : `${mark}${code}`
  })
}

/** Returns the record of a text, which is equal to the record that `textOf` received. */
export function recordIn(text: string): Stored {
  return JSON.parse(text.replaceAll(mark, '\\u')) as Stored
}
