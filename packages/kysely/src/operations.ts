import type { Store } from 'open-payments-server'
import { pageOf, type Row, recordOf, recordsOf, removedOf } from '../../../adapters/sql/records.js'
import type { SqlStatement } from '../../../adapters/sql/statements.js'
import { type Client, onTables, type Result } from './client.js'
import type { Engine } from './engines.js'

/** Runs a statement. */
export type Run = (statement: SqlStatement) => Promise<Result>

export function runOn({ run }: Client, { parameter, isWithoutTables }: Engine): Run {
  return ({ text, values }) => onTables(isWithoutTables, () => run(text, values.map(parameter)))
}

/** Runs statements that must each find a row, until one does not. Resolves to that one, or to `undefined`. */
export async function missingOf(
  run: Run,
  { isDuplicate }: Engine,
  statements: readonly SqlStatement[],
): Promise<SqlStatement | undefined> {
  for (const statement of statements) {
    const found = await run(statement).then(
      (result) => result.found,
      (error) => {
        if (isDuplicate(error)) return 0
        throw error
      },
    )
    if (found !== 1) return statement
  }
  return undefined
}

/** @param alone runs statements in one transaction, without others between them. */
export function operations(
  run: Run,
  alone: <Found>(work: (run: Run) => Promise<Found>) => Promise<Found>,
  { statements, listName }: Engine,
): Omit<Store, 'commit'> {
  const rowsOf = async (statement: SqlStatement): Promise<readonly Row[]> =>
    (await run(statement)).rows
  return {
    async load(keys) {
      const [row] = await rowsOf(statements.load(keys))
      return recordsOf(row)
    },
    async list(query) {
      const name = await listName(query.list)
      return pageOf(query, await rowsOf(statements.list(query, name)))
    },
    async due(kind, namespace, before, limit) {
      return (await rowsOf(statements.due(kind, namespace, before, limit))).map(recordOf)
    },
    async remove(records) {
      const removals = statements.removals(records)
      const rows = await alone(async (run) => {
        const found: Row[] = []
        for (const { find, remove } of removals) {
          found.push(...(await run(find)).rows)
          await run(remove)
        }
        return found
      })
      return removedOf(records, rows)
    },
  }
}
