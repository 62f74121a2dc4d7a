import { type Commit, TransactionError } from '../../src/index.js'
import { isTransient, type PostgresClient, type PostgresStatement, sqlState } from './driver.js'
import { isEmpty, lost, type Statements } from './statements.js'

/** Runs a query and returns its rows. */
export type Run = (statement: PostgresStatement) => Promise<readonly { readonly value: string }[]>

/**
 * The operations of a store inside the host's transaction. A commit that fails is rolled back to a savepoint
 * and leaves the transaction usable. Nothing waits except for row locks.
 */
export function storeInTransaction(client: PostgresClient, statements: Statements) {
  let isolationChecked: Promise<void> | undefined
  let last: Promise<unknown> = Promise.resolve()

  /** Runs operations one after the other: the savepoints of concurrent operations would interleave. */
  function inTurn<Result>(operation: () => Promise<Result>): Promise<Result> {
    const result = last.then(async () => {
      isolationChecked ??= checkIsolation(client)
      await isolationChecked
      return operation()
    })
    last = result.catch(() => undefined)
    return result
  }

  const run: Run = (statement) =>
    inTurn(async () => (await query(client, statement)) as readonly { value: string }[])

  return {
    run,
    commit: (requested: Commit) => inTurn(() => commitOrRollBack(client, statements, requested)),
  }
}

async function query(client: PostgresClient, statement: PostgresStatement) {
  try {
    return (await client.query(statement)).rows
  } catch (error) {
    throw sqlState(error) === lost ? error : transactionError(error)
  }
}

async function checkIsolation(client: PostgresClient): Promise<void> {
  const text = `SELECT current_setting('transaction_isolation') AS isolation`
  const [row] = await query(client, { text, values: [] })
  if (row?.['isolation'] !== 'read committed') {
    throw failed(`the transaction must be READ COMMITTED, but is ${row?.['isolation']}`)
  }
}

async function commitOrRollBack(
  client: PostgresClient,
  statements: Statements,
  requested: Commit,
): Promise<boolean> {
  if (isEmpty(requested)) return true
  await query(client, savepoint)
  try {
    await query(client, statements.commit(requested))
  } catch (error) {
    if (sqlState(error) !== lost) throw error
    await query(client, rollBackToSavepoint)
    return false
  }
  await query(client, releaseSavepoint)
  return true
}

const savepoint = { text: 'SAVEPOINT open_payments', values: [] }
const rollBackToSavepoint = { text: 'ROLLBACK TO SAVEPOINT open_payments', values: [] }
const releaseSavepoint = { text: 'RELEASE SAVEPOINT open_payments', values: [] }

function transactionError(cause: unknown): TransactionError {
  if (sqlState(cause) === '25P01') {
    return failed(
      'postgresStore.inTransaction needs a client with a transaction in progress',
      cause,
    )
  }
  if (!isTransient(cause)) return failed('the transaction cannot continue: roll it back', cause)
  const message = 'the server aborted the transaction: restart it from BEGIN'
  return new TransactionError('ERR_RESTART_TRANSACTION', message, { cause })
}

function failed(message: string, cause?: unknown): TransactionError {
  return new TransactionError('ERR_TRANSACTION_FAILED', message, { cause })
}
