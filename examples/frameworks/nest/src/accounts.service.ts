import { Injectable } from '@nestjs/common'
import type { MayPayAnswer, RequestedPayment, WalletAddress } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool, type PoolClient } from 'pg'
import type { Transfer } from './own-accounts.js'

const columns = `wallet_address AS url, public_name AS "publicName",
  asset_code AS "assetCode", asset_scale AS "assetScale", owner, balance`

export interface Account extends WalletAddress {
  readonly owner: string
  readonly balance: bigint
}

/** The driver returns a bigint of PostgreSQL as text. */
type Row = Omit<Account, 'balance'> & { readonly balance: string }
const accountOf = (row: Row): Account => ({ ...row, balance: BigInt(row.balance) })

/** The accounts and their money, in the database of the host. */
@Injectable()
export class AccountsService {
  constructor(private readonly pool: Pool) {}

  async open(url: string, owner: string, balance: string) {
    const insert = `INSERT INTO accounts (wallet_address, owner, public_name, balance)
      VALUES ($1, $2, $2, $3) ON CONFLICT DO NOTHING`
    await this.pool.query(insert, [url, owner, balance])
  }

  async find(url: string): Promise<Account | undefined> {
    const query = `SELECT ${columns} FROM accounts WHERE wallet_address = $1`
    const { rows } = await this.pool.query<Row>(query, [url])
    return rows.map(accountOf)[0]
  }

  /** The accounts of an owner at one brand. */
  async ownedBy(owner: string, baseUrl: string): Promise<readonly Account[]> {
    const query = `SELECT ${columns} FROM accounts
      WHERE owner = $1 AND starts_with(wallet_address, $2)`
    const { rows } = await this.pool.query<Row>(query, [owner, `${baseUrl}/`])
    return rows.map(accountOf)
  }

  /** Holds the amount of a payment: `policy.mayPay`. */
  hold({ outgoingPaymentId, walletAddress, debitAmount, isPreview }: RequestedPayment) {
    return postgresStore.transaction(
      this.pool,
      async (client: PoolClient): Promise<MayPayAnswer> => {
        const lock = 'SELECT balance FROM accounts WHERE wallet_address = $1 FOR UPDATE'
        const { rows } = await client.query(lock, [walletAddress])
        const { rowCount } = await client.query(
          `INSERT INTO holds (payment_id, wallet_address, amount)
          SELECT $1, $2, $3::numeric WHERE $3::numeric <= $4::numeric - (
            SELECT coalesce(sum(amount), 0) FROM holds
            WHERE wallet_address = $2 AND payment_id <> $1 AND NOT released
          )
          ON CONFLICT (payment_id) DO UPDATE SET amount = excluded.amount WHERE NOT holds.released`,
          [outgoingPaymentId, walletAddress, debitAmount.value, rows[0]?.balance ?? 0],
        )
        // Or the payment has ended, and nobody waits for this answer.
        if (rowCount !== 1) return { ok: false, refusal: 'funds_insufficient' }
        // No event would release the hold of a preview.
        const release = 'DELETE FROM holds WHERE payment_id = $1'
        if (isPreview) await client.query(release, [outgoingPaymentId])
        return { ok: true }
      },
    )
  }

  /** Moves money and ends the hold of a payment, in a transaction of the caller. */
  async move(client: PoolClient, transfer: Transfer) {
    const { paymentId, from, to, debit, credit } = transfer
    // In one order, so that two opposite transfers do not wait for each other.
    const both = 'SELECT wallet_address FROM accounts WHERE wallet_address = ANY($1)'
    await client.query(`${both} ORDER BY wallet_address FOR UPDATE`, [[from, to]])
    const add = 'UPDATE accounts SET balance = balance + $2::numeric WHERE wallet_address = $1'
    await client.query(add, [from, `-${debit}`])
    await client.query(add, [to, credit])
    await client.query('DELETE FROM holds WHERE payment_id = $1', [paymentId])
  }

  /** Leaves a mark, so that a call that was stopped inside `hold` holds nothing after the end of its payment. */
  async release(paymentId: string, walletAddress: string) {
    const mark = `INSERT INTO holds (payment_id, wallet_address, amount, released)
      SELECT $1, wallet_address, 0, true FROM accounts WHERE wallet_address = $2 FOR UPDATE
      ON CONFLICT (payment_id) DO UPDATE SET amount = 0, released = true`
    await this.pool.query(mark, [paymentId, walletAddress])
  }
}
