import type { Pool, PoolClient } from 'pg'

const attemptsMax = 5

/**
 * Runs a transaction. Commits it if its result is `ok`, rolls it back otherwise, and restarts it after
 * conflicts. The work must tolerate being repeated from the beginning.
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
  // Without a listener, a connection that fails between two statements would end the process.
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

/** Returns whether the transaction may succeed when restarted; all other errors belong to the caller. */
function mayRestart(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && restartCodes.includes(code)
}

const restartCodes = [
  'ERR_RESTART_TRANSACTION', // a deadlock or a serialization failure, in the library's statements
  '40P01', // a deadlock, in the host's own statements
  '40001', // a serialization failure, in the host's own statements
  'ERR_CONTENTION', // other writers kept changing the payment for 3 s
]
