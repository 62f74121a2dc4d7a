import { TransactionError } from 'open-payments-server'
import type { Commit } from 'open-payments-server/adapter'
import {
  recordsTable,
  type SqlStatement,
  type Statements,
  type Steps,
  stepsOf,
} from '../../../adapters/sql/statements.js'
import { createSerialQueue } from '../../../adapters/sql/transactions.js'
import type { Client } from './client.js'
import type { Engine } from './engine.js'
import { namedSteps } from './engines.js'
import { type Alone, missingOf, type Run, runOn } from './operations.js'

/** Holds the connection of a transaction, so that a commit can end what it has begun. */
export type Held = <Result>(work: (client: Client) => Promise<Result>) => Promise<Result>

/**
 * The operations of a store inside the host's transaction. A commit that loses is rolled back to a savepoint and
 * leaves the transaction usable. The host may end the transaction between two statements: those that follow find and
 * write nothing, except on MySQL.
 */
export function storeInTransaction(
  client: Client,
  engine: Engine,
  held: Held = (work) => work(client),
) {
  const runPlainly = runOn(client, engine)
  let marked: Promise<Statements> | undefined
  // The savepoints of concurrent operations would interleave.
  const enqueue = createSerialQueue()

  function queued<Result>(call: (statements: () => Promise<Statements>) => Promise<Result>) {
    const statements = () => {
      marked ??= engine.statementsInside((text) => client.run(text))
      return marked
    }
    return enqueue(async () => {
      try {
        return await call(statements)
      } catch (error) {
        throw error instanceof TransactionError ? error : transactionError(engine, error)
      }
    })
  }

  const run: Run = (statement) => queued(() => runPlainly(statement))
  const alone: Alone = (work) => queued(async (statements) => work(runPlainly, await statements()))

  return {
    run,
    alone,
    commit(requested: Commit): Promise<boolean> {
      const steps = stepsOf(requested)
      return queued(async (statements) => {
        const inside = await statements()
        const isCommitted = await held((client) => commitOrRollBack(client, engine, steps, inside))
        // A host that rolls back to a savepoint of its own removes a mark: the next commit sets it again.
        if (!isCommitted) marked = undefined
        return isCommitted
      })
    },
  }
}

async function commitOrRollBack(
  client: Client,
  engine: Engine,
  steps: Steps,
  statements: Statements,
): Promise<boolean> {
  const commit = statements.commit(await namedSteps(engine, steps))
  const run = runOn(client, engine)
  await requireOpen(client, engine)
  const missing = await missingOf(run, engine, commit)
  if (missing === undefined) {
    await client.run('RELEASE SAVEPOINT open_payments')
    return true
  }
  if (engine.hasSnapshots) {
    const all = [...steps.existing, ...steps.created]
    await requireCurrentReads(run, all[commit.indexOf(missing)])
  }
  for (const text of engine.rollBackToSavepoint) await client.run(text)
  return false
}

/**
 * In a snapshot, each reload would return the version with which the commit has just lost. A transaction cannot query
 * its isolation level, so this reads the version twice: a locking read returns the newest one.
 */
async function requireCurrentReads(
  run: Run,
  lost: { readonly kind: string; readonly id: string } | undefined,
): Promise<void> {
  if (lost === undefined) return
  const text = `SELECT version AS value FROM ${recordsTable} WHERE kind = ? AND id = ?`
  const read = async (statement: SqlStatement) => {
    const [row] = (await run(statement)).rows
    return row && Number(row.value)
  }
  const values = [lost.kind, lost.id]
  const newest = await read({ text: `${text} FOR UPDATE`, values })
  if (newest === (await read({ text, values }))) return
  throw failed('the isolation level of the transaction must be READ COMMITTED')
}

/**
 * Sets a savepoint, and rejects if no transaction is in progress. After a deadlock, MariaDB and MySQL execute each
 * statement in a transaction of its own; so does SQLite after some errors. The host may have caught the error.
 */
export async function requireOpen(client: Client, engine: Engine): Promise<void> {
  try {
    await engine.setSavepoint((text) => client.run(text))
  } catch (cause) {
    if (engine.isTransient(cause)) throw transactionError(engine, cause)
    throw failed('the transaction has ended, or the database has rolled it back', cause)
  }
}

function transactionError({ isTransient }: Engine, cause: unknown): TransactionError {
  if (!isTransient(cause)) return failed('the transaction cannot continue: roll it back', cause)
  const message = 'the transaction met a conflict: roll it back and restart it'
  return new TransactionError('ERR_RESTART_TRANSACTION', message, { cause })
}

function failed(message: string, cause?: unknown): TransactionError {
  return new TransactionError('ERR_TRANSACTION_FAILED', message, { cause })
}
