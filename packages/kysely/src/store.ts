import type { Kysely, Transaction } from 'kysely'
import type { Store } from 'open-payments-server'
import { requireKnownOptions } from 'open-payments-server/adapter'
import { isTransient } from '../../../adapters/postgres/driver.js'
import { postgresStore } from '../../../adapters/postgres/store.js'
import {
  requireOpen as requireOpenOnPostgres,
  whileOpen as whileOpenOnPostgres,
} from '../../../adapters/postgres/transaction.js'
import { stepsOf } from '../../../adapters/sql/statements.js'
import {
  hostTransaction,
  retried,
  type TransactionResult,
  whileWorking,
} from '../../../adapters/sql/transactions.js'
import {
  type Client,
  clientOf,
  onConnectionOf,
  onOneConnection,
  postgresClientOf,
} from './client.js'
import type { Engine } from './engine.js'
import { engineOf, type KyselyDialect, namedSteps, requireDialect } from './engines.js'
import { type Alone, missingOf, operations, type Run, runOn } from './operations.js'
import { type Held, requireOpen, storeInTransaction } from './transaction.js'

/** Options of `kyselyStore`. */
export interface KyselyStoreOptions {
  /**
   * The SQL that the database understands: `mysql` also for MariaDB; `portable` for other databases that speak the
   * protocol of PostgreSQL, such as CockroachDB.
   */
  readonly dialect: KyselyDialect
}

/** The type of `kyselyStore`: a function, with the transactions of a host. */
export interface KyselyStore {
  /**
   * Returns a store over a Kysely instance. Run `migrate` first. With the dialect `postgres`, an operation is one
   * statement, and the tables are the same as for `postgresStore`. With the others, a commit is a transaction of
   * several statements on one connection.
   *
   * The store retries deadlocks and other conflicts for up to 3 s. After that, a commit resolves to false, and other
   * operations reject with the error of the driver.
   *
   * @throws {InvalidInputError} for an unknown dialect or option.
   */
  <Database>(db: Kysely<Database>, options: KyselyStoreOptions): Store
  /**
   * Returns a store inside a transaction of the host, so that the library's writes commit or roll back together with
   * the host's own rows. Create one for each transaction and pass it to `within` of a server. With `postgres` and
   * `mysql` the isolation level must be READ COMMITTED. With `portable`, the database must have savepoints.
   *
   * Rejects with a `TransactionError` if the transaction cannot continue: with code `ERR_RESTART_TRANSACTION` after
   * a conflict, so that the host can restart it, otherwise with `ERR_TRANSACTION_FAILED`.
   */
  inTransaction<Database>(trx: Transaction<Database>, options: KyselyStoreOptions): Store
  /**
   * Runs a transaction of the host with the library's writes in it: pass `store` to `within` of a server. Commits it if
   * the result is `ok`, and rolls it back if not, or if `run` rejects. After a deadlock, another conflict or a
   * `ContentionError` it runs the whole transaction again, at most five times in all, so `run` must have no effects
   * outside the transaction.
   *
   * @throws the error of `run` or of Kysely. If COMMIT itself fails, its outcome is unknown: run the transaction again,
   *   with calls that may be repeated.
   * @throws {TransactionError} with code `ERR_TRANSACTION_FAILED` if the database has rolled the transaction back,
   *   because a statement failed and `run` caught its error.
   */
  transaction<Database, Result extends TransactionResult>(
    db: Kysely<Database>,
    run: (trx: Transaction<Database>, store: Store) => Promise<Result>,
    options: KyselyStoreOptions,
  ): Promise<Result>
}

/**
 * Creates stores over Kysely: over an instance, inside a transaction of the host, or with `transaction` around one.
 *
 * @example
 * ```ts
 * import { Kysely, PostgresDialect } from 'kysely'
 * import { kyselyStore } from 'open-payments-server-kysely'
 *
 * const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
 * const store = kyselyStore(db, { dialect: 'postgres' })
 * ```
 */
export const kyselyStore: KyselyStore = Object.assign(overPool, {
  inTransaction,
  transaction: inHostTransaction,
})

function overPool<Database>(db: Kysely<Database>, options: KyselyStoreOptions): Store {
  const dialect = dialectOf(options)
  if (dialect === 'postgres') return postgresStore(postgresClientOf(db), { prepare: false })
  const engine = engineOf(dialect)
  const runPlainly = runOn(clientOf(db), engine)
  const run: Run = (statement) => retried(() => runPlainly(statement), engine.isTransient)
  const alone: Alone = (work) =>
    retried(
      () =>
        onOneConnection(db, (client) =>
          transact(client, engine, (inside) => work(inside, engine.statements)),
        ),
      engine.isTransient,
    )
  return {
    ...operations(run, alone, engine),
    async commit(requested) {
      // The caller may change the records as soon as this function waits.
      const steps = await namedSteps(engine, stepsOf(requested))
      const statements = engine.statements.commit(steps)
      try {
        return await alone(
          async (inside) => (await missingOf(inside, engine, statements)) === undefined,
        )
      } catch (error) {
        if (engine.isTransient(error)) return false
        throw error
      }
    },
  }
}

function inTransaction<Database>(trx: Transaction<Database>, options: KyselyStoreOptions): Store {
  const dialect = dialectOf(options)
  if (dialect === 'postgres') {
    return postgresStore.inTransaction(postgresClientOf(trx), { prepare: false })
  }
  const client: Client = {
    run: (...given) => onConnectionOf(trx, (connection) => connection.run(...given)),
  }
  return storeOn(client, engineOf(dialect), (work) => onConnectionOf(trx, work))
}

function storeOn(client: Client, engine: Engine, held?: Held): Store {
  const { run, alone, commit } = storeInTransaction(client, engine, held)
  return { ...operations(run, alone, engine), commit }
}

function inHostTransaction<Database, Result extends TransactionResult>(
  db: Kysely<Database>,
  run: (trx: Transaction<Database>, store: Store) => Promise<Result>,
  options: KyselyStoreOptions,
): Promise<Result> {
  const dialect = dialectOf(options)
  const isolation = dialect === 'postgres' ? 'read committed' : engineOf(dialect).isolation
  const begin = <Result>(work: (trx: Transaction<Database>) => Promise<Result>) => {
    const begun = db.transaction()
    return (isolation === undefined ? begun : begun.setIsolationLevel(isolation)).execute(work)
  }
  if (dialect === 'postgres') {
    return hostTransaction<Transaction<Database>, Result>({
      begin,
      run: (trx) =>
        whileOpenOnPostgres(postgresClientOf(trx), (client) =>
          run(trx, postgresStore.inTransaction(client, { prepare: false })),
        ),
      requireOpen: (trx) => requireOpenOnPostgres(postgresClientOf(trx)),
      isTransient,
    })
  }
  const engine = engineOf(dialect)
  return hostTransaction<Transaction<Database>, Result>({
    begin,
    run: (trx) =>
      whileWorking((pass) => {
        const client = clientOf(trx)
        const passed: Client = { run: (...given) => pass(() => client.run(...given)) }
        return run(trx, storeOn(passed, engine))
      }),
    requireOpen: (trx) => requireOpen(clientOf(trx), engine),
    isTransient: engine.isTransient,
  })
}

function dialectOf(options: KyselyStoreOptions): KyselyDialect {
  requireKnownOptions('', options, { dialect: true })
  requireDialect(options.dialect)
  return options.dialect
}

/** Runs work in a transaction, which is rolled back if the work rejects or resolves to false. */
async function transact<Result>(
  client: Client,
  engine: Engine,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  for (const text of engine.begin) await client.run(text)
  try {
    const result = await work(runOn(client, engine))
    await client.run(result === false ? 'ROLLBACK' : 'COMMIT')
    return result
  } catch (error) {
    // A connection that is broken rolls back by itself.
    await client.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}
