import type { Kysely } from 'kysely'
import type { ReceivedFunds, Totals } from 'open-payments-server'
import { kyselyStore } from 'open-payments-server-kysely'
import { creditOf, debitOf, type Entry, type Resources } from './ledger.js'

export interface Tables {
  ledger_entries: Entry
}

// #region kysely
export function creditIncoming(
  db: Kysely<Tables>,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return kyselyStore.transaction(
    db,
    async (trx, store) => {
      const { incomingPayments } = resources.within(store)
      const result = await incomingPayments.receive(paymentId, funds)
      // A repeated report changes nothing: its entries exist.
      if (result.ok && result.changed) {
        const credit = creditOf(result.payment, funds)
        await trx.insertInto('ledger_entries').values(credit).execute()
      }
      return result // commits if it is ok
    },
    { dialect: 'postgres' },
  )
}
// #endregion kysely

export function settleOutgoing(
  db: Kysely<Tables>,
  resources: Resources,
  paymentId: string,
  totals: Totals,
) {
  return kyselyStore.transaction(
    db,
    async (trx, store) => {
      const { outgoingPayments } = resources.within(store)
      const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
      if (result.ok && result.changed && result.payment.sent !== '0') {
        await trx.insertInto('ledger_entries').values(debitOf(result.payment)).execute()
      }
      return result
    },
    { dialect: 'postgres' },
  )
}
