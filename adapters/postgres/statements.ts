import type { Commit, Instant, ListQuery, RecordChange, VersionGuard } from '../../src/index.js'
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
  const error = new TypeError(
    'schema: must be lower-case letters, digits and underscores, at most 40',
  )
  throw Object.assign(error, { code: 'ERR_INVALID_OPTION', option: 'schema' })
}

export function tableIn(schema: string | undefined, table: string): string {
  return schema === undefined ? table : `"${schema}".${table}`
}

/** Whether a commit asks for nothing, and so has taken effect. */
export function isEmpty({ changes, guards }: Commit): boolean {
  return changes.length === 0 && guards.length === 0
}

/** What a record is to hold in each of the columns, null where there is nothing. */
type Cells = readonly unknown[]

/** What a commit does with one record: without cells it is held as it is, at version 0 it is created. */
interface Step extends VersionGuard {
  readonly cells?: Cells
}

/** In the order of kinds and ids, which is the same for everybody. */
function stepsOf({ changes, guards }: Commit): readonly Step[] {
  const written = changes.map(({ kind, next, expectedVersion: version }) => {
    return { kind, id: next.id, version, cells: cellsOf(kind, next) }
  })
  return [...guards, ...written].toSorted(compareKeys)
}

/** Of more records than the library writes at once: such a commit is prepared for itself alone. */
const shapeLengthMax = 12

/** What tells the texts of two commits apart: a sign for each record, by what is done with which cells. */
function shapeOf(steps: readonly Step[]): string {
  return steps.map(signOf).join('')
}

/** Lists have two cells each and fill up from the first, `due_at` has one: their number tells which. */
function signOf({ version, cells }: Step): string {
  if (cells === undefined) return 'h'
  const count = cells.filter((cell) => cell !== null).length - requiredColumns.length
  return version === 0 ? 'ABCDEFGH'.charAt(count) : String(count)
}

const requiredColumns = ['kind', 'id', 'version', 'value']
/** How many of the columns, the first ones, are the key. */
const keyLength = 2
const columns = [...requiredColumns, 'due_at', ...listColumns()]

/**
 * One statement that writes everything, or raises and so writes nothing. A record is held or replaced only
 * where its version is the expected one, which PostgreSQL looks at again after it has waited for another
 * writer, and created only where there is none. What is held cannot change before the commit has taken effect.
 *
 * The sum is reckoned from the left, so that everybody takes records in one order: commits may have to wait for
 * each other at any of them, new ones too, and never do so in a circle.
 *
 * Values are parameters of their own, not arrays: with arrays PostgreSQL plans each commit anew.
 */
function commitText(table: string, steps: readonly Step[]): string {
  let last = 0
  const parameter = (type: string) => `$${++last}::${type}`
  const values = (cells: Cells, from = 0) =>
    cells
      .slice(from)
      .map((cell, i) => (cell === null ? 'NULL' : parameter(typeOf(columns[from + i]))))

  const parts: string[] = []
  const done: string[] = []
  function add(action: string, text: string): void {
    const name = `${action}_${parts.length}`
    parts.push(`${name} AS ${text}`)
    done.push(`(SELECT count(*) FROM ${name})`)
  }
  /** New records without another between them, which one INSERT takes. */
  let rows: string[] = []
  function addRows(): void {
    if (rows.length === 0) return
    add(
      'created',
      `(
    INSERT INTO ${table} (${columns.join(', ')})
      VALUES ${rows.join(', ')}
      ON CONFLICT (kind, id) DO NOTHING RETURNING 1
  )`,
    )
    rows = []
  }
  for (const { version, cells } of steps) {
    if (cells !== undefined && version === 0) {
      rows.push(`(${values(cells).join(', ')})`)
      continue
    }
    addRows()
    const [kind, id] = [parameter('text'), parameter('text')]
    const isIt = `kind = ${kind} AND id = ${id} AND version = ${parameter('bigint')}`
    if (cells === undefined) {
      add('held', `MATERIALIZED (\n    SELECT 1 FROM ${table} WHERE ${isIt} FOR UPDATE\n  )`)
    } else {
      const set = values(cells, keyLength).map((value, i) => `${columns[keyLength + i]} = ${value}`)
      add(
        'replaced',
        `(\n    UPDATE ${table} SET ${set.join(', ')}\n      WHERE ${isIt} RETURNING 1\n  )`,
      )
    }
  }
  addRows()
  return `WITH ${parts.join(',\n  ')}
  /* Divides by zero when somebody else was first, so that nothing of this commit stays. */
  SELECT 1 / (CASE WHEN ${done.join(' + ')} = ${steps.length} THEN 1 ELSE 0 END) AS committed`
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

function compareKeys(
  one: Pick<VersionGuard, 'kind' | 'id'>,
  other: Pick<VersionGuard, 'kind' | 'id'>,
): number {
  const [left, right] = [`${one.kind} ${one.id}`, `${other.kind} ${other.id}`]
  if (left === right) return 0
  return left < right ? -1 : 1
}
