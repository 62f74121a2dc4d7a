import type { MayPay, ReceivedFunds } from 'open-payments-server'
import { fromPrisma, postgresStore } from 'open-payments-server/postgres'
import { endPayment, type Outcome } from '../host-transaction/settle-outgoing.js'
import type { PrismaClient } from './generated/client.ts'
import { creditOf, debitOf, hasEnded, holdOf, type Resources } from './ledger.js'

export function creditIncoming(
  db: PrismaClient,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(fromPrisma(db), async (tx, store) => {
    const { incomingPayments } = resources.within(store)
    const result = await incomingPayments.receive(paymentId, funds)
    // A repeated report changes nothing: its entries exist.
    if (result.ok && result.changed) {
      await tx.ledger_entries.createMany({ data: creditOf(result.payment, funds) })
    }
    return result // commits if it is ok
  })
}

export function settleOutgoing(
  db: PrismaClient,
  resources: Resources,
  paymentId: string,
  outcome: Outcome,
) {
  return postgresStore.transaction(fromPrisma(db), async (tx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await endPayment(outgoingPayments, paymentId, outcome)
    if (result.ok && result.debit > 0n) {
      await tx.ledger_entries.createMany({ data: debitOf(result) })
    }
    // After the entries, which lock the account, as in `holdFunds`.
    if (result.ok) await tx.ledger_holds.deleteMany({ where: { payment_id: paymentId } })
    return result
  })
}

/** Holds what a payment debits, or refuses it: `policy.mayPay`. */
export function holdFunds(db: PrismaClient): MayPay {
  return (payment) =>
    postgresStore.transaction(fromPrisma(db), async (tx) => {
      const hold = holdOf(payment)
      const { payment_id, account_id } = hold
      // Payments of one account wait here for each other; what follows sees their holds.
      await tx.$queryRaw`SELECT id FROM ledger_accounts WHERE id = ${account_id} FOR UPDATE`
      const known = await tx.ledger_holds.findUnique({ where: { payment_id } })
      if (known?.released) return hasEnded
      await tx.ledger_holds.deleteMany({ where: { payment_id } }) // a repeat holds it again
      const sum = { where: { account_id }, _sum: { amount: true } } as const
      const entries = await tx.ledger_entries.aggregate(sum)
      const holds = await tx.ledger_holds.aggregate(sum)
      const { amount } = hold
      const balance =
        BigInt(entries._sum.amount?.toFixed(0) ?? 0) - BigInt(holds._sum.amount?.toFixed(0) ?? 0)
      if (balance < BigInt(amount)) return { ok: false, refusal: 'funds_insufficient' }
      if (!payment.isPreview) await tx.ledger_holds.create({ data: hold })
      return { ok: true }
    })
}
