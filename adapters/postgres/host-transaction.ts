import { TransactionError } from '../../src/index.js'
import type { Begin } from '../sql/transactions.js'
import {
  inOneTransaction,
  isTransient,
  type PostgresClient,
  type PostgresPoolClient,
  type PostgresRow,
  sqlState,
} from './driver.js'

/** How a query builder or an ORM runs transactions. */
export interface PostgresTransactions<Transaction> {
  /**
   * Begins a READ COMMITTED transaction, commits it if `work` resolves, and rolls it back if `work` rejects. Most query
   * builders and ORMs have a method that does this.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result>
  /**
   * Runs a statement with the parameters `$1`, `$2`, … in a transaction.
   *
   * @param values strings, integers, and arrays of them, each of which is one parameter.
   * @returns the rows of the result, including those of an `UPDATE … RETURNING`.
   */
  query(
    transaction: Transaction,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly PostgresRow[]>
  /**
   * Returns the SQLSTATE of an error. Needed only if neither the error nor one of its causes has it as `code`, as in
   * Prisma.
   */
  sqlState?(error: unknown): string | undefined
}

/** A pool, whose connections are the transactions, or a query builder or an ORM. */
export type HostDatabase<Transaction> = Pool | PostgresTransactions<Transaction>

interface Pool {
  connect(): Promise<PostgresPoolClient>
}

interface HostTransactions<Transaction> {
  readonly begin: Begin<Transaction>
  clientOf(transaction: Transaction): PostgresClient
  isTransient(error: unknown): boolean
}

export function hostTransactionsOf<Transaction>(
  database: HostDatabase<Transaction>,
): HostTransactions<Transaction> {
  if (!('connect' in database)) return ormTransactions(database)
  const transactions: HostTransactions<PostgresPoolClient> = {
    begin: (work) => inOneTransaction(database, work),
    clientOf: (client) => client,
    isTransient,
  }
  return transactions as HostTransactions<unknown> as HostTransactions<Transaction>
}

function ormTransactions<Transaction>(
  orm: PostgresTransactions<Transaction>,
): HostTransactions<Transaction> {
  const stateOf = (error: unknown) => orm.sqlState?.(error) ?? sqlState(error)
  return {
    begin: (work) => orm.transaction(work),
    clientOf: (transaction) => ({
      async query({ text, values }) {
        try {
          const rows = await orm.query(transaction, text, values)
          if (!Array.isArray(rows))
            throw new TypeError('the query builder returned no array of rows')
          return { rows }
        } catch (cause) {
          if (cause instanceof TransactionError) throw cause
          const error = new Error('a statement of the store failed', { cause })
          throw Object.assign(error, { code: stateOf(cause) })
        }
      },
    }),
    isTransient: (error) => isTransient(error, stateOf),
  }
}
