import type { Pool, PoolClient } from 'pg'

const attemptsMax = 5

/**
 * Runs a transaction that is committed when its result is `ok` and rolled back when it is not, and begins it
 * again while others are in its way. Whatever it does has to bear being done again from the beginning.
 */
export async function transaction<Result extends { readonly ok: boolean }>(
  pool: Pool,
  run: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(pool, run)
    } catch (error) {
      if (attempt === attemptsMax || !mayRestart(error)) throw error
    }
  }
}

async function once<Result extends { readonly ok: boolean }>(
  pool: Pool,
  run: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let broken = false
  const onError = () => {
    broken = true
  }
  // A connection may break down between two statements; unheard, that would end the process.
  client.on('error', onError)
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    const result = await run(client)
    await client.query(result.ok ? 'COMMIT' : 'ROLLBACK')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch(onError)
    throw error
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

/** Whether the transaction might go through from its beginning; whatever else went wrong is the caller's. */
function mayRestart(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && restartCodes.includes(code)
}

const restartCodes = [
  'ERR_RESTART_TRANSACTION', // a deadlock or a serialization failure, in the library's statements
  '40P01', // a deadlock, in a statement of ours
  '40001', // a serialization failure, in a statement of ours
  'ERR_CONTENTION', // others were faster to change the payment, for 3 s
]
