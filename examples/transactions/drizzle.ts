import { eq, sql, sum } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { boolean, numeric, pgTable, text } from 'drizzle-orm/pg-core'
import type { MayPay, ReceivedFunds } from 'open-payments-server'
import { fromDrizzle, postgresStore } from 'open-payments-server/postgres'
import { endPayment, type Outcome } from '../host-transaction/settle-outgoing.js'
import { creditOf, debitOf, hasEnded, holdOf, type Resources } from './ledger.js'

const ledgerEntries = pgTable('ledger_entries', {
  transfer_id: text().notNull(),
  account_id: text().notNull(),
  amount: numeric({ precision: 20, scale: 0 }).notNull(),
})

const ledgerHolds = pgTable('ledger_holds', {
  payment_id: text().primaryKey(),
  account_id: text().notNull(),
  amount: numeric({ precision: 20, scale: 0 }).notNull(),
  released: boolean().notNull().default(false),
})

const ledgerAccounts = pgTable('ledger_accounts', { id: text().primaryKey() })

export function creditIncoming(
  db: NodePgDatabase,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(fromDrizzle(db, sql), async (tx, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, funds)
    // A repeated report changes nothing: its entries exist.
    if (result.ok && result.changed) {
      await tx.insert(ledgerEntries).values(creditOf(result.payment, funds))
    }
    return result // commits if it is ok
  })
}

export function settleOutgoing(
  db: NodePgDatabase,
  resources: Resources,
  paymentId: string,
  outcome: Outcome,
) {
  return postgresStore.transaction(fromDrizzle(db, sql), async (tx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await endPayment(outgoingPayments, paymentId, outcome)
    if (result.ok && result.debit > 0n) {
      await tx.insert(ledgerEntries).values(debitOf(result))
    }
    // After the entries, which lock the account, as in `holdFunds`.
    if (result.ok) await tx.delete(ledgerHolds).where(eq(ledgerHolds.payment_id, paymentId))
    return result
  })
}

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: NodePgDatabase): MayPay {
  return (payment) =>
    postgresStore.transaction(fromDrizzle(db, sql), async (tx) => {
      const hold = holdOf(payment)
      const account = eq(ledgerAccounts.id, hold.account_id)
      // Payments of one account wait here for each other; what follows sees their holds.
      await tx.select().from(ledgerAccounts).where(account).for('update')
      const same = eq(ledgerHolds.payment_id, hold.payment_id)
      const [known] = await tx.select().from(ledgerHolds).where(same)
      if (known?.released) return hasEnded
      await tx.delete(ledgerHolds).where(same) // a repeat holds it again
      const sumOf = async (table: typeof ledgerEntries | typeof ledgerHolds) => {
        const own = eq(table.account_id, hold.account_id)
        const [row] = await tx
          .select({ sum: sum(table.amount) })
          .from(table)
          .where(own)
        return BigInt(row?.sum ?? 0)
      }
      const balance = (await sumOf(ledgerEntries)) - (await sumOf(ledgerHolds))
      if (balance < BigInt(hold.amount)) return { ok: false, refusal: 'funds_insufficient' }
      if (!payment.isPreview) await tx.insert(ledgerHolds).values(hold)
      return { ok: true }
    })
}
