import type { OutgoingPaymentResult, ResourceServer, Totals } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool, PoolClient } from 'pg'
import { settlementAccount } from './tables.js'
import { transaction } from './transaction.js'

type Resources = Pick<ResourceServer, 'within'>

/**
 * Debits an account by the sent amount of an outgoing payment and settles the payment finally, in one
 * transaction. It may be called again with the same totals at any time, for example after it has thrown: it
 * debits once.
 *
 * @returns the result of `reportSent`. After a refusal nothing was written.
 */
export function settleOutgoing(
  pool: Pool,
  resources: Resources,
  paymentId: string,
  totals: Totals,
): Promise<OutgoingPaymentResult<'report-sent'>> {
  return transaction(pool, (client) => settle(client, resources, paymentId, totals))
}

async function settle(
  client: PoolClient,
  resources: Resources,
  paymentId: string,
  totals: Totals,
): Promise<OutgoingPaymentResult<'report-sent'>> {
  const { outgoingPayments } = resources.within(postgresStore.inTransaction(client))
  const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
  if (result.ok && result.changed && result.payment.sent !== '0') {
    const { id, walletAddress, debitAmount } = result.payment
    await client.query(
      `INSERT INTO ledger_entries (transfer_id, account_id, amount)
        VALUES ($1, $2, -$3::numeric), ($1, $4, $3::numeric)`,
      [id, walletAddress, result.payment.sent, settlementAccount(debitAmount.assetCode)],
    )
  }
  return result
}
