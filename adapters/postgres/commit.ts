import type { RecordKind } from '../../src/entry-adapter.js'
import { type Cells, columns, keyLength, requiredColumns, typeOf } from '../sql/records.js'
import type { Step, Steps } from '../sql/statements.js'

/** The setting that contains the marks of a transaction, and that PostgreSQL forgets at its end. */
export const markSetting = 'open_payments.transaction'

/** The condition that the transaction has the mark in the parameter of this number. */
export function hasMark(parameter: number): string {
  return `strpos(current_setting('${markSetting}', true), $${parameter}::text) > 0`
}

/** Commits of at most this many records have a statement for each shape; longer ones, which writes share, have one. */
export const shapeLengthMax = 12

/**
 * Returns the cache key of a commit's SQL text: for each record, the operation and the columns that it sets.
 */
export function shapeOf({ existing, created }: Steps): string {
  return [...existing, ...created].map(signOf).join('')
}

/** Lists have two cells each and fill up from the first, `due_at` has one, so the count identifies them. */
function signOf({ kind, version, cells }: Step): string {
  if (cells === undefined) return 'h'
  const count = cells.filter((cell) => cell !== null).length - requiredColumns.length
  const signs = version === 0 ? 'ABCDEFGH' : movesAtOnce(kind) ? 'STUVWXYZ' : '01234567'
  return signs.charAt(count)
}

/**
 * The kind of which each change of a record's `dueAt` also changes `due_at`. For other records, `due_at` does not
 * change when they become due later or never, because an update that changes no indexed column writes no index. `due`
 * moves it when it finds the record. An event is usually replaced because it is due, so `due` would find it again
 * immediately.
 */
const movedAtOnce: RecordKind = 'event'

function movesAtOnce(kind: RecordKind): boolean {
  return kind === movedAtOnce
}

/** A step with the parameters of its statement. */
interface Place {
  readonly kind: string
  readonly id: string
  /** Absent if the record is created. */
  readonly version?: string
  /** The columns to write, each with its value; absent if the record is only locked. */
  readonly cells?: readonly (readonly [column: string, value: string])[]
}

/**
 * Returns one statement that writes everything and returns a row, or writes nothing and returns none.
 *
 * It first checks that no record to create exists, and locks the existing records at their expected versions,
 * each only if the step before it succeeded. PostgreSQL checks a version again after waiting for another
 * writer. The last of these steps decides: everything else is written only if it succeeded, and cannot fail
 * then, with one exception. If another transaction has created one of the records since the statement began,
 * the statement divides by zero, and PostgreSQL undoes all of it.
 *
 * All commits lock existing records in one order, and then create records in one order. So they may wait for
 * each other but form no cycle, except through a record that was created since one of the statements began.
 * PostgreSQL then ends one of them, and the store runs it again.
 *
 * Each value is a separate parameter: with arrays, PostgreSQL plans every commit again.
 *
 * @param isMarked whether the statement writes only in the transaction whose mark is its last parameter.
 */
export function commitText(table: string, steps: Steps, isMarked = false): string {
  const { existing, created } = placesOf(steps)
  const locked = existing.slice(0, -1)
  const [decider] = existing.length > 0 ? existing.slice(-1) : created
  const toCreate = created.filter((place) => place !== decider)
  const toReplace = locked.filter(({ cells }) => cells !== undefined)
  if (decider === undefined) throw new RangeError('an empty commit needs no statement')
  const marked = isMarked ? [hasMark(commitValues(steps).length + 1)] : []
  if (existing.length + created.length === 1) return takeText(table, decider, marked[0])

  const absent = toCreate.map(
    ({ kind, id }) => `NOT EXISTS (SELECT 1 FROM ${table} WHERE kind = ${kind} AND id = ${id})`,
  )
  const isHeld = locked.map((_, i) => `EXISTS (SELECT 1 FROM held_${i})`)
  const conditions = [[...marked, ...absent].join(' AND '), ...isHeld]
  const isDecided = 'EXISTS (SELECT 1 FROM decided)'
  const writes = [
    ...(toCreate.length > 0 ? [['created', createText(table, toCreate, isDecided)]] : []),
    ...toReplace.map((place, i) => [`replaced_${i}`, replaceText(table, place, isDecided)]),
  ] as const
  const parts = [
    ...locked.map((place, i) => [`held_${i}`, lockText(table, place, conditions[i])]),
    ['decided', takeText(table, decider, conditions.at(-1))],
    ...writes,
  ]
  const written = writes.map(([name]) => `(SELECT count(*) FROM ${name})`).join(' + ')
  const count = toCreate.length + toReplace.length
  return `WITH ${parts.map(([name, text]) => `${name} AS (\n    ${text}\n  )`).join(',\n  ')}
  /* Divides by zero if a record was created meanwhile, so that PostgreSQL undoes the whole commit. */
  SELECT ${count === 0 ? '1' : `1 / (CASE WHEN ${written} = ${count} THEN 1 ELSE 0 END)`} AS committed
    FROM decided`
}

function takeText(table: string, place: Place, condition?: string): string {
  if (place.cells === undefined) return lockText(table, place, condition)
  if (place.version === undefined) return createText(table, [place], condition)
  return replaceText(table, place, condition)
}

function lockText(table: string, place: Place, condition?: string): string {
  return `SELECT 1 FROM ${table} WHERE ${isAt(place, condition)} FOR UPDATE`
}

function replaceText(table: string, place: Place, condition?: string): string {
  const set = place.cells?.map(([column, value]) => `${column} = ${value}`)
  return `UPDATE ${table} SET ${set?.join(', ')}
      WHERE ${isAt(place, condition)} RETURNING 1`
}

function createText(table: string, places: readonly Place[], condition?: string): string {
  const rows = places.map(({ cells = [] }) => `(${cells.map(([, value]) => value).join(', ')})`)
  const values = `VALUES ${rows.join(', ')}`
  const from = condition ? `SELECT * FROM (${values}) AS new WHERE ${condition}` : values
  return `INSERT INTO ${table} (${columns.join(', ')})
      ${from}
      ON CONFLICT (kind, id) DO NOTHING RETURNING 1`
}

function isAt({ kind, id, version }: Place, condition?: string): string {
  const isIt = `kind = ${kind} AND id = ${id} AND version = ${version}`
  return condition ? `${isIt}\n      AND ${condition}` : isIt
}

/** Numbers the parameters of the steps, in the order of `commitValues`. */
function placesOf({ existing, created }: Steps): Record<keyof Steps, readonly Place[]> {
  let last = 0
  const parameter = (column: string) => `$${++last}::${typeOf(column)}`
  const cellsFrom = (from: number, cells: Cells) =>
    columns.slice(from).map((column, i) => {
      const isEmpty = cells[from + i] === null
      return [column, isEmpty ? `NULL::${typeOf(column)}` : parameter(column)] as const
    })
  return {
    existing: existing.map(({ kind, cells }) => {
      const place = {
        kind: parameter('kind'),
        id: parameter('id'),
        version: parameter('version'),
      }
      if (cells === undefined) return place
      const set = cellsFrom(keyLength, cells)
      return { ...place, cells: movesAtOnce(kind) ? set : set.map(keptWhenLater) }
    }),
    created: created.map(({ cells = [] }) => {
      const written = cellsFrom(0, cells)
      const [kind = '', id = ''] = written.map(([, value]) => value)
      return { kind, id, cells: written }
    }),
  }
}

/**
 * Keeps `due_at` if it would move to a later time. An empty `due_at` is set, because it has no earlier time to keep.
 */
function keptWhenLater([column, value]: readonly [string, string]) {
  const kept = value.startsWith('NULL') ? column : `LEAST(${column}, ${value})`
  return [column, column === 'due_at' ? kept : value] as const
}

export function commitValues({ existing, created }: Steps): unknown[] {
  const given = (cells: Cells = []) => cells.filter((cell) => cell !== null)
  return [
    ...existing.flatMap(({ kind, id, version, cells }) => {
      return [kind, id, version, ...given(cells?.slice(keyLength))]
    }),
    ...created.flatMap(({ cells }) => given(cells)),
  ]
}

/**
 * Returns one statement that does the same for any number of records, with an array for each column. It is short, so
 * that PostgreSQL plans a commit that many writes share in less time than it takes to carry it out.
 */
export function commitManyText(table: string, isMarked: boolean): string {
  const given = ['expected', ...columns]
  const typeIn = (column: string) => (column === 'expected' ? 'bigint' : typeOf(column))
  const arrays = given.map((column, i) => `$${i + 1}::${typeIn(column)}[]`)
  const mark = isMarked ? ` AND ${hasMark(given.length + 1)}` : ''
  const mayWrite = `NOT EXISTS (SELECT 1 FROM existing)${mark}`
  const isDecided = 'EXISTS (SELECT 1 FROM decided)'
  const isStored =
    'stored.kind = step.kind AND stored.id = step.id AND stored.version = step.expected'
  const laterOf = (column: string) =>
    `CASE WHEN step.kind = '${movedAtOnce}' THEN step.${column} ELSE LEAST(stored.${column}, step.${column}) END`
  const set = columns
    .slice(keyLength)
    .map((column) => `${column} = ${column === 'due_at' ? laterOf(column) : `step.${column}`}`)
  return `WITH step AS MATERIALIZED (
    SELECT * FROM unnest(${arrays.join(', ')}) WITH ORDINALITY
      AS step (${given.join(', ')}, place)
  ),
  existing AS MATERIALIZED (
    SELECT 1 FROM step JOIN ${table} AS stored USING (kind, id) WHERE step.expected = 0
  ),
  held AS MATERIALIZED (
    SELECT 1 FROM step JOIN ${table} AS stored ON ${isStored}
      WHERE step.expected > 0 AND ${mayWrite} ORDER BY step.place FOR UPDATE OF stored
  ),
  decided AS MATERIALIZED (
    SELECT 1 WHERE ${mayWrite}
      AND (SELECT count(*) FROM held) = (SELECT count(*) FROM step WHERE expected > 0)
  ),
  created AS (
    INSERT INTO ${table} (${columns.join(', ')})
      SELECT ${columns.join(', ')} FROM step WHERE expected = 0 AND ${isDecided} ORDER BY place
      ON CONFLICT (kind, id) DO NOTHING RETURNING 1
  ),
  replaced AS (
    UPDATE ${table} AS stored SET ${set.join(', ')} FROM step
      WHERE ${isStored} AND step.expected > 0 AND step.version IS NOT NULL AND ${isDecided} RETURNING 1
  )
  /* Divides by zero if a record was created meanwhile, so that PostgreSQL undoes the whole commit. */
  SELECT 1 / (CASE WHEN (SELECT count(*) FROM created) + (SELECT count(*) FROM replaced)
      = (SELECT count(*) FROM step WHERE version IS NOT NULL) THEN 1 ELSE 0 END) AS committed
    FROM decided`
}

/** Returns the arrays of its parameters. A record that is only locked has no version to write. */
export function commitManyValues({ existing, created }: Steps): unknown[] {
  const steps = [...existing, ...created]
  const cells = steps.map(({ kind, id, cells }): Cells => cells ?? [kind, id])
  return [
    steps.map(({ version }) => version),
    ...columns.map((_, i) => cells.map((each) => each[i] ?? null)),
  ]
}
