import {
  type Commit,
  type Instant,
  type ListQuery,
  OptionError,
  type RecordChange,
  type VersionGuard,
} from '../../src/index.js'
import type { PostgresStatement } from './driver.js'

/** SQLSTATE of division by zero, which a commit raises to undo itself. */
export const lost = '22012'

/** The number of lists of a record. Each list has its own columns, so that a commit writes one table. */
const listsMax = 3
/** The numbers in the column names of the lists. */
export const listNumbers: readonly number[] = Array.from({ length: listsMax }, (_, i) => i + 1)

const before = Number.MIN_SAFE_INTEGER
const after = Number.MAX_SAFE_INTEGER

export type Statements = ReturnType<typeof createStatements>

/**
 * The statements of the store, over one table. They only use features that CockroachDB, YugabyteDB and Citus
 * also support:
 *
 * - no advisory locks, which CockroachDB only pretends to have;
 * - no sequences, and no key or time made by the server: they are sharded or differ between its nodes;
 * - no triggers, no PL/pgSQL, no `ctid` or `xmin`;
 * - no statement over several tables, which a single shard could not execute;
 * - `COLLATE "C"` in the table and nowhere else, because the byte order of ids must not depend on the locale;
 * - JSON as text: `jsonb` rejects U+0000 and does not preserve numbers and keys exactly.
 */
export function createStatements(schema: string | undefined, prepare: boolean) {
  const table = tableIn(schema, 'open_payments_records')

  function statement(name: string | undefined, text: string) {
    const prepared = prepare && name !== undefined ? { name: `op_${name}_${schema ?? ''}` } : {}
    return (...values: unknown[]): PostgresStatement => ({ ...prepared, text, values })
  }

  const load = statement('load', `SELECT value FROM ${table} WHERE kind = $1 AND id = $2`)
  const commits = new Map<string, ReturnType<typeof statement>>()
  const forward = statement('forward', listText(table, '>', 'ASC'))
  const backward = statement('backward', listText(table, '<', 'DESC'))
  const due = statement(
    'due',
    `SELECT value FROM ${table}
      WHERE kind = $1 AND left(id, 8) = $2 AND due_at <= $3 ORDER BY due_at, id LIMIT $4`,
  )
  const remove = statement(
    'remove',
    `DELETE FROM ${table} WHERE kind = $1 AND id = $2 AND version = $3 RETURNING version`,
  )

  return {
    load: (kind: string, id: string) => load(kind, id),
    /** Returns one text for each shape of a commit; few shapes occur. An empty commit has no statement. */
    commit(requested: Commit): PostgresStatement {
      const steps = stepsOf(requested)
      const shape = shapeOf(steps)
      const isUsual = shape.length <= shapeLengthMax
      const name = isUsual ? `commit_${shape}` : undefined
      const known = commits.get(shape) ?? statement(name, commitText(table, steps))
      if (isUsual) commits.set(shape, known)
      return known(...commitValues(steps))
    },
    list({ kind, list: wanted, cursor, forward: isForward, limit }: ListQuery) {
      const { at, id } = cursor ?? (isForward ? { at: before, id: '' } : { at: after, id: '~' })
      return (isForward ? forward : backward)(kind, wanted, at, id, limit + 1)
    },
    due: (kind: string, namespace: string, until: Instant, limit: number) =>
      due(kind, namespace, until, limit),
    remove: (kind: string, id: string, version: number) => remove(kind, id, version),
  }
}

export function checkedSchema(schema: string | undefined): string | undefined {
  if (schema === undefined || /^[a-z_][a-z0-9_]{0,39}$/.test(schema)) return schema
  throw new OptionError('schema', 'must be at most 40 lower-case letters, digits and underscores')
}

export function tableIn(schema: string | undefined, table: string): string {
  return schema === undefined ? table : `"${schema}".${table}`
}

/** Returns whether a commit is empty and so takes effect without a statement. */
export function isEmpty({ changes, guards }: Commit): boolean {
  return changes.length === 0 && guards.length === 0
}

/** The values of a record's columns, null for an empty one. */
type Cells = readonly unknown[]

/** What a commit does with one record: without cells it locks the record, at version 0 it creates it. */
interface Step extends VersionGuard {
  readonly cells?: Cells
}

/** Sorts the steps by kind and id, so that all commits lock records in the same order. */
function stepsOf({ changes, guards }: Commit): readonly Step[] {
  const written = changes.map(({ kind, next, expectedVersion: version }) => {
    return { kind, id: next.id, version, cells: cellsOf(kind, next) }
  })
  return [...guards, ...written].toSorted(compareKeys)
}

/** The library's own commits have at most this many records; longer ones are not prepared by name. */
const shapeLengthMax = 12

/**
 * Returns the cache key of a commit's SQL text: for each record, the operation and the columns that it sets.
 */
function shapeOf(steps: readonly Step[]): string {
  return steps.map(signOf).join('')
}

/** Lists have two cells each and fill up from the first, `due_at` has one, so the count identifies them. */
function signOf({ version, cells }: Step): string {
  if (cells === undefined) return 'h'
  const count = cells.filter((cell) => cell !== null).length - requiredColumns.length
  return version === 0 ? 'ABCDEFGH'.charAt(count) : String(count)
}

const requiredColumns = ['kind', 'id', 'version', 'value']
/** The number of key columns, which come first. */
const keyLength = 2
const columns = [...requiredColumns, 'due_at', ...listColumns()]

/**
 * Returns one statement that writes everything, or raises and so writes nothing. It locks or replaces a
 * record only at the expected version, which PostgreSQL checks again after waiting for another writer, and it
 * creates a record only if none exists. A locked record cannot change before the commit takes effect.
 *
 * PostgreSQL evaluates the sum from the left, so that all commits lock records, including new ones, in the
 * same order. Commits may wait for each other but never form a cycle.
 *
 * Each value is a separate parameter: with arrays, PostgreSQL plans every commit again.
 */
function commitText(table: string, steps: readonly Step[]): string {
  let last = 0
  const parameter = (type: string) => `$${++last}::${type}`
  const parts = grouped(steps).map((group, i) => {
    const { action, text } = partText(table, group, parameter)
    return { name: `${action}_${i}`, text }
  })
  const done = parts.map(({ name }) => `(SELECT count(*) FROM ${name})`)
  return `WITH ${parts.map(({ name, text }) => `${name} AS ${text}`).join(',\n  ')}
  /* Divides by zero if another writer was first, so that nothing of this commit stays. */
  SELECT 1 / (CASE WHEN ${done.join(' + ')} = ${steps.length} THEN 1 ELSE 0 END) AS committed`
}

type Group = readonly [Step, ...Step[]]

/** Groups consecutive new records, which one INSERT creates. */
function grouped(steps: readonly Step[]): readonly Group[] {
  const groups: [Step, ...Step[]][] = []
  for (const step of steps) {
    const group = groups.at(-1)
    if (group !== undefined && isNew(group[0]) && isNew(step)) group.push(step)
    else groups.push([step])
  }
  return groups
}

function isNew({ version, cells }: Step): boolean {
  return version === 0 && cells !== undefined
}

function partText(table: string, group: Group, parameter: (type: string) => string) {
  const values = (cells: Cells = [], from = 0) =>
    cells
      .slice(from)
      .map((cell, i) => (cell === null ? 'NULL' : parameter(typeOf(columns[from + i]))))
  const [step] = group
  if (isNew(step)) {
    const rows = group.map(({ cells }) => `(${values(cells).join(', ')})`)
    const text = `(
    INSERT INTO ${table} (${columns.join(', ')})
      VALUES ${rows.join(', ')}
      ON CONFLICT (kind, id) DO NOTHING RETURNING 1
  )`
    return { action: 'created', text }
  }
  const [kind, id] = [parameter('text'), parameter('text')]
  const isIt = `kind = ${kind} AND id = ${id} AND version = ${parameter('bigint')}`
  if (step.cells === undefined) {
    const text = `MATERIALIZED (\n    SELECT 1 FROM ${table} WHERE ${isIt} FOR UPDATE\n  )`
    return { action: 'held', text }
  }
  const set = values(step.cells, keyLength).map((cell, i) => `${columns[keyLength + i]} = ${cell}`)
  const text = `(\n    UPDATE ${table} SET ${set.join(', ')}\n      WHERE ${isIt} RETURNING 1\n  )`
  return { action: 'replaced', text }
}

function commitValues(steps: readonly Step[]): unknown[] {
  const given = (cells: Cells) => cells.filter((cell) => cell !== null)
  return steps.flatMap(({ kind, id, version, cells = [] }) =>
    version === 0 ? given(cells) : [kind, id, version, ...given(cells.slice(keyLength))],
  )
}

function cellsOf(kind: string, next: RecordChange['next']): Cells {
  const { id, version, dueAt = null, lists = [] } = next
  if (lists.length > listsMax) {
    throw new RangeError(`a record can be in ${listsMax} lists, not in ${lists.length}`)
  }
  const cells: unknown[] = [kind, id, version, JSON.stringify(next), dueAt]
  for (let n = 0; n < listsMax; n++) cells.push(lists[n]?.list ?? null, lists[n]?.at ?? null)
  return cells
}

function typeOf(column = ''): 'bigint' | 'text' {
  return column === 'version' || column.endsWith('_at') ? 'bigint' : 'text'
}

/** Returns the statement for a page: each of the record's lists has an index and yields at most one page. */
function listText(table: string, beyond: '>' | '<', order: 'ASC' | 'DESC'): string {
  const pages = listNumbers.map(
    (n) => `(SELECT id, list_${n}_at AS at, value FROM ${table}
      WHERE kind = $1 AND list_${n} = $2 AND (list_${n}_at, id) ${beyond} ($3::bigint, $4)
      ORDER BY list_${n}_at ${order}, id ${order} LIMIT $5)`,
  )
  return `SELECT value FROM (${pages.join(' UNION ALL ')}) AS found
    ORDER BY at ${order}, id ${order} LIMIT $5`
}

function listColumns(): string[] {
  return listNumbers.flatMap((n) => [`list_${n}`, `list_${n}_at`])
}

function compareKeys(
  one: Pick<VersionGuard, 'kind' | 'id'>,
  other: Pick<VersionGuard, 'kind' | 'id'>,
): number {
  const [left, right] = [`${one.kind} ${one.id}`, `${other.kind} ${other.id}`]
  if (left === right) return 0
  return left < right ? -1 : 1
}
