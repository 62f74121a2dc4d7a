import { sql } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { numeric, pgTable, text } from 'drizzle-orm/pg-core'
import type { ReceivedFunds, Totals } from 'open-payments-server'
import { type PostgresTransactions, postgresStore } from 'open-payments-server/postgres'
import { creditOf, debitOf, type Resources } from './ledger.js'

const ledgerEntries = pgTable('ledger_entries', {
  transfer_id: text().notNull(),
  account_id: text().notNull(),
  amount: numeric({ precision: 20, scale: 0 }).notNull(),
})

type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]

function transactionsOf(db: NodePgDatabase): PostgresTransactions<Transaction> {
  return {
    transaction: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    async query(tx, text, values) {
      // Drizzle numbers the parameters itself.
      const parts = text.split(/\$(\d+)/).map((part, i) => {
        return i % 2 === 0 ? sql.raw(part) : sql`${sql.param(values[Number(part) - 1])}`
      })
      return (await tx.execute(sql.join(parts))).rows
    },
  }
}

export function creditIncoming(
  db: NodePgDatabase,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(transactionsOf(db), async (tx, store) => {
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
  totals: Totals,
) {
  return postgresStore.transaction(transactionsOf(db), async (tx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
    if (result.ok && result.changed && result.payment.sent !== '0') {
      await tx.insert(ledgerEntries).values(debitOf(result.payment))
    }
    return result
  })
}
