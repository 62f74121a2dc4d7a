import type { ReceivedFunds, Totals } from 'open-payments-server'
import { type PostgresTransactions, postgresStore } from 'open-payments-server/postgres'
import { type DataSource, type EntityManager, EntitySchema } from 'typeorm'
import { creditOf, debitOf, type Entry, type Resources } from './ledger.js'

export const ledgerEntries = new EntitySchema<Entry>({
  name: 'ledger_entries',
  columns: {
    transfer_id: { type: 'text', primary: true },
    account_id: { type: 'text', primary: true },
    amount: { type: 'numeric', precision: 20, scale: 0 },
  },
})

function transactionsOf(db: DataSource): PostgresTransactions<EntityManager> {
  return {
    transaction: (work) => db.transaction('READ COMMITTED', work),
    async query({ queryRunner }, text, values) {
      // With `true`, the rows of an UPDATE have the same form as those of a SELECT.
      const result = await queryRunner?.query(text, [...values], true)
      return result?.records ?? []
    },
  }
}

export function creditIncoming(
  db: DataSource,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(transactionsOf(db), async (manager, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, funds)
    // A repeated report changes nothing: its entries exist.
    if (result.ok && result.changed) {
      await manager.insert(ledgerEntries, creditOf(result.payment, funds))
    }
    return result // commits if it is ok
  })
}

export function settleOutgoing(
  db: DataSource,
  resources: Resources,
  paymentId: string,
  totals: Totals,
) {
  return postgresStore.transaction(transactionsOf(db), async (manager, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
    if (result.ok && result.changed && result.payment.sent !== '0') {
      await manager.insert(ledgerEntries, debitOf(result.payment))
    }
    return result
  })
}
