import type { RequestedPayment, WalletAddress } from 'open-payments-server'
import type { Database, Row, Sql } from './sql.js'

/**
 * A stub of the accounts of your payment backend: replace it with your own. Keep what it does for the library:
 *
 * - it finds accounts by their wallet address,
 * - it holds the amount of an outgoing payment before the payment is created, so that no account pays what it does not
 *   have, and releases the hold when the payment has ended or was never created,
 * - it moves money in the transaction in which the library records the payment.
 */
export interface Ledger {
  find(walletAddress: string): Promise<Account | undefined>
  ownedBy(owner: string): Promise<readonly Account[]>
  /** Holds the amount of a payment once per `holdId`, or returns false if the account has less. A repeat renews it. */
  hold(payment: HeldPayment, now: number): Promise<boolean>
  /** Ends the holds of a payment that were last renewed before an instant. The account can spend their amounts again. */
  release(paymentId: string, before?: number): Promise<void>
  /** The payments with holds that were last renewed before an instant. */
  heldBefore(instant: number): Promise<readonly string[]>
  /** Moves money between two accounts, and ends the holds of the payment, in a transaction of the caller. */
  move(sql: Sql, transfer: Transfer): Promise<void>
}

export interface Account extends WalletAddress {
  readonly owner: string
  /** In units of the asset, such as cents, including what is held. */
  readonly balance: bigint
}

type HeldPayment = Pick<
  RequestedPayment,
  'holdId' | 'outgoingPaymentId' | 'walletAddress' | 'debitAmount'
>

export interface Transfer {
  readonly paymentId: string
  readonly from: string
  readonly to: string
  readonly debit: string
  readonly credit: string
}

export function ledgerOn({ sql, transaction }: Database): Ledger {
  return {
    async find(walletAddress) {
      const [row] = await sql('SELECT * FROM accounts WHERE wallet_address = ?', walletAddress)
      return row && accountOf(row)
    },
    async ownedBy(owner) {
      return (await sql('SELECT * FROM accounts WHERE owner = ?', owner)).map(accountOf)
    },
    hold: (payment, now) => transaction((inside) => hold(inside, payment, now)),
    async release(paymentId, before = Number.MAX_SAFE_INTEGER) {
      await sql('DELETE FROM holds WHERE payment_id = ? AND held_at < ?', paymentId, before)
    },
    async heldBefore(instant) {
      const rows = await sql('SELECT DISTINCT payment_id FROM holds WHERE held_at < ?', instant)
      return rows.map((row) => `${row['payment_id']}`)
    },
    async move(inside, { paymentId, from, to, debit, credit }) {
      // In one order, so that two transfers in opposite directions do not wait for each other.
      for (const each of [from, to].sort()) await lock(inside, each)
      await inside('DELETE FROM holds WHERE payment_id = ?', paymentId)
      const add = 'UPDATE accounts SET balance = balance + ? WHERE wallet_address = ?'
      await inside(add, `-${debit}`, from)
      await inside(add, credit, to)
    },
  }
}

/**
 * Until a payment exists, requests for it can differ in amount and account, and any of them may create it. Each has a
 * hold of its own.
 */
async function hold(
  sql: Sql,
  { holdId, outgoingPaymentId, walletAddress, debitAmount: { value } }: HeldPayment,
  now: number,
): Promise<boolean> {
  await lock(sql, walletAddress)
  const available = await integer(
    sql,
    `SELECT balance - (
        SELECT COALESCE(SUM(amount), 0) FROM holds WHERE wallet_address = ? AND hold_id <> ?
      ) FROM accounts WHERE wallet_address = ?`,
    walletAddress,
    holdId,
    walletAddress,
  )
  if (available < BigInt(value)) return false
  await sql('DELETE FROM holds WHERE hold_id = ?', holdId)
  await sql(
    `INSERT INTO holds (hold_id, payment_id, wallet_address, amount, held_at)
      VALUES (?, ?, ?, ?, ?)`,
    holdId,
    outgoingPaymentId,
    walletAddress,
    value,
    now,
  )
  return true
}

/** Keeps other transactions from changing an account until this one ends, in every database. */
async function lock(sql: Sql, walletAddress: string): Promise<void> {
  await sql('UPDATE accounts SET locks = locks + 1 WHERE wallet_address = ?', walletAddress)
}

/** Returns the only column of the first row, or zero without a row. */
async function integer(sql: Sql, statement: string, ...values: readonly string[]): Promise<bigint> {
  const [row = {}] = await sql(statement, ...values)
  const [column = 0] = Object.values(row)
  return BigInt(`${column}`)
}

function accountOf(row: Row): Account {
  return {
    url: `${row['wallet_address']}`,
    owner: `${row['owner']}`,
    publicName: `${row['public_name']}`,
    assetCode: `${row['asset_code']}`,
    assetScale: Number(row['asset_scale']),
    balance: BigInt(`${row['balance']}`),
  }
}

/** Opens two accounts for a first try, with 100 dollars each, unless they exist. */
export async function openDemoAccounts({ sql }: Database, baseUrl: string): Promise<void> {
  for (const [owner, publicName] of [
    ['alice', 'Alice'],
    ['bob', 'Bob'],
  ] as const) {
    const walletAddress = `${baseUrl}/${owner}`
    const [known] = await sql('SELECT 1 FROM accounts WHERE wallet_address = ?', walletAddress)
    if (known !== undefined) continue
    await sql(
      `INSERT INTO accounts (wallet_address, owner, public_name, asset_code, asset_scale, balance)
        VALUES (?, ?, ?, 'USD', 2, 10000)`,
      walletAddress,
      owner,
      publicName,
    )
  }
}
