import type { MayPay, ReceivedFunds } from 'open-payments-server'
import { fromTypeorm, postgresStore } from 'open-payments-server/postgres'
import { type DataSource, EntitySchema } from 'typeorm'
import { endPayment, type Outcome } from '../host-transaction/settle-outgoing.js'
import {
  creditOf,
  debitOf,
  type Entry,
  type Hold,
  hasEnded,
  holdOf,
  type Resources,
} from './ledger.js'

export const ledgerEntries = new EntitySchema<Entry>({
  name: 'ledger_entries',
  columns: {
    transfer_id: { type: 'text', primary: true },
    account_id: { type: 'text', primary: true },
    amount: { type: 'numeric', precision: 20, scale: 0 },
  },
})

export const ledgerHolds = new EntitySchema<Hold>({
  name: 'ledger_holds',
  columns: {
    payment_id: { type: 'text', primary: true },
    account_id: { type: 'text' },
    amount: { type: 'numeric', precision: 20, scale: 0 },
    released: { type: 'boolean', default: false },
  },
})

export const ledgerAccounts = new EntitySchema<{ id: string }>({
  name: 'ledger_accounts',
  columns: { id: { type: 'text', primary: true } },
})

export function creditIncoming(
  db: DataSource,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(fromTypeorm(db), async (manager, store) => {
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
  outcome: Outcome,
) {
  return postgresStore.transaction(fromTypeorm(db), async (manager, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await endPayment(outgoingPayments, paymentId, outcome)
    if (result.ok && result.debit > 0n) {
      await manager.insert(ledgerEntries, debitOf(result))
    }
    // After the entries, which lock the account, as in `holdFunds`.
    if (result.ok) await manager.delete(ledgerHolds, { payment_id: paymentId })
    return result
  })
}

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: DataSource): MayPay {
  return (payment) =>
    postgresStore.transaction(fromTypeorm(db), async (manager) => {
      const hold = holdOf(payment)
      const { payment_id, account_id } = hold
      const lock = { mode: 'pessimistic_write' } as const
      // Payments of one account wait here for each other; what follows sees their holds.
      await manager.findOne(ledgerAccounts, { where: { id: account_id }, lock })
      const known = await manager.findOneBy(ledgerHolds, { payment_id })
      if (known?.released) return hasEnded
      await manager.delete(ledgerHolds, { payment_id }) // a repeat holds it again
      // `manager.sum` rounds to a number.
      const sumOf = async (table: typeof ledgerEntries | typeof ledgerHolds) => {
        const rows = manager.createQueryBuilder<Entry | Hold>(table, 'row')
        const own = rows.select('SUM(row.amount)', 'sum').where({ account_id })
        return BigInt((await own.getRawOne())?.sum ?? 0)
      }
      const balance = (await sumOf(ledgerEntries)) - (await sumOf(ledgerHolds))
      if (balance < BigInt(hold.amount)) return { ok: false, refusal: 'funds_insufficient' }
      if (!payment.isPreview) await manager.insert(ledgerHolds, hold)
      return { ok: true }
    })
}
