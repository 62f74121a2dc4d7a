import type { Knex } from 'knex'
import type { ReceivedFunds, Totals } from 'open-payments-server'
import { type PostgresTransactions, postgresStore } from 'open-payments-server/postgres'
import { creditOf, debitOf, type Resources } from './ledger.js'

function transactionsOf(db: Knex): PostgresTransactions<Knex.Transaction> {
  return {
    transaction: (work) => db.transaction(work, { isolationLevel: 'read committed' }),
    async query(trx, text, values) {
      const bindings: unknown[] = []
      const statement = text.replace(/\$(\d+)/g, (_, number) => {
        bindings.push(values[number - 1])
        return '?'
      })
      return (await trx.raw(statement, bindings as Knex.Value[])).rows
    },
  }
}

export function creditIncoming(
  db: Knex,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(transactionsOf(db), async (trx, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, funds)
    // A repeated report changes nothing: its entries exist.
    if (result.ok && result.changed) {
      await trx('ledger_entries').insert(creditOf(result.payment, funds))
    }
    return result // commits if it is ok
  })
}

export function settleOutgoing(db: Knex, resources: Resources, paymentId: string, totals: Totals) {
  return postgresStore.transaction(transactionsOf(db), async (trx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
    if (result.ok && result.changed && result.payment.sent !== '0') {
      await trx('ledger_entries').insert(debitOf(result.payment))
    }
    return result
  })
}
