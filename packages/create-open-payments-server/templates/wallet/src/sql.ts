import type { Store } from 'open-payments-server'

/** Runs a statement with a value for each `?`, and returns its rows. Columns of integers are strings or bigints. */
export type Sql = (
  statement: string,
  ...values: readonly (string | number)[]
) => Promise<readonly Row[]>

export type Row = Readonly<Record<string, unknown>>

/** A database with the records of the library and the tables of this wallet. */
export interface Database {
  readonly store: Store
  /** Runs a statement outside transactions. */
  readonly sql: Sql
  /** What follows each CREATE TABLE of this wallet, so that ids and URLs are compared byte for byte. */
  readonly tableOptions: string
  /** Brings the tables of the library up to date. */
  migrateRecords(): Promise<unknown>
  /**
   * Resolves to what is wrong with the tables of the library, or to `undefined`. It only reads. Absent if the store has
   * no such check.
   */
  checkRecords?(): Promise<string | undefined>
  /**
   * Runs work in a transaction, and commits if it resolves. Work may run again after a deadlock, so it must have no
   * effect outside the transaction. The library writes inside of it through the store: `resources.within(store)`.
   */
  transaction<Result>(work: (sql: Sql, store: Store) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

export interface OpenOptions {
  /** Whether statements may take long, as those of a migration of large tables do. Default: false. */
  readonly migrates?: boolean
}
