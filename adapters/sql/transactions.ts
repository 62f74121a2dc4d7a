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

/**
 * Runs a transaction of the host. Commits it if its result is `ok`, rolls it back otherwise, and restarts it after
 * conflicts.
 */
export async function hostTransaction<Transaction, Result extends TransactionResult>(
  begin: Begin<Transaction>,
  run: (transaction: Transaction) => Promise<Result>,
  isTransient: (error: unknown) => boolean,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await committedIfOk(begin, run)
    } catch (error) {
      if (attempt === attemptsMax || !(isTransient(error) || asksToRestart(error))) throw error
      await pauseAfter(attempt)
    }
  }
}

async function committedIfOk<Transaction, Result extends TransactionResult>(
  begin: Begin<Transaction>,
  run: (transaction: Transaction) => Promise<Result>,
): Promise<Result> {
  let refused: Result | undefined
  try {
    return await begin(async (transaction) => {
      const result = await run(transaction)
      if (result.ok) return result
      refused = result
      throw new Error('the result is not ok, so the transaction is rolled back')
    })
  } catch (error) {
    if (refused === undefined) throw error
    return refused
  }
}

/**
 * Whether the library asks for a restart: after a deadlock or serialization failure of its own statements, or when
 * other writers kept changing the record.
 */
function asksToRestart(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_RESTART_TRANSACTION' || code === 'ERR_CONTENTION'
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
