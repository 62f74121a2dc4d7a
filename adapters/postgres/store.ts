import type { RecordPage, Store, Stored } from '../../src/index.js'
import { isTransient, type PostgresClient, sqlState } from './driver.js'
import { checkedSchema, createStatements, isEmpty, lost, type Statements } from './statements.js'
import { type Run, storeInTransaction } from './transaction.js'

export interface PostgresStoreOptions {
  /**
   * The schema of the tables, which has to exist: lower-case letters, digits and underscores, at most 40.
   * Default: the first one of the connection's `search_path`.
   */
  readonly schema?: string
  /**
   * Whether statements are prepared by name. Default true; false for a pooler that hands each statement to
   * another connection, such as PgBouncer before 1.21.
   */
  readonly prepare?: boolean
}

export interface PostgresStore {
  /**
   * A store over a pool of connections, such as a `Pool` of `pg`, or over `fromPglite(database)`. Run
   * `migrate` first. Each operation is one statement, and so one round trip.
   *
   * Serialization failures and deadlocks are retried for up to 3 s, and then thrown. Everything else that
   * the driver throws is thrown as it is.
   */
  (database: PostgresClient, options?: PostgresStoreOptions): Store
  /**
   * A store inside a transaction that the host has begun on `client`, so that what the library writes is
   * committed, or rolled back, together with the host's own rows. Make one for each transaction, and give
   * it to `within` of a server; the transaction's isolation level has to be READ COMMITTED.
   *
   * Nothing is visible to others, or certain, before the host's COMMIT. Rejects with a `TransactionError`
   * when the transaction cannot go on: by code `ERR_RESTART_TRANSACTION` after a deadlock or serialization
   * failure, so that the host may run all of it again from BEGIN, else by `ERR_TRANSACTION_FAILED`.
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

function statementsOf({ schema, prepare = true }: PostgresStoreOptions): Statements {
  return createStatements(checkedSchema(schema), prepare)
}

/** As long as the library goes on deciding anew when a commit loses. */
const deadlineMs = 3_000
const pauseMaxMs = 64

async function retried<Result>(run: () => Promise<Result>): Promise<Result> {
  const startedAt = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!isTransient(error) || performance.now() - startedAt > deadlineMs) throw error
      // Those who collided must not meet again.
      const pauseMs = Math.random() * Math.min(pauseMaxMs, 2 ** attempt)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}
