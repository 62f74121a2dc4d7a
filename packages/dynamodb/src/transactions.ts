import type { DynamoDB, TransactWriteItem } from '@aws-sdk/client-dynamodb'
import { nameOf } from './table.js'

/** The time for which a transaction that meets others is repeated, in milliseconds. */
const deadlineMs = 3_000
const pauseMaxMs = 32

/**
 * Resolves to whether a transaction has written its items: not if a condition failed, or if it met other transactions
 * for 3 s.
 *
 * @throws the error of the client, after which it is unknown whether the items are written.
 */
export async function isWritten(
  client: DynamoDB,
  TransactItems: TransactWriteItem[],
): Promise<boolean> {
  if (TransactItems.length === 0) return true
  // A repeat with the same token, also one by the client itself, takes effect once.
  let ClientRequestToken = crypto.randomUUID() as string
  try {
    await repeated(async (last) => {
      if (last !== undefined && nameOf(last) !== inProgress)
        ClientRequestToken = crypto.randomUUID()
      return client.transactWriteItems({ TransactItems, ClientRequestToken })
    })
    return true
  } catch (error) {
    const codes = cancellationsOf(error)
    if (codes.includes('ConditionalCheckFailed') || codes.includes('TransactionConflict')) {
      return false
    }
    throw error
  }
}

/** The first request of a token was lost on its way back, and still works. */
const inProgress = 'TransactionInProgressException'

/** Transactions that meet are cancelled, possibly all of them, so they are repeated for up to 3 s. */
export async function repeated<Answer>(
  transact: (last?: unknown) => Promise<Answer>,
): Promise<Answer> {
  let last: unknown
  for (const startedAt = performance.now(); ; ) {
    try {
      return await transact(last)
    } catch (error) {
      last = error
      if (!mayRepeat(error) || performance.now() - startedAt > deadlineMs) throw error
      await new Promise((resolve) => setTimeout(resolve, Math.random() * pauseMaxMs))
    }
  }
}

function mayRepeat(error: unknown): boolean {
  if (nameOf(error) === inProgress) return true
  const codes = cancellationsOf(error)
  return codes.includes('TransactionConflict') && !codes.includes('ConditionalCheckFailed')
}

/** Returns why a transaction was cancelled, with a code for each item; empty for other errors. */
function cancellationsOf(error: unknown): readonly (string | undefined)[] {
  const { CancellationReasons = [] } = error as { CancellationReasons?: { Code?: string }[] }
  return CancellationReasons.map(({ Code }) => Code)
}
