import type { Commit, Instant, ListQuery, Stored } from '../../src/index.js'
import type { PostgresStatement } from './driver.js'

/** SQLSTATE of division by zero, by which a commit undoes itself. */
export const lost = '22012'

/** How many lists a record can be in: each has columns of its own, so that a commit writes one table. */
export const listsMax = 3

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

  function statement(name: string, text: string) {
    const prepared = prepare ? { name: `open_payments_${name}_${schema ?? ''}` } : {}
    return (...values: unknown[]): PostgresStatement => ({ ...prepared, text, values })
  }

  const load = statement('load', `SELECT value FROM ${table} WHERE kind = $1 AND id = $2`)
  const commit = statement('commit', commitText(table, false))
  const lockingCommit = statement('locking_commit', commitText(table, true))
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
    commit: (requested: Commit) =>
      takesSeveralLocks(requested)
        ? lockingCommit(...changeColumns(requested), ...lockColumns(requested))
        : commit(...changeColumns(requested)),
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

/** Which records a commit finds in the table and holds: with one alone, nobody can wait in a circle. */
function takesSeveralLocks({ changes, guards }: Commit): boolean {
  const replaced = changes.filter(({ expectedVersion }) => expectedVersion > 0)
  return guards.length > 0 || replaced.length > 1
}

/**
 * One statement that writes everything, or raises and so writes nothing. A record is replaced only where its
 * version is the expected one, which PostgreSQL looks at again after it has waited for another writer, and
 * created only where there is none. With `locking`, the records it depends on are locked first, in one order
 * for everybody: guards cannot change under it then, and commits never wait for each other in a circle.
 */
function commitText(table: string, locking: boolean): string {
  const columns = ['kind', 'id', 'version', 'value', 'due_at', ...listColumns()]
  const types = ['text', 'text', 'bigint', 'text', 'bigint', ...listTypes()]
  const given = [...columns, 'expected']
  const arrays = [...types, 'bigint'].map((type, i) => `$${i + 1}::${type}[]`)
  const next = given.length + 1
  const input = `unnest(${arrays.join(', ')}) AS given (${given.join(', ')})`
  const assigned = columns.slice(2).map((column) => `${column} = given.${column}`)
  const locked = `locked AS MATERIALIZED (
    SELECT held.version = needed.version AS holds
      FROM unnest($${next}::text[], $${next + 1}::text[], $${next + 2}::bigint[])
        AS needed (kind, id, version)
      JOIN ${table} AS held ON held.kind = needed.kind AND held.id = needed.id
      ORDER BY held.kind, held.id
      FOR UPDATE OF held
  ),`
  const allLocked = `(SELECT count(*) FROM locked WHERE holds) = cardinality($${next}::text[]) AND`
  return `WITH ${locking ? locked : ''}
  replaced AS (
    UPDATE ${table} AS stored SET ${assigned.join(', ')}
      FROM ${input}
      WHERE given.expected > 0
        AND stored.kind = given.kind AND stored.id = given.id AND stored.version = given.expected
      RETURNING 1
  ),
  created AS (
    INSERT INTO ${table} (${columns.join(', ')})
      SELECT ${columns.map((column) => `given.${column}`).join(', ')} FROM ${input}
      WHERE given.expected = 0
      ON CONFLICT (kind, id) DO NOTHING
      RETURNING 1
  )
  /* Divides by zero when somebody else was first, so that nothing of this commit stays. */
  SELECT 1 / (CASE WHEN ${locking ? allLocked : ''}
    (SELECT count(*) FROM replaced) + (SELECT count(*) FROM created) = cardinality($1::text[])
    THEN 1 ELSE 0 END) AS committed`
}

/** A page: each of the three lists a record can be in has an index, and gives at most a page. */
function listText(table: string, beyond: '>' | '<', order: 'ASC' | 'DESC'): string {
  const pages = numbers().map(
    (n) => `(SELECT id, list_${n}_at AS at, value FROM ${table}
      WHERE kind = $1 AND list_${n} = $2 AND (list_${n}_at, id) ${beyond} ($3::bigint, $4)
      ORDER BY list_${n}_at ${order}, id ${order} LIMIT $5)`,
  )
  return `SELECT value FROM (${pages.join(' UNION ALL ')}) AS found
    ORDER BY at ${order}, id ${order} LIMIT $5`
}

function numbers(): number[] {
  return Array.from({ length: listsMax }, (_, i) => i + 1)
}

function listColumns(): string[] {
  return numbers().flatMap((n) => [`list_${n}`, `list_${n}_at`])
}

function listTypes(): string[] {
  return numbers().flatMap(() => ['text', 'bigint'])
}

function changeColumns({ changes }: Commit): unknown[][] {
  const sorted = changes.toSorted((a, b) => compareKeys([a.kind, a.next.id], [b.kind, b.next.id]))
  const rows = sorted.map(({ kind, next, expectedVersion }) => [
    kind,
    next.id,
    next.version,
    JSON.stringify(next),
    next.dueAt ?? null,
    ...listCells(next),
    expectedVersion,
  ])
  const width = 6 + listsMax * 2
  return Array.from({ length: width }, (_, column) => rows.map((row) => row[column]))
}

function listCells({ lists = [] }: Stored): unknown[] {
  if (lists.length > listsMax) {
    throw new RangeError(`a record can be in ${listsMax} lists, not in ${lists.length}`)
  }
  return numbers().flatMap((n) => [lists[n - 1]?.by ?? null, lists[n - 1]?.at ?? null])
}

function lockColumns({ changes, guards }: Commit): unknown[][] {
  const needed: readonly (readonly [string, string, number])[] = [
    ...guards.map(({ kind, id, version }) => [kind, id, version] as const),
    ...changes
      .filter(({ expectedVersion }) => expectedVersion > 0)
      .map(({ kind, next, expectedVersion }) => [kind, next.id, expectedVersion] as const),
  ]
  return [0, 1, 2].map((column) => needed.map((row) => row[column]))
}

function compareKeys(a: readonly [string, string], b: readonly [string, string]): number {
  const [left, right] = [a.join(' '), b.join(' ')]
  if (left === right) return 0
  return left < right ? -1 : 1
}
