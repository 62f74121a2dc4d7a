import type { IncomingPaymentServices, ReceivedFunds, ResourceServer } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'
import { settlementAccount } from './tables.js'

type Resources = Pick<ResourceServer, 'within'>

/**
 * Records funds that have arrived for an incoming payment and credits the account, in one transaction. It may
 * be called again with the same `transferId` at any time, for example after it has thrown: it credits once.
 *
 * @returns the result of `receive`. After a refusal nothing was written, and the host must return the funds. After
 *   `review_required` nothing was written either, but the host must keep the funds, and call again at `retryAt`.
 */
export function creditIncoming(
  pool: Pool,
  resources: Resources,
  paymentId: string,
  { transferId, amount }: ReceivedFunds,
): ReturnType<IncomingPaymentServices['receive']> {
  return postgresStore.transaction(pool, async (client: PoolClient, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, { transferId, amount })
    // A repeated report changes nothing: its ledger entries exist.
    if (result.ok && result.changed) {
      const { walletAddress } = result.payment
      await client.query(
        `INSERT INTO ledger_entries (transfer_id, account_id, amount)
          VALUES ($1, $2, $3::numeric), ($1, $4, -$3::numeric)`,
        [transferId, walletAddress, amount.value, settlementAccount(amount.assetCode)],
      )
    }
    return result
  })
}
