import type { Store } from 'open-payments-server'
import { pageOf, type Row, recordOf } from '../../../adapters/sql/records.js'
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

export function operations(run: Run, { statements, listName }: Engine): Omit<Store, 'commit'> {
  const rowsOf = async (statement: SqlStatement): Promise<readonly Row[]> =>
    (await run(statement)).rows
  return {
    async load(kind, id) {
      const [row] = await rowsOf(statements.load(kind, id))
      return row && recordOf(row)
    },
    async list(query) {
      const name = await listName(query.list)
      return pageOf(query, await rowsOf(statements.list(query, name)))
    },
    async due(kind, namespace, before, limit) {
      return (await rowsOf(statements.due(kind, namespace, before, limit))).map(recordOf)
    },
    async remove(kind, id, version) {
      return (await run(statements.remove(kind, id, version))).found > 0
    },
  }
}
