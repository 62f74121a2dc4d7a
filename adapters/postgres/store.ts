import { requireKnownOptions } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import { hostTransaction, type TransactionResult } from '../sql/host-transaction.js'
import { retried } from '../sql/retried.js'
import { pageOf, recordOf } from '../sql/rows.js'
import {
  isLost,
  isTransient,
  type PostgresClient,
  type PostgresPoolClient,
  type PostgresRow,
  type PostgresStatement,
  queryOn,
} from './driver.js'
import {
  type HostDatabase,
  hostTransactionsOf,
  type PostgresTransactions,
} from './host-transaction.js'
import { checkedSchema, createStatements, isEmpty, type Statements } from './statements.js'
import { type Run, storeInTransaction } from './transaction.js'

export interface PostgresStoreOptions {
  /**
   * The schema of the tables, which must exist: at most 40 lower-case letters, digits and underscores.
   * Default: the first schema of the connection's `search_path`.
   */
  readonly schema?: string
  /**
   * Whether to prepare statements by name. Default true. Set it to false for a pooler that may run each
   * statement on another connection, such as PgBouncer in transaction mode with `max_prepared_statements = 0`,
   * or before version 1.21. Otherwise operations reject with a `PreparedStatementError`.
   */
  readonly prepare?: boolean
}

export interface PostgresStore {
  /**
   * Returns a store over a pool of connections, such as a `Pool` of `pg`, or over `fromPglite(database)`. Run
   * `migrate` first. Each operation is one statement and so one round trip.
   *
   * The store retries serialization failures and deadlocks for up to 3 s. After that, a commit resolves to
   * false, and other operations throw the error. It rethrows all other errors of the driver unchanged.
   *
   * @throws {PreparedStatementError} from its operations behind a pooler that needs `prepare: false`.
   * @throws {OptionError} for an invalid schema and for an unknown option.
   */
  (database: PostgresClient, options?: PostgresStoreOptions): Store
  /**
   * Returns a store inside a transaction that the host has begun on `client`, so that the library's writes
   * commit or roll back together with the host's own rows. Create one for each transaction and pass it to
   * `within` of a server. The isolation level must be READ COMMITTED.
   *
   * No write is visible to others, or certain, before the host's COMMIT. Rejects with a `TransactionError` if
   * the transaction cannot continue: with code `ERR_RESTART_TRANSACTION` after a deadlock or serialization
   * failure, so that the host can restart it from BEGIN, otherwise with `ERR_TRANSACTION_FAILED`.
   */
  inTransaction(client: PostgresClient, options?: PostgresStoreOptions): Store
  /**
   * Runs a transaction of the host on a connection of its own, with the library's writes in it: pass `store` to
   * `within` of a server. Commits it if the result is `ok`, and rolls it back if not, or if `run` rejects. After a
   * deadlock, a serialization failure or a `ContentionError` it runs the whole transaction again, at most five times in
   * all, so `run` must have no effects outside the transaction.
   *
   * @param pool a `Pool` of `pg`, or another object whose `connect` resolves to a connection.
   * @throws the error of `run` or of the driver. If COMMIT itself fails, its outcome is unknown: run the transaction
   *   again, with calls that may be repeated.
   */
  transaction<Client extends PostgresPoolClient, Result extends TransactionResult>(
    pool: { connect(): Promise<Client> },
    run: (client: Client, store: Store) => Promise<Result>,
    options?: PostgresStoreOptions,
  ): Promise<Result>
  /**
   * Does the same in a transaction of a query builder or an ORM, which `run` gets in place of a connection.
   *
   * @throws the error of `run` or of the query builder. If its COMMIT fails, the outcome is unknown, as above.
   */
  transaction<Transaction, Result extends TransactionResult>(
    transactions: PostgresTransactions<Transaction>,
    run: (transaction: Transaction, store: Store) => Promise<Result>,
    options?: PostgresStoreOptions,
  ): Promise<Result>
}

export const postgresStore: PostgresStore = Object.assign(overPool, {
  inTransaction,
  transaction: inHostTransaction,
})

function overPool(database: PostgresClient, options: PostgresStoreOptions = {}): Store {
  const statements = statementsOf(options)
  const run = (statement: PostgresStatement) =>
    retried(() => queryOn(database, statement), isTransient)
  return {
    ...reads(statements, run),
    async commit(commit) {
      if (isEmpty(commit)) return true
      try {
        return (await run(statements.commit(commit))).length > 0
      } catch (error) {
        // The server has undone the commit, so that its outcome is known.
        if (isLost(error) || isTransient(error)) return false
        throw error
      }
    },
  }
}

function inTransaction(client: PostgresClient, options: PostgresStoreOptions = {}): Store {
  const statements = statementsOf(options)
  const { run, commit } = storeInTransaction(client, statements)
  return { ...reads(statements, run), commit }
}

function inHostTransaction<Transaction, Result extends TransactionResult>(
  database: HostDatabase<Transaction>,
  run: (transaction: Transaction, store: Store) => Promise<Result>,
  options?: PostgresStoreOptions,
): Promise<Result> {
  const { begin, clientOf, isTransient } = hostTransactionsOf(database)
  return hostTransaction(
    begin,
    (transaction) => run(transaction, inTransaction(clientOf(transaction), options)),
    isTransient,
  )
}

function reads(statements: Statements, run: Run): Omit<Store, 'commit'> {
  return {
    async load(kind, id) {
      const [row] = await run(statements.load(kind, id))
      return row && recordOf(row)
    },
    async loadAll(keys) {
      const found = new Map<number, PostgresRow>()
      for (const row of await run(statements.loadAll(keys))) found.set(Number(row['place']), row)
      return keys.map((_, place) => {
        const row = found.get(place)
        return row && recordOf(row)
      })
    },
    async list(query) {
      return pageOf(query, await run(statements.list(query)))
    },
    async due(kind, namespace, before, limit) {
      for (;;) {
        const rows = await run(statements.due(kind, namespace, before, limit))
        const records = rows.map(recordOf)
        // A commit does not move the indexed time of a record that becomes due later, so `due` moves it.
        const moved = records.filter(({ dueAt }, i) => dueAt !== Number(rows[i]?.['due_at']))
        if (moved.length === 0) return records
        await run(statements.move(kind, moved))
      }
    },
    async remove(kind, id, version) {
      return (await run(statements.remove(kind, id, version))).length > 0
    },
  }
}

function statementsOf(options: PostgresStoreOptions): Statements {
  requireKnownOptions('', options, { schema: true, prepare: true })
  const { schema, prepare = true } = options
  return createStatements(checkedSchema(schema), prepare)
}
