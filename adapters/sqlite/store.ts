import type { Commit } from '../../src/entry-adapter.js'
import { type Store, TransactionError } from '../../src/index.js'
import { pageOf, recordOf, recordsOf } from '../sql/records.js'
import { isBusy, sqliteBegin, sqliteListName, sqliteStatements } from '../sql/sqlite.js'
import { type SqlStatement, stepsOf, withListNames } from '../sql/statements.js'
import { retried, type TransactionResult } from '../sql/transactions.js'
import { type Session, type SqliteDatabase, sessionOn } from './driver.js'

/** A store over SQLite, with the transactions of a host. */
export interface SqliteStore extends Store {
  /**
   * Runs the host's work in a transaction, so that the library's writes on the store that it is given commit or roll
   * back together with the host's own statements on the same connection. Pass that store to `within` of a server.
   * Commits if the result is `ok`, and rolls back if not, or if the work rejects.
   *
   * Until then, all other calls of stores over this connection wait: the work must not wait for one of them, or for
   * anything slow. Transactions run one after the other.
   *
   * Rejects with the error of the work or of COMMIT, or with a `TransactionError`: with code `ERR_RESTART_TRANSACTION`
   * if another connection held the lock for 3 s and the work has not begun, and with `ERR_TRANSACTION_FAILED` if SQLite
   * has rolled the transaction back, or reported another error to the library.
   */
  transaction<Result extends TransactionResult>(
    work: (inside: Store) => Promise<Result>,
  ): Promise<Result>
}

/**
 * Returns a store over a connection of `better-sqlite3` or `node:sqlite`. Run `migrate` first. Each operation runs
 * without a pause, so that other code on the same connection never runs inside it. Sets `synchronous` to FULL.
 *
 * Several processes may use the file. While another one holds the lock, the store repeats an operation for up to
 * 3 s. After that, a commit resolves to false, and other operations reject with the error of the driver.
 *
 * @example
 * ```ts
 * import Database from 'better-sqlite3'
 * import { migrate, sqliteStore } from 'open-payments-server/sqlite'
 *
 * const database = new Database('wallet.db')
 * await migrate(database)
 * const store = sqliteStore(database)
 * ```
 */
export function sqliteStore(database: SqliteDatabase): SqliteStore {
  const session = sessionOn(database)
  return {
    ...operations(session, session.run, outermost),
    async commit(commit) {
      const steps = statementsOf(commit)
      try {
        return await session.run(() => committed(session, steps, outermost))
      } catch (error) {
        if (isBusy(error)) return false
        throw error
      }
    },
    transaction: (work) => session.alone(() => transaction(session, work)),
  }
}

/** Runs work that does not wait. */
type Run = <Result>(work: () => Result) => Promise<Result>

function operations(session: Session, run: Run, frame: Frame): Omit<Store, 'commit'> {
  const rowsOf = (statement: SqlStatement) => run(() => session.rows(statement))
  return {
    async load(keys) {
      const [row] = await rowsOf(sqliteStatements.load(keys))
      return recordsOf(row)
    },
    async list(query) {
      return pageOf(query, await rowsOf(sqliteStatements.list(query, sqliteListName(query.list))))
    },
    async due(...query) {
      return (await rowsOf(sqliteStatements.due(...query))).map(recordOf)
    },
    async remove(records) {
      const statements = records.map(sqliteStatements.remove)
      return run(() =>
        inTransaction(session, frame, () =>
          statements.map((statement) => session.rows(statement).length > 0),
        ),
      )
    },
  }
}

function statementsOf(commit: Commit): readonly SqlStatement[] {
  return sqliteStatements.commit(withListNames(stepsOf(commit), sqliteListName))
}

/** The statements that begin and end the transaction of an operation. */
interface Frame {
  readonly begin: string
  readonly commit: string
  readonly rollBack: string
}

const outermost: Frame = { begin: sqliteBegin, commit: 'COMMIT', rollBack: 'ROLLBACK' }
const nested: Frame = {
  begin: 'SAVEPOINT open_payments',
  commit: 'RELEASE open_payments',
  rollBack: 'ROLLBACK TO open_payments; RELEASE open_payments',
}

/** Runs statements that must each find a row; if one does not, all of them are undone. */
function committed(session: Session, statements: readonly SqlStatement[], frame: Frame): boolean {
  return inTransaction(session, frame, () =>
    statements.every((statement) => session.rows(statement).length === 1),
  )
}

/** Runs work that does not wait, and undoes it if it returns false or throws. */
function inTransaction<Result>(
  session: Session,
  { begin, commit, rollBack }: Frame,
  work: () => Result,
): Result {
  session.exec(begin)
  try {
    const result = work()
    session.exec(result === false ? rollBack : commit)
    return result
  } catch (error) {
    rolledBack(session, rollBack)
    throw error
  }
}

/** SQLite may have rolled back already, for example when the disk is full. */
function rolledBack(session: Session, rollBack: string): void {
  try {
    session.exec(rollBack)
  } catch {}
}

async function transaction<Result extends TransactionResult>(
  session: Session,
  work: (inside: Store) => Promise<Result>,
): Promise<Result> {
  await begun(session)
  let isOpen = true
  const run: Run = async (step) => {
    if (!isOpen) throw failed('the transaction of this store has ended')
    requireOpen(session)
    try {
      return step()
    } catch (error) {
      throw failed('the transaction cannot continue: roll it back', error)
    }
  }
  const inside: Store = {
    ...operations(session, run, nested),
    async commit(commit) {
      const steps = statementsOf(commit)
      return run(() => committed(session, steps, nested))
    },
  }
  try {
    const result = await work(inside)
    isOpen = false
    if (!result.ok) rolledBack(session, 'ROLLBACK')
    else {
      requireOpen(session)
      session.exec('COMMIT')
    }
    return result
  } catch (error) {
    isOpen = false
    rolledBack(session, 'ROLLBACK')
    throw error
  }
}

/**
 * Throws if no transaction is in progress. SQLite rolls it back after some errors, which the host may have caught, and
 * a savepoint would then begin another one.
 */
function requireOpen(session: Session): void {
  try {
    session.exec('BEGIN')
  } catch {
    return // SQLite refuses BEGIN inside a transaction
  }
  session.exec('ROLLBACK')
  throw failed('the transaction has ended, or SQLite has rolled it back')
}

async function begun(session: Session): Promise<void> {
  try {
    await retried(() => {
      session.makeDurable()
      session.exec(sqliteBegin)
    }, isBusy)
  } catch (cause) {
    if (!isBusy(cause)) throw failed('the transaction cannot begin', cause)
    const message = 'another connection holds the lock: restart the transaction'
    throw new TransactionError('ERR_RESTART_TRANSACTION', message, { cause })
  }
}

function failed(message: string, cause?: unknown): TransactionError {
  return new TransactionError('ERR_TRANSACTION_FAILED', message, { cause })
}
