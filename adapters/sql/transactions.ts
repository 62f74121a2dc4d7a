import { TransactionError } from '../../src/index.js'
import { causesOf } from './causes.js'

const attemptsMax = 5

/** The result of the host's work in a transaction. */
export interface TransactionResult {
  /** Whether to commit. */
  readonly ok: boolean
}

/** Begins a transaction, commits it if the work resolves, and rolls it back if the work rejects. */
export type Begin<Transaction> = <Result>(
  work: (transaction: Transaction) => Promise<Result>,
) => Promise<Result>

export interface HostTransaction<Transaction, Result> {
  readonly begin: Begin<Transaction>
  run(transaction: Transaction): Promise<Result>
  /**
   * Rejects if the database has rolled the transaction back, or if it has ended. The host may have caught the error
   * that reported this, and COMMIT then reports no error.
   */
  requireOpen(transaction: Transaction): Promise<void>
  isTransient(error: unknown): boolean
}

/**
 * Runs a transaction of the host. Commits it if its result is `ok`, rolls it back otherwise, and restarts it after
 * conflicts.
 */
export async function hostTransaction<Transaction, Result extends TransactionResult>(
  transaction: HostTransaction<Transaction, Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await committedIfOk(transaction)
    } catch (error) {
      const mayRestart = transaction.isTransient(error) || asksToRestart(error)
      if (attempt === attemptsMax || !mayRestart) throw error
      await pauseAfter(attempt)
    }
  }
}

async function committedIfOk<Transaction, Result extends TransactionResult>({
  begin,
  run,
  requireOpen,
}: HostTransaction<Transaction, Result>): Promise<Result> {
  let refused: Result | undefined
  let failure: { readonly error: unknown } | undefined
  const work = async (transaction: Transaction) => {
    try {
      const result = await run(transaction)
      if (!result.ok) {
        refused = result
        throw new Error('the result is not ok, so the transaction is rolled back')
      }
      await requireOpen(transaction)
      return result
    } catch (error) {
      failure = { error }
      throw error
    }
  }
  try {
    return await begin(work)
  } catch (error) {
    if (refused !== undefined) return refused
    // A ROLLBACK that fails, too, would hide the first error.
    throw failure === undefined ? error : failure.error
  }
}

/**
 * Whether the library asks for a restart: after a deadlock or serialization failure of its own statements, or when
 * other writers kept changing the record.
 */
function asksToRestart(error: unknown): boolean {
  return causesOf(error).some((each) => {
    const code = 'code' in each ? each.code : undefined
    return code === 'ERR_RESTART_TRANSACTION' || code === 'ERR_CONTENTION'
  })
}

/** Sends a statement of the library in the host's transaction. */
export type Pass = <Answer>(send: () => Promise<Answer>) => Promise<Answer>

/**
 * Runs the host's work, and refuses all statements once it has ended, because their connection may be in another
 * transaction by then. It ends only after the statements that are under way: the work may have given up waiting for
 * them, and a statement that arrives after ROLLBACK takes effect by itself.
 */
export async function whileWorking<Result>(work: (pass: Pass) => Promise<Result>): Promise<Result> {
  let isOpen = true
  const underWay = new Set<Promise<unknown>>()
  try {
    return await work(async (send) => {
      if (!isOpen) {
        const message = 'the transaction of this store has ended: use the store only in its work'
        throw new TransactionError('ERR_TRANSACTION_FAILED', message)
      }
      const answer = send()
      underWay.add(answer)
      try {
        return await answer
      } finally {
        underWay.delete(answer)
      }
    })
  } finally {
    isOpen = false
    await Promise.allSettled(underWay)
  }
}

/** Returns a text by which a statement recognizes the transaction to which it belongs. */
export function createMark(): string {
  return crypto.randomUUID()
}

/** The time for which the library also retries a commit that loses, in milliseconds. */
const deadlineMs = 3_000
const pauseMaxMs = 64

/** Runs a call again after errors that contention causes, for up to 3 s. Then it rejects with the last one. */
export async function retried<Result>(
  run: () => Result | Promise<Result>,
  isTransient: (error: unknown) => boolean,
): Promise<Result> {
  const startedAt = performance.now()
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!isTransient(error) || performance.now() - startedAt > deadlineMs) throw error
      await pauseAfter(attempt)
    }
  }
}

/** Random pauses prevent repeated collisions. */
export async function pauseAfter(attempt: number): Promise<void> {
  const pauseMs = Math.random() * Math.min(pauseMaxMs, 2 ** attempt)
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
}

/** Returns a function that runs each operation after all that were passed to it before have settled. */
export function createSerialQueue() {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(operation: () => Promise<Result>): Promise<Result> => {
    const result = last.then(operation)
    last = result.catch(() => undefined)
    return result
  }
}
