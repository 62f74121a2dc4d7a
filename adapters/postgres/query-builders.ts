import { InvalidInputError, TransactionError } from '../../src/index.js'
import type { PostgresRow } from './driver.js'
import type { PostgresTransactions } from './host-transaction.js'

/** The part of a database of Drizzle that the library uses. */
export interface DrizzleDatabase<Transaction> {
  transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    options?: { isolationLevel?: 'read committed' },
  ): Promise<Result>
}

/** The `sql` of `drizzle-orm`. */
export interface DrizzleSql {
  raw(text: string): unknown
  param(value: unknown): unknown
  join(parts: unknown[]): unknown
}

/**
 * Lets `postgresStore.transaction` run transactions of Drizzle.
 *
 * @param sql the `sql` of `drizzle-orm`.
 * @throws {InvalidInputError} for a transaction: it commits with the outer one, so `ok` would not be certain.
 *
 * @example
 * ```ts
 * import { fromDrizzle, postgresStore } from 'open-payments-server/postgres'
 *
 * const funds = { transferId: 'rail-1', amount: { value: '100', assetCode: 'USD', assetScale: 2 } }
 * await postgresStore.transaction(fromDrizzle(drizzle, sql), async (tx, store) => {
 *   return wallet.resources.within(store).incomingPayments.receive('payment-1', funds)
 * })
 * ```
 */
export function fromDrizzle<Transaction>(
  db: DrizzleDatabase<Transaction>,
  sql: DrizzleSql,
): PostgresTransactions<Transaction> {
  requireOutermost('rollback' in db)
  return {
    transaction: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    async query(tx, text, values) {
      // Drizzle numbers the parameters itself.
      const parts = text.split(/\$(\d+)/).map((part, i) => {
        return i % 2 === 0 ? sql.raw(part) : sql.param(values[Number(part) - 1])
      })
      const { execute } = tx as { execute(query: unknown): Promise<Rows | readonly PostgresRow[]> }
      const result = await execute.call(tx, sql.join(parts))
      return 'rows' in result ? result.rows : result
    },
  }
}

interface Rows {
  readonly rows: readonly PostgresRow[]
}

/** The part of Knex that the library uses. */
export interface KnexDatabase<Transaction> {
  transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    options?: { isolationLevel?: 'read committed' },
  ): Promise<Result>
}

/**
 * Lets `postgresStore.transaction` run transactions of Knex.
 *
 * @throws {InvalidInputError} for a transaction: it commits with the outer one, so `ok` would not be certain.
 *
 * @example
 * ```ts
 * import { fromKnex, postgresStore } from 'open-payments-server/postgres'
 *
 * const funds = { transferId: 'rail-1', amount: { value: '100', assetCode: 'USD', assetScale: 2 } }
 * await postgresStore.transaction(fromKnex(knex), async (trx, store) => {
 *   return wallet.resources.within(store).incomingPayments.receive('payment-1', funds)
 * })
 * ```
 */
export function fromKnex<Transaction>(
  db: KnexDatabase<Transaction>,
): PostgresTransactions<Transaction> {
  requireOutermost('isTransaction' in db && db.isTransaction === true)
  return {
    transaction: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    async query(trx, text, values) {
      const bindings: unknown[] = []
      const statement = text.replace(/\$(\d+)/g, (_, number) => {
        bindings.push(values[Number(number) - 1])
        return '?'
      })
      const { raw } = trx as { raw(statement: string, bindings: unknown[]): Promise<Rows> }
      const { rows } = await raw.call(trx, statement, bindings)
      if (Array.isArray(rows)) return rows
      const message =
        'postProcessResponse of Knex must keep `rows` in the results of raw statements'
      throw new TransactionError('ERR_TRANSACTION_FAILED', message)
    },
  }
}

/** The limits of a transaction of Prisma, in milliseconds. */
export interface PrismaTransactionOptions {
  /** The longest wait for a connection. Default 2,000. */
  readonly maxWait?: number
  /** How long the transaction may take. Default 5,000: pass more if it waits for locks. */
  readonly timeout?: number
}

/** The part of a `PrismaClient` that the library uses. */
export interface PrismaDatabase<Transaction> {
  /** The client of a transaction lacks it. */
  $connect(): Promise<unknown>
  $transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    options?: PrismaTransactionOptions & { isolationLevel?: 'ReadCommitted' },
  ): Promise<Result>
}

/**
 * Lets `postgresStore.transaction` run interactive transactions of Prisma, with `@prisma/adapter-pg`.
 *
 * @throws {InvalidInputError} for the client of a transaction: what it begins commits with the outer one, so `ok` would
 *   not be certain.
 *
 * @example
 * ```ts
 * import { fromPrisma, postgresStore } from 'open-payments-server/postgres'
 *
 * const funds = { transferId: 'rail-1', amount: { value: '100', assetCode: 'USD', assetScale: 2 } }
 * await postgresStore.transaction(fromPrisma(prisma, { timeout: 15_000 }), async (tx, store) => {
 *   return wallet.resources.within(store).incomingPayments.receive('payment-1', funds)
 * })
 * ```
 */
export function fromPrisma<Transaction>(
  db: PrismaDatabase<Transaction>,
  options: PrismaTransactionOptions = {},
): PostgresTransactions<Transaction> {
  requireOutermost(typeof db.$connect !== 'function')
  return {
    transaction: (work) => db.$transaction(work, { ...options, isolationLevel: 'ReadCommitted' }),
    query(tx, text, values) {
      const { $queryRawUnsafe } = tx as {
        $queryRawUnsafe(text: string, ...values: unknown[]): Promise<readonly PostgresRow[]>
      }
      return $queryRawUnsafe.call(tx, text, ...values)
    },
    // The driver adapter keeps the code of PostgreSQL here.
    sqlState: (error) => (error as DriverError)?.meta?.driverAdapterError?.cause?.originalCode,
  }
}

type DriverError =
  | { meta?: { driverAdapterError?: { cause?: { originalCode?: string } } } }
  | undefined

/** The part of a `DataSource` of TypeORM that the library uses. */
export interface TypeormDatabase<Transaction> {
  transaction<Result>(
    isolation: 'READ COMMITTED',
    work: (manager: Transaction) => Promise<Result>,
  ): Promise<Result>
}

/**
 * Lets `postgresStore.transaction` run transactions of TypeORM.
 *
 * @param db the `DataSource`, or its `manager`.
 * @throws {InvalidInputError} for the manager of a transaction: it commits with the outer one, so `ok` would not be
 *   certain.
 *
 * @example
 * ```ts
 * import { fromTypeorm, postgresStore } from 'open-payments-server/postgres'
 *
 * const funds = { transferId: 'rail-1', amount: { value: '100', assetCode: 'USD', assetScale: 2 } }
 * await postgresStore.transaction(fromTypeorm(dataSource), async (manager, store) => {
 *   return wallet.resources.within(store).incomingPayments.receive('payment-1', funds)
 * })
 * ```
 */
export function fromTypeorm<Transaction>(
  db: TypeormDatabase<Transaction>,
): PostgresTransactions<Transaction> {
  const { queryRunner } = db as { readonly queryRunner?: { isTransactionActive?: boolean } }
  requireOutermost(queryRunner?.isTransactionActive === true)
  return {
    transaction: (work) => db.transaction('READ COMMITTED', work),
    async query(manager, text, values) {
      const { queryRunner } = manager as { readonly queryRunner?: TypeormRunner }
      // With `true`, the rows of an UPDATE have the same form as those of a SELECT.
      return (await queryRunner?.query(text, [...values], true))?.records as readonly PostgresRow[]
    },
  }
}

interface TypeormRunner {
  query(
    text: string,
    values: unknown[],
    structured: true,
  ): Promise<{ readonly records: readonly PostgresRow[] }>
}

/** A transaction inside of another one commits only with it. */
function requireOutermost(isTransaction: boolean): void {
  if (!isTransaction) return
  const problem =
    'must be the database and not one of its transactions, which commits with the outer one'
  throw new InvalidInputError('db', problem)
}
