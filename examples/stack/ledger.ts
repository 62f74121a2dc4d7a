import { eq, sql, sum } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { MayPay } from 'open-payments-server'
import { fromDrizzle, postgresStore } from 'open-payments-server/postgres'
import { accounts, entries, holds } from './tables.js'

type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]
type Reader = Pick<Transaction, 'select'>
type Transfer = Record<'id' | 'from' | 'to', string> & { amount: bigint }

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: NodePgDatabase): MayPay {
  return ({
    outgoingPaymentId: paymentId,
    walletAddress: account,
    debitAmount,
    isPreview,
  }) =>
    postgresStore.transaction(fromDrizzle(db, sql), async (tx) => {
      await lock(tx, account)
      const same = eq(holds.paymentId, paymentId)
      const [known] = await tx.select().from(holds).where(same)
      // This call was stopped until the payment had ended: nobody waits for its answer.
      if (known?.released) return { ok: false, refusal: 'payment_not_allowed' }
      // The library may ask again about a payment: the hold is the same.
      await tx.delete(holds).where(same)
      const amount = BigInt(debitAmount.value)
      const free = (await balanceOf(tx, account)) - (await sumOf(tx, holds, account))
      if (free < amount) return { ok: false, refusal: 'funds_insufficient' }
      if (!isPreview) await tx.insert(holds).values({ paymentId, account, amount })
      return { ok: true }
    })
}

/**
 * Moves money, and ends the hold of the payment, in a transaction of the caller. With a
 * fee, credit what arrives, and the rest to an account of yours.
 */
export async function settle(tx: Transaction, { id, from, to, amount }: Transfer) {
  // In one order, so that opposite transfers do not wait for each other.
  for (const account of [from, to].sort()) await lock(tx, account)
  // A payment of an account to itself is allowed, and changes no balance.
  if (from !== to) {
    const debit = { transferId: id, account: from, amount: -amount }
    await tx.insert(entries).values([debit, { transferId: id, account: to, amount }])
  }
  await tx.delete(holds).where(eq(holds.paymentId, id))
}

/** Ends the hold of a payment for good: `holdFunds` respects the mark. */
export async function release(
  db: NodePgDatabase,
  paymentId: string,
  account: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    await lock(tx, account)
    const mark = { amount: 0n, released: true }
    await tx
      .insert(holds)
      .values({ paymentId, account, ...mark })
      .onConflictDoUpdate({ target: holds.paymentId, set: mark })
  })
}

/** What an account has, including what is held. */
export function balanceOf(db: Reader, account: string): Promise<bigint> {
  return sumOf(db, entries, account)
}

async function sumOf(db: Reader, table: typeof entries | typeof holds, of: string) {
  const total = db.select({ sum: sum(table.amount) }).from(table)
  const [row] = await total.where(eq(table.account, of))
  return BigInt(row?.sum ?? 0)
}

/** Payments of one account wait here for each other; what follows sees their holds. */
async function lock(tx: Transaction, account: string): Promise<void> {
  await tx.select().from(accounts).where(eq(accounts.url, account)).for('update')
}
