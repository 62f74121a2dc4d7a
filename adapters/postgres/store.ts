import { requireKnownOptions } from '../../src/entry-adapter.js'
import type { RecordPage, Store, Stored } from '../../src/index.js'
import { isTransient, type PostgresClient, sqlState } from './driver.js'
import { checkedSchema, createStatements, isEmpty, lost, type Statements } from './statements.js'
import { type Run, storeInTransaction } from './transaction.js'

export interface PostgresStoreOptions {
  /**
   * The schema of the tables, which must exist: at most 40 lower-case letters, digits and underscores.
   * Default: the first schema of the connection's `search_path`.
   */
  readonly schema?: string
  /**
   * Whether to prepare statements by name. Default true. Set it to false for a pooler that may run each
   * statement on another connection, such as PgBouncer before 1.21.
   */
  readonly prepare?: boolean
}

export interface PostgresStore {
  /**
   * Returns a store over a pool of connections, such as a `Pool` of `pg`, or over `fromPglite(database)`. Run
   * `migrate` first. Each operation is one statement and so one round trip.
   *
   * The store retries serialization failures and deadlocks for up to 3 s and then throws them. It rethrows
   * all other errors of the driver unchanged.
   *
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
}

export const postgresStore: PostgresStore = Object.assign(overPool, { inTransaction })

function overPool(database: PostgresClient, options: PostgresStoreOptions = {}): Store {
  const statements = statementsOf(options)
  const run: Run = async (statement) => {
    const { rows } = await retried(() => database.query(statement))
    return rows as readonly { value: string }[]
  }
  return {
    ...reads(statements, run),
    async commit(commit) {
      if (isEmpty(commit)) return true
      try {
        await run(statements.commit(commit))
        return true
      } catch (error) {
        if (sqlState(error) === lost) return false
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

function reads(statements: Statements, run: Run): Omit<Store, 'commit'> {
  return {
    async load(kind, id) {
      const [row] = await run(statements.load(kind, id))
      return row && recordOf(row)
    },
    async list(query): Promise<RecordPage> {
      const rows = await run(statements.list(query))
      const records = rows.slice(0, query.limit).map(recordOf)
      return {
        records: query.forward ? records : records.reverse(),
        more: rows.length > query.limit,
      }
    },
    async due(kind, namespace, before, limit) {
      return (await run(statements.due(kind, namespace, before, limit))).map(recordOf)
    },
    async remove(kind, id, version) {
      return (await run(statements.remove(kind, id, version))).length > 0
    },
  }
}

function recordOf({ value }: { readonly value: string }): Stored {
  return JSON.parse(value) as Stored
}

function statementsOf(options: PostgresStoreOptions): Statements {
  requireKnownOptions('', options, { schema: true, prepare: true })
  const { schema, prepare = true } = options
  return createStatements(checkedSchema(schema), prepare)
}

/** The same time for which the library retries a commit that loses. */
const deadlineMs = 3_000
const pauseMaxMs = 64

async function retried<Result>(run: () => Promise<Result>): Promise<Result> {
  const startedAt = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!isTransient(error) || performance.now() - startedAt > deadlineMs) throw error
      // Random pauses keep colliding commits from colliding again.
      const pauseMs = Math.random() * Math.min(pauseMaxMs, 2 ** attempt)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}
