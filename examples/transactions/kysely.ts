import type { Kysely } from 'kysely'
import type { MayPay, ReceivedFunds } from 'open-payments-server'
import { kyselyStore } from 'open-payments-server-kysely'
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

export interface Tables {
  ledger_accounts: { id: string }
  ledger_entries: Entry
  ledger_holds: Hold
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
  outcome: Outcome,
) {
  return kyselyStore.transaction(
    db,
    async (trx, store) => {
      const { outgoingPayments } = resources.within(store)
      const result = await endPayment(outgoingPayments, paymentId, outcome)
      if (result.ok && result.debit > 0n) {
        await trx.insertInto('ledger_entries').values(debitOf(result)).execute()
      }
      // After the entries, which lock the account, as in `holdFunds`.
      if (result.ok)
        await trx.deleteFrom('ledger_holds').where('payment_id', '=', paymentId).execute()
      return result
    },
    { dialect: 'postgres' },
  )
}

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: Kysely<Tables>): MayPay {
  return (payment) =>
    kyselyStore.transaction(
      db,
      async (trx) => {
        const hold = holdOf(payment)
        const accounts = trx.selectFrom('ledger_accounts').select('id')
        // Payments of one account wait here for each other; what follows sees their holds.
        await accounts.where('id', '=', hold.account_id).forUpdate().execute()
        const holds = trx.selectFrom('ledger_holds').select('released')
        const known = await holds.where('payment_id', '=', hold.payment_id).executeTakeFirst()
        if (known?.released) return hasEnded
        // A repeat holds it again.
        await trx.deleteFrom('ledger_holds').where('payment_id', '=', hold.payment_id).execute()
        const sumOf = (table: 'ledger_entries' | 'ledger_holds') =>
          trx
            .selectFrom(table)
            .where('account_id', '=', hold.account_id)
            .select(({ fn }) => fn.sum<string | null>('amount').as('sum'))
            .executeTakeFirstOrThrow()
        const [entries, held] = [await sumOf('ledger_entries'), await sumOf('ledger_holds')]
        const balance = BigInt(entries.sum ?? 0) - BigInt(held.sum ?? 0)
        if (balance < BigInt(hold.amount)) return { ok: false, refusal: 'funds_insufficient' }
        if (!payment.isPreview) await trx.insertInto('ledger_holds').values(hold).execute()
        return { ok: true }
      },
      { dialect: 'postgres' },
    )
}
