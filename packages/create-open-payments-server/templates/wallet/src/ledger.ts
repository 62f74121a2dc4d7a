import type { RequestedPayment, WalletAddress } from 'open-payments-server'
import type { Database, Row, Sql } from './sql.js'

/**
 * A stub of the accounts of your payment backend: replace it with your own. Keep what it does for the library:
 *
 * - it finds accounts by their wallet address,
 * - it holds the amount of an outgoing payment before the payment is created, so that no account pays what it does not
 *   have, and releases the hold when the payment has ended: for good, because a call that was stopped inside `hold` for
 *   minutes may go on afterwards, and no event would release what it then holds,
 * - it moves money in the transaction in which the library records the payment.
 */
export interface Ledger {
  find(walletAddress: string): Promise<Account | undefined>
  ownedBy(owner: string): Promise<readonly Account[]>
  /** Whether the account has the amount of a payment, apart from what is held for others. */
  covers(payment: HeldPayment): Promise<boolean>
  /** Holds the amount of a payment once, or returns false if the account has less, or the payment has ended. */
  hold(payment: HeldPayment): Promise<boolean>
  /** Ends the hold of a payment that has ended. The account can spend its amount again. */
  release(payment: EndedPayment): Promise<void>
  /**
   * Moves money between two accounts, and ends the hold of the payment, in a transaction of the caller. An address
   * without an account here is outside of this wallet.
   */
  move(sql: Sql, transfer: Transfer): Promise<void>
}

export interface Account extends WalletAddress {
  readonly owner: string
  /** In units of the asset, such as cents, including what is held. */
  readonly balance: bigint
}

type HeldPayment = Pick<RequestedPayment, 'outgoingPaymentId' | 'walletAddress' | 'debitAmount'>

type EndedPayment = Omit<HeldPayment, 'debitAmount'>

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
    covers: (payment) => covers(sql, payment),
    hold: (payment) => transaction((inside) => hold(inside, payment)),
    release: (payment) => transaction((inside) => release(inside, payment)),
    async move(inside, { paymentId, from, to, debit, credit }) {
      // In one order, so that two transfers in opposite directions do not wait for each other.
      for (const each of [from, to].sort()) await lock(inside, each)
      await inside('DELETE FROM holds WHERE payment_id = ?', paymentId)
      // Without CAST, MariaDB adds text as a floating-point number.
      const add = `UPDATE accounts SET balance = balance + CAST(? AS DECIMAL(20))
        WHERE wallet_address = ?`
      await inside(add, `-${debit}`, from)
      await inside(add, credit, to)
    },
  }
}

async function covers(
  sql: Sql,
  { outgoingPaymentId, walletAddress, debitAmount }: HeldPayment,
): Promise<boolean> {
  const available = await integer(
    sql,
    `SELECT balance - (
        SELECT COALESCE(SUM(amount), 0) FROM holds
        WHERE wallet_address = ? AND payment_id <> ? AND released = 0
      ) FROM accounts WHERE wallet_address = ?`,
    walletAddress,
    outgoingPaymentId,
    walletAddress,
  )
  return available >= BigInt(debitAmount.value)
}

async function hold(sql: Sql, payment: HeldPayment): Promise<boolean> {
  const { outgoingPaymentId, walletAddress, debitAmount } = payment
  await lock(sql, walletAddress)
  const ended = 'SELECT 1 FROM holds WHERE payment_id = ? AND released = 1'
  if ((await sql(ended, outgoingPaymentId)).length > 0) return false
  if (!(await covers(sql, payment))) return false
  // The wallet may be asked again about a payment if an earlier answer was lost.
  await sql('DELETE FROM holds WHERE payment_id = ?', outgoingPaymentId)
  const insert = 'INSERT INTO holds (payment_id, wallet_address, amount) VALUES (?, ?, ?)'
  await sql(insert, outgoingPaymentId, walletAddress, debitAmount.value)
  return true
}

/** Leaves a row without an amount, the mark that nothing may be held for the payment any more. */
async function release(sql: Sql, { outgoingPaymentId, walletAddress }: EndedPayment) {
  await lock(sql, walletAddress)
  await sql('DELETE FROM holds WHERE payment_id = ?', outgoingPaymentId)
  const mark = `INSERT INTO holds (payment_id, wallet_address, amount, released)
    VALUES (?, ?, 0, 1)`
  await sql(mark, outgoingPaymentId, walletAddress)
}

/** Keeps other transactions from changing an account until this one ends, in every database. */
export async function lock(sql: Sql, walletAddress: string): Promise<void> {
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

/** Opens an account, unless it exists. */
export async function openAccount({ sql }: Database, account: Account): Promise<void> {
  const { url, owner, publicName = owner, assetCode, assetScale, balance } = account
  const [known] = await sql('SELECT 1 FROM accounts WHERE wallet_address = ?', url)
  if (known !== undefined) return
  await sql(
    `INSERT INTO accounts (wallet_address, owner, public_name, asset_code, asset_scale, balance)
      VALUES (?, ?, ?, ?, ?, ?)`,
    url,
    owner,
    publicName,
    assetCode,
    assetScale,
    `${balance}`,
  )
}

/** Opens two accounts for a first try, with 100 dollars each. */
export async function openDemoAccounts(database: Database, baseUrl: string): Promise<void> {
  const dollars = { assetCode: 'USD', assetScale: 2, balance: 10_000n }
  const alice = { url: `${baseUrl}/alice`, owner: 'alice', publicName: 'Alice', ...dollars }
  const bob = { url: `${baseUrl}/bob`, owner: 'bob', publicName: 'Bob', ...dollars }
  for (const account of [alice, bob]) await openAccount(database, account)
}
