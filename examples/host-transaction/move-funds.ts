import type { PoolClient } from 'pg'

/** A payment between two accounts of this wallet. The amounts are in units of their asset, such as cents. */
export interface Transfer {
  readonly paymentId: string
  readonly from: string
  readonly to: string
  readonly debit: string
  readonly credit: string
}

// #region move
/** Moves money and ends the hold of a payment, in a transaction of the caller. */
export async function moveFunds(client: PoolClient, transfer: Transfer): Promise<void> {
  const { paymentId, from, to, debit, credit } = transfer
  // In one order, so that two opposite payments do not wait for each other.
  const accounts = 'SELECT 1 FROM ledger_accounts WHERE id = ANY($1)'
  await client.query(`${accounts} ORDER BY id FOR UPDATE`, [[from, to]])
  // One entry for each account, and none if an account pays itself. What is debited and
  // not credited is your fee: its account needs no lock.
  await client.query(
    `INSERT INTO ledger_entries (transfer_id, account_id, amount)
      SELECT $1, account_id, sum(amount)
      FROM (
        VALUES ($2, -$3::numeric), ($4, $5::numeric), ('fees', $3 - $5::numeric)
      ) AS line (account_id, amount)
      GROUP BY account_id
      HAVING sum(amount) <> 0`,
    [paymentId, from, debit, to, credit],
  )
  await client.query('DELETE FROM ledger_holds WHERE payment_id = $1', [paymentId])
}
// #endregion move
