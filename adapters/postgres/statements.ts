import type { Commit, ListQuery, RecordKey, Stored, VersionGuard } from '../../src/entry-adapter.js'
import { type Instant, InvalidInputError } from '../../src/index.js'
import { listNumbers } from '../sql/records.js'
import { compareKeys, stepsOf } from '../sql/statements.js'
import {
  commitManyText,
  commitManyValues,
  commitText,
  commitValues,
  hasMark,
  markSetting,
  shapeLengthMax,
  shapeOf,
} from './commit.js'
import type { PostgresStatement } from './driver.js'

/**
 * Precedes statements that read. A standby may not have the last commits yet, and pgpool-II, which spreads SELECTs over
 * standbys, sends these to the primary.
 */
export const onPrimary = '/*NO LOAD BALANCE*/ '

const before = Number.MIN_SAFE_INTEGER
const after = Number.MAX_SAFE_INTEGER

export type Statements = ReturnType<typeof createStatements>

/**
 * The statements of the store, over one table. They avoid what a cluster that divides the table executes differently on
 * each node, or not at all:
 *
 * - no advisory locks, sequences, or keys and times made by the server;
 * - no triggers, no PL/pgSQL, no `ctid` or `xmin`;
 * - no statement over several tables, which a single shard could not execute;
 * - `COLLATE "C"` in the table and nowhere else, because the byte order of ids must not depend on the locale;
 * - JSON as text: `jsonb` does not preserve numbers and the order of keys.
 *
 * @param mark Statements with a mark write only in the transaction that has it.
 */
export function createStatements(schema: string | undefined, prepare: boolean, mark?: string) {
  const table = tableIn(schema, 'open_payments_records')

  const preparedAs = (prefix: string, more: readonly unknown[]): Prepare => {
    return (name, text) => {
      const isPrepared = prepare && name !== undefined
      const prepared = isPrepared ? { name: `${prefix}_${name}_${schema ?? ''}` } : {}
      return (...values) => ({ text, values: [...values, ...more], ...prepared })
    }
  }
  const statement = preparedAs('op', [])
  const writing = mark === undefined ? statement : preparedAs('ot', [mark])
  const isMarked = mark !== undefined

  const forward = statement('forward', onPrimary + listText(table, '>', 'ASC'))
  const backward = statement('backward', onPrimary + listText(table, '<', 'DESC'))
  const due = statement(
    'due',
    `${onPrimary}SELECT value, due_at FROM ${table}
      WHERE kind = $1 AND left(id, 8) = $2 AND due_at BETWEEN $5 AND $3 ORDER BY due_at, id LIMIT $4`,
  )
  const move = writing('move', moveText(table, isMarked))
  const remove = writing('remove', removeText(table, isMarked))

  return {
    schema,
    /** Describes the transaction, and sets its mark. A transaction may have several. */
    begun: { text: begunText, values: [mark] },
    load: loadStatements(table, statement),
    commit: commitStatements(table, writing, isMarked),
    list({ kind, list: wanted, cursor, forward: isForward, limit }: ListQuery) {
      const { at, id } = cursor ?? (isForward ? { at: before, id: '' } : { at: after, id: '~' })
      return (isForward ? forward : backward)(kind, wanted, at, id, limit + 1)
    },
    due: (
      kind: string,
      namespace: string,
      until: Instant,
      limit: number,
      from: Instant = Number.MIN_SAFE_INTEGER,
    ) => due(kind, namespace, until, limit, from),
    /** Moves the indexed due times of records to their own, unless they have changed. */
    move(kind: string, records: readonly Stored[]) {
      const ids = records.map(({ id }) => id)
      const versions = records.map(({ version }) => version)
      return move(
        kind,
        ids,
        versions,
        records.map(({ dueAt = null }) => dueAt),
      )
    },
    remove(records: readonly VersionGuard[]) {
      const sorted = records.toSorted(compareKeys)
      return remove(
        sorted.map(({ kind }) => kind),
        sorted.map(({ id }) => id),
        sorted.map(({ version }) => version),
      )
    },
  }
}

const begunText = `${onPrimary}SELECT current_setting('transaction_isolation') AS isolation, current_schema() AS schema,
    set_config('${markSetting}', concat(current_setting('${markSetting}', true), $1::text), true)`

/** Returns the statement for values, prepared under a name if there is one. */
type Prepare = (
  name: string | undefined,
  text: string,
) => (...values: unknown[]) => PostgresStatement

/** The maximum number of keys for which there is a statement of its own. */
const separateKeysMax = 8

/**
 * Returns the statement whose result has a text or null for each key, in their order: in the columns of one row, or
 * in a row for each key. A few keys are separate parameters, because PostgreSQL may plan a statement with arrays again
 * each time. Each key has a query of its own, so that every plan uses the primary key, even on an empty table.
 */
function loadStatements(table: string, statement: Prepare) {
  const one = (kind: string, id: string) =>
    `SELECT value FROM ${table} AS stored WHERE stored.kind = ${kind} AND stored.id = ${id}`
  const separate = Array.from({ length: separateKeysMax }, (_, last) => {
    const numbers = Array.from({ length: last + 1 }, (_, i) => i)
    const values = numbers.map((i) => `(${one(`$${2 * i + 1}`, `$${2 * i + 2}`)}) AS value_${i}`)
    return statement(`load_${last + 1}`, `${onPrimary}SELECT ${values.join(',\n    ')}`)
  })
  const many = statement(
    'load_many',
    `${onPrimary}SELECT (${one('key.kind', 'key.id')}) AS value
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS key (kind, id, place) ORDER BY place`,
  )
  return (keys: readonly RecordKey[]): PostgresStatement => {
    const few = separate[keys.length - 1]
    if (few !== undefined) return few(...keys.flatMap(({ kind, id }) => [kind, id]))
    return many(
      keys.map(({ kind }) => kind),
      keys.map(({ id }) => id),
    )
  }
}

/** Keeps one text for each shape of a short commit; few shapes occur. An empty commit has no statement. */
function commitStatements(table: string, statement: Prepare, isMarked: boolean) {
  const commits = new Map<string, ReturnType<Prepare>>()
  const many = statement('commit_many', commitManyText(table, isMarked))
  return (requested: Commit): PostgresStatement => {
    const steps = stepsOf(requested)
    const shape = shapeOf(steps)
    if (shape.length > shapeLengthMax) return many(...commitManyValues(steps))
    const known =
      commits.get(shape) ?? statement(`commit_${shape}`, commitText(table, steps, isMarked))
    commits.set(shape, known)
    return known(...commitValues(steps))
  }
}

export function checkedSchema(schema: string | undefined): string | undefined {
  if (schema === undefined || /^[a-z_][a-z0-9_]{0,39}$/.test(schema)) return schema
  throw new InvalidInputError(
    'schema',
    'must be at most 40 lower-case letters, digits and underscores',
  )
}

export function tableIn(schema: string | undefined, table: string): string {
  return schema === undefined ? table : `"${schema}".${table}`
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

/** Returns the statement that moves due times. It locks the records in the same order as a commit. */
function moveText(table: string, isMarked: boolean): string {
  return `WITH moved AS (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS moved (id, version, due_at)
  ),
  held AS MATERIALIZED (
    SELECT stored.id FROM ${table} AS stored
      JOIN moved ON moved.id = stored.id AND moved.version = stored.version
      WHERE stored.kind = $1${isMarked ? ` AND ${hasMark(5)}` : ''} ORDER BY stored.id FOR UPDATE OF stored
  )
  UPDATE ${table} AS stored SET due_at = moved.due_at FROM moved
    WHERE stored.kind = $1 AND stored.id = moved.id AND stored.version = moved.version
      AND moved.id IN (SELECT id FROM held)`
}

/** Returns the statement that removes records at their versions. It locks them in the same order as a commit. */
function removeText(table: string, isMarked: boolean): string {
  return `WITH removed AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY
      AS removed (kind, id, version, place)
  ),
  held AS MATERIALIZED (
    SELECT stored.kind, stored.id FROM removed JOIN ${table} AS stored USING (kind, id, version)
      ${isMarked ? `WHERE ${hasMark(4)} ` : ''}ORDER BY removed.place FOR UPDATE OF stored
  )
  DELETE FROM ${table} AS stored USING held WHERE stored.kind = held.kind AND stored.id = held.id
    RETURNING stored.kind, stored.id`
}

/** Returns whether a commit is empty and so takes effect without a statement. */
export function isEmpty({ changes, guards }: Commit): boolean {
  return changes.length === 0 && guards.length === 0
}
