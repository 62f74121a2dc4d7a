import type { Pool, PoolClient } from 'pg'
import { postgresStore } from '../../adapters/postgres.js'
import type { ReceivedFunds, ReceiveResult, ResourceServer } from '../../src/index.js'
import { settlementAccount } from './tables.js'
import { transaction } from './transaction.js'

type Resources = Pick<ResourceServer, 'within'>

/**
 * Credits an account with funds that have arrived and counts them for the incoming payment, in one
 * transaction: both are done, or neither. It may be called again with the same `transferId` at any time, for
 * instance when it has thrown, and credits once.
 *
 * @returns what `receive` answers; when that is a refusal, nothing was written and the funds go back.
 */
export function creditIncoming(
  pool: Pool,
  resources: Resources,
  funds: ReceivedFunds,
): Promise<ReceiveResult> {
  return transaction(pool, (client) => credit(client, resources, funds))
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
