import type {
  Commit,
  ListQuery,
  RecordKey,
  RecordKind,
  VersionGuard,
} from '../../src/entry-adapter.js'
import type { Instant } from '../../src/index.js'
import {
  type Cells,
  cellsOf,
  columns,
  keyLength,
  listNumbers,
  renameLists,
  type SqlValue,
} from './records.js'

/** The step of a commit for one record: without cells, it locks the record; at version 0, it creates the record. */
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
 * with the records that another commit is most likely to have created.
 */
const kinds: readonly RecordKind[] = [
  'event',
  'grant',
  'ended-grant',
  'incoming-payment',
  'quote',
  'outgoing-payment',
  'doubt',
  'replay',
  'transfer',
  'budget',
  'settlement',
  'server',
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

/** Orders records as a commit locks them. */
export function compareKeys(one: VersionGuard, other: VersionGuard): number {
  const [left, right] = [kinds.indexOf(one.kind), kinds.indexOf(other.kind)]
  if (left !== right) return left - right
  if (one.id === other.id) return 0
  return one.id < other.id ? -1 : 1
}

export const recordsTable = 'open_payments_records'
export const migrationsTable = 'open_payments_migrations'

/** A statement with a `?` for each value. */
export interface SqlStatement {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/** The differences between the databases that run a commit as several statements in one transaction. */
export interface Dialect {
  /**
   * Returns the statement that finds a guarded record, and keeps others from changing it until the transaction ends.
   *
   * @param condition follows the WHERE of the record, and begins with AND unless it is empty.
   */
  hold(condition: string): string
  /** Follows an INSERT that must find no row. Empty if the driver reports the duplicate key as an error. */
  readonly unlessExists: string
  /**
   * Follows a statement that writes, so that it returns a row for each row that it wrote. Empty if the database has no
   * such clause.
   */
  readonly returning: string
  /** Follows the table of a query that must use the index of a list. */
  usingIndex(name: string): string
  /** Whether an INSERT also writes the column `namespace`, because the database does not generate it. */
  readonly writesNamespace?: boolean
}

export type Statements = ReturnType<typeof createStatements>

const ofRecord = 'kind = ? AND id = ?'
export const atVersion = `${ofRecord} AND version = ?`

/**
 * The statements of a store that commits by a transaction: each of them must find exactly one row.
 *
 * @param condition begins with AND. Without it, the statements find and write nothing.
 */
export function createStatements(dialect: Dialect, condition = '') {
  const { unlessExists, returning, usingIndex, writesNamespace = false } = dialect
  const hold = dialect.hold(condition)
  const inserted = writesNamespace ? [...columns, 'namespace'] : columns
  const marks = inserted.map(() => '?').join(', ')
  const row =
    condition === '' ? `VALUES (${marks})` : `SELECT ${marks} FROM (SELECT 1) AS one WHERE 1 = 1`
  const insert = `INSERT INTO ${recordsTable} (${inserted.join(', ')}) ${row} ${condition} ${unlessExists} ${returning}`
  const set = columns.slice(keyLength).map((column) => `${column} = ?`)
  const update = `UPDATE ${recordsTable} SET ${set.join(', ')} WHERE ${atVersion} ${condition} ${returning}`
  const remove = `DELETE FROM ${recordsTable} WHERE ${atVersion} ${condition} ${returning}`
  const load = `(SELECT value FROM ${recordsTable} WHERE ${ofRecord})`
  const due = `SELECT value FROM ${recordsTable}
    WHERE kind = ? AND namespace = ? AND due_at BETWEEN ? AND ? ORDER BY due_at, id LIMIT ?`
  const forward = listText('>', 'ASC', usingIndex)
  const backward = listText('<', 'DESC', usingIndex)

  function statementOf({ kind, id, version, cells }: Step): SqlStatement {
    if (cells === undefined) return { text: hold, values: [kind, id, version] }
    if (version === 0) {
      return { text: insert, values: writesNamespace ? [...cells, id.slice(0, 8)] : cells }
    }
    return { text: update, values: [...cells.slice(keyLength), kind, id, version] }
  }

  return {
    /** Its row has a value or null for each key, in their order. One statement reads one snapshot. */
    load(keys: readonly RecordKey[]): SqlStatement {
      const text = `SELECT ${keys.map((_, i) => `${load} AS value_${i}`).join(', ')}`
      return { text, values: keys.flatMap(({ kind, id }) => [kind, id]) }
    },
    commit: ({ existing, created }: Steps) => [...existing, ...created].map(statementOf),
    list(query: ListQuery, name: string): SqlStatement {
      const { at, id } = query.cursor ?? (query.forward ? first : last)
      const limit = query.limit + 1
      const page = [query.kind, name, at, at, id, limit]
      const values = [...listNumbers.flatMap(() => page), limit]
      return { text: query.forward ? forward : backward, values }
    },
    due(
      kind: string,
      namespace: string,
      before: Instant,
      limit: number,
      from: Instant = Number.MIN_SAFE_INTEGER,
    ): SqlStatement {
      return { text: due, values: [kind, namespace, from, before, limit] }
    },
    remove({ kind, id, version }: VersionGuard): SqlStatement {
      return { text: remove, values: [kind, id, version] }
    },
  }
}

// Before and after each id at each safe integer.
const first = { at: Number.MIN_SAFE_INTEGER, id: '' }
const last = { at: Number.MAX_SAFE_INTEGER, id: '~' }

/** Each of the record's lists has an index and yields at most one page. */
function listText(
  beyond: '>' | '<',
  order: 'ASC' | 'DESC',
  usingIndex: Dialect['usingIndex'],
): string {
  const pages = listNumbers.map((n) => {
    const at = `list_${n}_at`
    // The first comparison bounds the range of the index. In MariaDB, a comparison of rows does not.
    return `SELECT * FROM (SELECT id, ${at} AS place, value FROM ${recordsTable} ${usingIndex(listIndex(n))}
      WHERE kind = ? AND list_${n} = ? AND ${at} ${beyond}= ? AND (${at} ${beyond} ? OR id ${beyond} ?)
      ORDER BY ${at} ${order}, id ${order} LIMIT ?) AS page_${n}`
  })
  return `SELECT value FROM (${pages.join(' UNION ALL ')}) AS found
    ORDER BY place ${order}, id ${order} LIMIT ?`
}

export function listIndex(n: number): string {
  return `${recordsTable}_list_${n}`
}

/** Returns the steps of a commit with other names for its lists, by which the database finds them. */
export function withListNames(
  { existing, created }: Steps,
  nameOf: (list: string) => string,
): Steps {
  const renamed = (step: Step): Step =>
    step.cells === undefined ? step : { ...step, cells: renameLists(step.cells, nameOf) }
  return { existing: existing.map(renamed), created: created.map(renamed) }
}
