import { PGlite, type Transaction } from '@electric-sql/pglite'
import type { Database, Row, Sql } from 'create-open-payments-server/wallet/sql'
import { checkTables, fromPglite, migrate, postgresStore } from 'open-payments-server/postgres'

/** Opens an embedded PostgreSQL, in memory or in a directory, for one process: nothing to install for a first try. */
export async function openEmbedded(directory?: string): Promise<Database> {
  return databaseOn(await PGlite.create(directory === undefined ? {} : { dataDir: directory }))
}

/** Returns the database of a wallet on an open PGlite. */
export function databaseOn(database: PGlite): Database {
  const transactions = {
    transaction: <Result>(work: (inside: Transaction) => Promise<Result>) =>
      database.transaction(work),
    query: async (inside: Transaction, text: string, values: readonly unknown[]) =>
      (await inside.query<Row>(text, [...values])).rows,
  }
  return {
    store: postgresStore(fromPglite(database)),
    sql: sqlOn(database),
    tableOptions: '',
    migrateRecords: () => migrate(fromPglite(database)),
    async checkRecords() {
      const check = await checkTables(fromPglite(database))
      return check.ok ? undefined : check.problem
    },
    // Other work waits until the transaction ends: never wait for a client inside of one.
    async transaction(work) {
      const { result } = await postgresStore.transaction(transactions, async (inside, store) => {
        return { ok: true, result: await work(sqlOn(inside), store) }
      })
      return result
    },
    close: () => database.close(),
  }
}

function sqlOn(client: Pick<Transaction, 'query'>): Sql {
  return async (statement, ...values) => {
    let count = 0
    const numbered = statement.replace(/\?/g, () => `$${++count}`)
    return (await client.query<Row>(numbered, [...values])).rows
  }
}
