import type { CompiledQuery, Kysely, Transaction } from 'kysely'
import {
  isWithoutTables,
  type PostgresClient,
  type PostgresDatabase,
} from '../../../adapters/postgres/driver.js'
import type { Row } from '../../../adapters/sql/records.js'
import { TablesMissingError } from '../../../adapters/sql/versions.js'

export interface Result {
  readonly rows: readonly Row[]
  /** The number of rows that the statement wrote, or returned. */
  readonly found: number
}

/** A connection, a pool of them, or a transaction. */
export interface Client {
  run(text: string, values?: readonly unknown[]): Promise<Result>
}

/** Returns a client without the host's plugins, which may rename columns. */
export function clientOf<Database>(db: Kysely<Database>): Client {
  const plain = db.withoutPlugins()
  return {
    async run(text, values = []) {
      const { rows, numAffectedRows } = await plain.executeQuery(compiled(text, values))
      return { rows, found: Number(numAffectedRows ?? rows.length) }
    },
  }
}

function compiled(sql: string, parameters: readonly unknown[]): CompiledQuery<Row> {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] } as const
  return { sql, parameters, query, queryId: { queryId: 'open-payments' } }
}

/**
 * Runs work on the connection of a transaction. Kysely refuses each statement once it has rolled back, also those that
 * would end what the library has begun since.
 */
export function onConnectionOf<Database, Result>(
  trx: Transaction<Database>,
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  return trx.getExecutor().provideConnection((connection) =>
    work({
      async run(text, values = []) {
        const { rows, numAffectedRows } = await connection.executeQuery<Row>(compiled(text, values))
        return { rows, found: Number(numAffectedRows ?? rows.length) }
      },
    }),
  )
}

/** Runs work on one connection. */
export function onOneConnection<Database, Result>(
  db: Kysely<Database>,
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  return db.connection().execute((connection) => work(clientOf(connection)))
}

/** Returns the client of `postgresStore`. */
export function postgresClientOf<Database>(db: Kysely<Database>): PostgresClient {
  const client = clientOf(db)
  return {
    query: ({ text, values }) => onTables(isWithoutTables, () => client.run(text, values)),
  }
}

/** Returns the database of `migrate` for PostgreSQL. */
export function postgresDatabaseOf<Database>(db: Kysely<Database>): PostgresDatabase {
  return {
    ...postgresClientOf(db),
    transaction: (run) =>
      db
        .transaction()
        .setIsolationLevel('read committed')
        .execute((trx) => run(postgresClientOf(trx))),
  }
}

/** Runs a statement. If its table does not exist, rejects with an error that says what creates the tables. */
export async function onTables<Result>(
  isWithoutTables: (error: unknown) => boolean,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (!isWithoutTables(error)) throw error
    throw new TablesMissingError('open-payments-server-kysely', 'migrate(db, { dialect })', error)
  }
}
