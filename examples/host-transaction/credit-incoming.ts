import type { Pool, PoolClient } from 'pg'
import { postgresStore } from '../../adapters/postgres.js'
import type { ReceivedFunds, ReceiveResult, ResourceServer } from '../../src/index.js'

type Resources = Pick<ResourceServer, 'within'>

const attemptsMax = 5

/**
 * Credits an account with funds that have arrived and counts them for the incoming payment, in one
 * transaction: both are done, or neither. It may be called again with the same `transferId` at any time, for
 * instance when it has thrown, and credits once.
 *
 * @returns what `receive` answers; when that is a refusal, nothing was written and the funds go back.
 */
export async function creditIncoming(
  pool: Pool,
  resources: Resources,
  funds: ReceivedFunds,
): Promise<ReceiveResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await inTransaction(pool, (client) => credit(client, resources, funds))
    } catch (error) {
      if (attempt === attemptsMax || !mayRestart(error)) throw error
    }
  }
}

async function credit(
  client: PoolClient,
  resources: Resources,
  { paymentId, transferId, amount }: ReceivedFunds,
): Promise<ReceiveResult> {
  const { incomingPayments } = resources.within(postgresStore.inTransaction(client))
  const payment = await incomingPayments.get(paymentId)
  if (payment !== undefined) {
    // Each transfer sums to zero. One that is there already is being repeated, and `receive` knows it too.
    await client.query(
      `INSERT INTO ledger_entries (transfer_id, account_id, amount)
        VALUES ($1, $2, $3::numeric), ($1, $4, -$3::numeric)
        ON CONFLICT (transfer_id, account_id) DO NOTHING`,
      [transferId, payment.walletAddress, amount.value, settlementAccount(amount.assetCode)],
    )
  }
  return incomingPayments.receive({ paymentId, transferId, amount })
}

/** The account that stands for the rail on which funds of an asset arrive. */
export function settlementAccount(assetCode: string): string {
  return `settlement:${assetCode}`
}

async function inTransaction(
  pool: Pool,
  run: (client: PoolClient) => Promise<ReceiveResult>,
): Promise<ReceiveResult> {
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
