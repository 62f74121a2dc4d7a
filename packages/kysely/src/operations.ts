import type { Store } from 'open-payments-server'
import { pageOf, type Row, recordOf, recordsOf } from '../../../adapters/sql/records.js'
import {
  compareKeys,
  type SqlStatement,
  type Statements,
} from '../../../adapters/sql/statements.js'
import { type Client, onTables, type Result } from './client.js'
import type { Engine } from './engine.js'

/** Runs a statement. */
export type Run = (statement: SqlStatement) => Promise<Result>

export function runOn({ run }: Client, { text: textOf, parameter, isWithoutTables }: Engine): Run {
  return ({ text, values }) =>
    onTables(isWithoutTables, () => run(textOf(text), values.map(parameter)))
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

/** The records of one transaction, which keeps them locked until all of them are removed. */
const removedTogether = 100

/** Runs statements in one transaction, without others between them. */
export type Alone = <Found>(
  work: (run: Run, statements: Statements) => Promise<Found>,
) => Promise<Found>

export function operations(
  run: Run,
  alone: Alone,
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
    async due(...query) {
      return (await rowsOf(statements.due(...query))).map(recordOf)
    },
    async remove(records) {
      // In the order in which commits lock records.
      const sorted = [...records.entries()].toSorted(([, a], [, b]) => compareKeys(a, b))
      const removed = records.map(() => false)
      for (let from = 0; from < sorted.length; from += removedTogether) {
        const some = sorted.slice(from, from + removedTogether)
        const found = await alone(async (run, { remove }) => {
          const counts: number[] = []
          for (const [, record] of some) counts.push((await run(remove(record))).found)
          return counts
        })
        for (const [i, [place]] of some.entries()) removed[place] = found[i] === 1
      }
      return removed
    },
  }
}
