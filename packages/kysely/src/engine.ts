import type { SqlValue } from '../../../adapters/sql/records.js'
import type { Statements } from '../../../adapters/sql/statements.js'
import type { Migration } from '../../../adapters/sql/versions.js'
import type { Client } from './client.js'

/** A database on which a commit is several statements in one transaction. */
export interface Engine {
  readonly statements: Statements
  /** Returns the statements for the transaction of a host, which may end it between two of them. */
  readonly statementsInside: (run: (text: string) => Promise<unknown>) => Promise<Statements>
  /** Returns the statement that creates a table of applied versions. */
  readonly versionsTable: (name: string) => string
  readonly migrations: readonly Migration[]
  /** The steps of the views for reports; absent where there are none. */
  readonly reportMigrations?: readonly Migration[]
  /** The statements that begin a transaction. */
  readonly begin: readonly string[]
  /** Sets the savepoint `open_payments`, and rejects if no transaction is in progress. */
  readonly setSavepoint: (run: (text: string) => Promise<unknown>) => Promise<void>
  /** The statements that undo what follows the savepoint. */
  readonly rollBackToSavepoint: readonly string[]
  /** The isolation level of a transaction that the package begins for a host; absent for that of the session. */
  readonly isolation?: 'read committed'
  /** Returns the text that the driver takes for one with a `?` for each value. */
  readonly text: (text: string) => string
  /** Returns the name under which the database keeps a list. */
  readonly listName: (list: string) => string | Promise<string>
  readonly parameter: (value: SqlValue) => unknown
  /** Returns whether a transaction that failed with this error may succeed when it is repeated. */
  readonly isTransient: (error: unknown) => boolean
  /** Returns whether `migrate` that failed with this error may begin again. */
  readonly mayMigrateAgain: (error: unknown) => boolean
  /** Rejects with a `DatabaseSettingsError` if its tables would not return records in order. */
  readonly requireOrder?: (client: Client) => Promise<void>
  /** Returns whether an INSERT failed because its row exists. */
  readonly isDuplicate: (error: unknown) => boolean
  /** Returns whether a statement failed because its table does not exist. */
  readonly isWithoutTables: (error: unknown) => boolean
  /** Whether a transaction reads outdated rows at isolation levels other than READ COMMITTED. */
  readonly hasSnapshots: boolean
}
