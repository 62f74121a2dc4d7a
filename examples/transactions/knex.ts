import type { Knex } from 'knex'
import type { MayPay, ReceivedFunds } from 'open-payments-server'
import { fromKnex, postgresStore } from 'open-payments-server/postgres'
import { endPayment, type Outcome } from '../host-transaction/settle-outgoing.js'
import { creditOf, debitOf, hasEnded, holdOf, type Resources } from './ledger.js'

export function creditIncoming(
  db: Knex,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(fromKnex(db), async (trx, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, funds)
    // A repeated report changes nothing: its entries exist.
    if (result.ok && result.changed) {
      await trx('ledger_entries').insert(creditOf(result.payment, funds))
    }
    return result // commits if it is ok
  })
}

export function settleOutgoing(
  db: Knex,
  resources: Resources,
  paymentId: string,
  outcome: Outcome,
) {
  return postgresStore.transaction(fromKnex(db), async (trx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await endPayment(outgoingPayments, paymentId, outcome)
    if (result.ok && result.debit > 0n) {
      await trx('ledger_entries').insert(debitOf(result))
    }
    // After the entries, which lock the account, as in `holdFunds`.
    if (result.ok) await trx('ledger_holds').where({ payment_id: paymentId }).delete()
    return result
  })
}

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: Knex): MayPay {
  return (payment) =>
    postgresStore.transaction(fromKnex(db), async (trx) => {
      const hold = holdOf(payment)
      const { payment_id, account_id } = hold
      // Payments of one account wait here for each other; what follows sees their holds.
      await trx('ledger_accounts').where({ id: account_id }).forUpdate()
      const known = await trx('ledger_holds').where({ payment_id }).first()
      if (known?.released) return hasEnded
      await trx('ledger_holds').where({ payment_id }).delete() // a repeat holds it again
      const entries = await trx('ledger_entries').where({ account_id }).sum('amount').first()
      const holds = await trx('ledger_holds').where({ account_id }).sum('amount').first()
      const balance = BigInt(entries?.sum ?? 0) - BigInt(holds?.sum ?? 0)
      if (balance < BigInt(hold.amount)) return { ok: false, refusal: 'funds_insufficient' }
      if (!payment.isPreview) await trx('ledger_holds').insert(hold)
      return { ok: true }
    })
}
