import type { Change, Commit, Guard, Instant, ListQuery } from '../../src/index.js'
import type { PostgresStatement } from './driver.js'

/** SQLSTATE of division by zero, by which a commit undoes itself. */
export const lost = '22012'

/** How many lists a record can be in: each has columns of its own, so that a commit writes one table. */
const listsMax = 3
/** What the columns of each list are told apart by. */
export const listNumbers: readonly number[] = Array.from({ length: listsMax }, (_, i) => i + 1)

const before = Number.MIN_SAFE_INTEGER
const after = Number.MAX_SAFE_INTEGER

export type Statements = ReturnType<typeof createStatements>

/**
 * The statements of the store, over the one table. They keep to what CockroachDB, YugabyteDB and Citus run
 * as well, hence:
 *
 * - no advisory locks, which CockroachDB only pretends to have;
 * - no sequences, and no key or time made by the server: they are sharded or differ between its nodes;
 * - no triggers, no PL/pgSQL, no `ctid` or `xmin`;
 * - no statement over several tables, which a shard could not decide by itself;
 * - `COLLATE "C"` in the table and nowhere else, since the byte order of ids must not depend on the locale;
 * - JSON as text: `jsonb` refuses U+0000 and doesn't keep numbers and keys as they were written.
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
    /** One text for each shape of a commit: few ever occur. An empty one has no statement. */
    commit(requested: Commit): PostgresStatement {
      const parts = partsOf(requested)
      const shape = shapeOf(parts)
      const isUsual = shape.length <= shapeLengthMax
      const name = isUsual ? `commit_${shape}` : undefined
      const known = commits.get(shape) ?? statement(name, commitText(table, parts))
      if (isUsual) commits.set(shape, known)
      return known(...commitValues(parts))
    },
    list({ kind, by, cursor, forward: isForward, limit }: ListQuery) {
      const { at, id } = cursor ?? (isForward ? { at: before, id: '' } : { at: after, id: '~' })
      return (isForward ? forward : backward)(kind, by, at, id, limit + 1)
    },
    due: (kind: string, namespace: string, until: Instant, limit: number) =>
      due(kind, namespace, until, limit),
    remove: (kind: string, id: string, version: number) => remove(kind, id, version),
  }
}

export function checkedSchema(schema: string | undefined): string | undefined {
  if (schema === undefined || /^[a-z_][a-z0-9_]{0,39}$/.test(schema)) return schema
  const error = new TypeError(
    'schema: must be lower-case letters, digits and underscores, at most 40',
  )
  throw Object.assign(error, { code: 'ERR_INVALID_OPTION', option: 'schema' })
}

export function tableIn(schema: string | undefined, table: string): string {
  return schema === undefined ? table : `"${schema}".${table}`
}

/** What a change writes into each of the columns, null where there is nothing. */
interface Row {
  readonly cells: readonly unknown[]
  readonly expectedVersion: number
}

/** Whether a commit asks for nothing, and so has taken effect. */
export function isEmpty({ changes, guards }: Commit): boolean {
  return changes.length === 0 && guards.length === 0
}

/** A commit as its statement takes it, each part in the order of kinds and ids. */
interface CommitParts {
  readonly replaced: readonly Row[]
  readonly created: readonly Row[]
  /** What has to be locked beforehand. With one record alone nobody can wait in a circle. */
  readonly locked: readonly Guard[]
}

function partsOf({ changes, guards }: Commit): CommitParts {
  const sorted = changes.toSorted((a, b) => compareKeys(a.kind, a.next.id, b.kind, b.next.id))
  const replaced = sorted.filter(({ expectedVersion }) => expectedVersion > 0)
  const held = replaced.map(({ kind, next, expectedVersion }) => {
    return { kind, id: next.id, version: expectedVersion }
  })
  return {
    replaced: replaced.map(rowOf),
    created: sorted.filter(({ expectedVersion }) => expectedVersion === 0).map(rowOf),
    locked: guards.length > 0 || replaced.length > 1 ? [...guards, ...held] : [],
  }
}

/** Of more records than the library writes at once: such a commit is prepared for itself alone. */
const shapeLengthMax = 12

/** What tells the texts of two commits apart: which cells each of its rows has, and how many locks. */
function shapeOf({ replaced, created, locked }: CommitParts): string {
  return `${replaced.map(digitOf).join('')}_${created.map(digitOf).join('')}_${locked.length}`
}

/** Lists have two cells each and fill up from the first, `due_at` has one: their number tells which. */
function digitOf({ cells }: Row): number {
  return cells.filter((cell) => cell !== null).length - requiredColumns.length
}

const requiredColumns = ['kind', 'id', 'version', 'value']
const columns = [...requiredColumns, 'due_at', ...listColumns()]

/**
 * One statement that writes everything, or raises and so writes nothing. A record is replaced only where its
 * version is the expected one, which PostgreSQL looks at again after it has waited for another writer, and
 * created only where there is none. Several records that it depends on are locked first, in one order for
 * everybody: guards cannot change under it then, and commits never wait for each other in a circle.
 *
 * Values are parameters of their own, not arrays: with arrays PostgreSQL plans each commit anew.
 */
function commitText(table: string, { replaced, created, locked }: CommitParts): string {
  let last = 0
  const parameter = (type: string) => `$${++last}::${type}`
  const values = ({ cells }: Row) =>
    cells.map((cell, i) => (cell === null ? 'NULL' : parameter(typeOf(columns[i]))))

  const parts: string[] = []
  const done: string[] = []
  if (locked.length > 0) {
    const needed = locked.map(() => `(${['text', 'text', 'bigint'].map(parameter).join(', ')})`)
    parts.push(`locked AS MATERIALIZED (
    SELECT held.version = needed.version AS holds
      FROM (VALUES ${needed.join(', ')}) AS needed (kind, id, version)
      JOIN ${table} AS held ON held.kind = needed.kind AND held.id = needed.id
      ORDER BY held.kind, held.id FOR UPDATE OF held
  )`)
    done.push('(SELECT count(*) FROM locked WHERE holds)')
  }
  for (const [index, row] of replaced.entries()) {
    const [kind, id, ...rest] = values(row)
    const assigned = rest.map((value, i) => `${columns[i + 2]} = ${value}`)
    parts.push(`replaced_${index} AS (
    UPDATE ${table} SET ${assigned.join(', ')}
      WHERE kind = ${kind} AND id = ${id} AND version = ${parameter('bigint')} RETURNING 1
  )`)
    done.push(`(SELECT count(*) FROM replaced_${index})`)
  }
  if (created.length > 0) {
    const rows = created.map((row) => `(${values(row).join(', ')})`)
    parts.push(`created AS (
    INSERT INTO ${table} (${columns.join(', ')})
      VALUES ${rows.join(', ')}
      ON CONFLICT (kind, id) DO NOTHING RETURNING 1
  )`)
    done.push('(SELECT count(*) FROM created)')
  }
  const all = locked.length + replaced.length + created.length
  return `WITH ${parts.join(',\n  ')}
  /* Divides by zero when somebody else was first, so that nothing of this commit stays. */
  SELECT 1 / (CASE WHEN ${done.join(' + ')} = ${all} THEN 1 ELSE 0 END) AS committed`
}

function commitValues({ replaced, created, locked }: CommitParts): unknown[] {
  const given = (cells: readonly unknown[]) => cells.filter((cell) => cell !== null)
  return [
    ...locked.flatMap(({ kind, id, version }) => [kind, id, version]),
    ...replaced.flatMap(({ cells, expectedVersion }) => [...given(cells), expectedVersion]),
    ...created.flatMap(({ cells }) => given(cells)),
  ]
}

function rowOf({ kind, next, expectedVersion }: Change): Row {
  const { id, version, dueAt = null, lists = [] } = next
  if (lists.length > listsMax) {
    throw new RangeError(`a record can be in ${listsMax} lists, not in ${lists.length}`)
  }
  const cells: unknown[] = [kind, id, version, JSON.stringify(next), dueAt]
  for (let n = 0; n < listsMax; n++) cells.push(lists[n]?.by ?? null, lists[n]?.at ?? null)
  return { cells, expectedVersion }
}

function typeOf(column = ''): 'bigint' | 'text' {
  return column === 'version' || column.endsWith('_at') ? 'bigint' : 'text'
}

/** A page: each of the three lists a record can be in has an index, and gives at most a page. */
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

function compareKeys(kind: string, id: string, otherKind: string, otherId: string): number {
  const [left, right] = [`${kind} ${id}`, `${otherKind} ${otherId}`]
  if (left === right) return 0
  return left < right ? -1 : 1
}
