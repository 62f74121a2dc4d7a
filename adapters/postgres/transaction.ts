import type { Commit } from '../../src/entry-adapter.js'
import { TransactionError } from '../../src/index.js'
import { createSerialQueue, whileWorking } from '../sql/transactions.js'
import { TablesMissingError } from '../sql/versions.js'
import {
  isLost,
  isTransient,
  type PostgresClient,
  type PostgresRow,
  type PostgresStatement,
  PreparedStatementError,
  rowsOf,
  sqlState,
} from './driver.js'
import { isEmpty, type Statements } from './statements.js'

export type Run = (statement: PostgresStatement) => Promise<readonly PostgresRow[]>

/**
 * The operations of a store inside the host's transaction. A commit that fails is rolled back to a savepoint
 * and leaves the transaction usable. Nothing waits except for row locks.
 *
 * The host may end the transaction at any time: its query builder does so at a time limit. What the store sends then
 * runs by itself, or in another transaction of the connection. Such a statement writes nothing there, because the mark
 * is missing.
 */
export function storeInTransaction(client: PostgresClient, statements: Statements) {
  let checked: Promise<string | undefined> | undefined
  // The savepoints of concurrent operations would interleave.
  const enqueue = createSerialQueue()

  function queued<Result>(operation: (run: Run) => Promise<Result>): Promise<Result> {
    return enqueue(async () => {
      checked ??= checkIsolation(client, statements)
      const currentSchema = await checked
      const schema = statements.schema ?? currentSchema
      return operation((statement) => query(client, statement, schema))
    })
  }

  return {
    run: (statement: PostgresStatement) => queued((run) => run(statement)),
    commit: (requested: Commit) =>
      queued(async (run) => {
        const isCommitted = await commitOrRollBack(run, statements, requested)
        // A host that rolls back to a savepoint of its own removes the mark: the next operation sets it again.
        if (!isCommitted) checked = undefined
        return isCommitted
      }),
  }
}

async function query(client: PostgresClient, statement: PostgresStatement, schema?: string) {
  try {
    return await rowsOf(client, statement, schema)
  } catch (error) {
    throw isLost(error) ? error : transactionError(error)
  }
}

/** Marks the transaction. Returns the schema in which it finds tables without one, if there is any. */
async function checkIsolation(
  client: PostgresClient,
  { begun }: Statements,
): Promise<string | undefined> {
  const [row] = await query(client, begun)
  if (row?.['isolation'] !== 'read committed') {
    throw failed(`the transaction must be READ COMMITTED, but is ${row?.['isolation']}`)
  }
  const { schema } = row
  return typeof schema === 'string' ? schema : undefined
}

async function commitOrRollBack(
  run: Run,
  statements: Statements,
  requested: Commit,
): Promise<boolean> {
  if (isEmpty(requested)) return true
  await run(savepoint)
  const isCommitted = await isCommittedBy(run, statements.commit(requested))
  // The rollback also releases the locks of a commit that lost.
  await run(isCommitted ? releaseSavepoint : rollBackToSavepoint)
  return isCommitted
}

async function isCommittedBy(run: Run, commit: PostgresStatement): Promise<boolean> {
  try {
    return (await run(commit)).length > 0
  } catch (error) {
    if (isLost(error)) return false
    throw error
  }
}

/** Runs the host's work with a client whose statements end before the work does. */
export function whileOpen<Result>(
  client: PostgresClient,
  work: (client: PostgresClient) => Promise<Result>,
): Promise<Result> {
  return whileWorking((pass) => work({ query: (statement) => pass(() => client.query(statement)) }))
}

/**
 * Rejects unless the transaction can commit. PostgreSQL answers COMMIT without an error if a statement has failed or if
 * no transaction is in progress.
 */
export async function requireOpen(client: PostgresClient): Promise<void> {
  try {
    await client.query(savepoint)
  } catch (cause) {
    if (isTransient(cause)) throw transactionError(cause)
    throw failed(reasons[sqlState(cause) ?? ''] ?? 'the transaction cannot be committed', cause)
  }
}

const reasons: Readonly<Record<string, string>> = {
  '25P01': 'the transaction has ended: leave COMMIT and ROLLBACK to `transaction`',
  '25P02':
    'PostgreSQL has rolled the transaction back: a statement failed and its error was caught',
}

const savepoint = { text: 'SAVEPOINT open_payments', values: [] }
const rollBackToSavepoint = { text: 'ROLLBACK TO SAVEPOINT open_payments', values: [] }
const releaseSavepoint = { text: 'RELEASE SAVEPOINT open_payments', values: [] }

function transactionError(cause: unknown): TransactionError {
  if (cause instanceof TransactionError) return cause
  if (sqlState(cause) === '25P01') {
    return failed(
      'postgresStore.inTransaction needs a client with a transaction in progress',
      cause,
    )
  }
  if (cause instanceof PreparedStatementError || cause instanceof TablesMissingError) {
    return failed(cause.message, cause)
  }
  if (!isTransient(cause)) return failed('the transaction cannot continue: roll it back', cause)
  const message = 'the server aborted the transaction: restart it from BEGIN'
  return new TransactionError('ERR_RESTART_TRANSACTION', message, { cause })
}

function failed(message: string, cause?: unknown): TransactionError {
  return new TransactionError('ERR_TRANSACTION_FAILED', message, { cause })
}
