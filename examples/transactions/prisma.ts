import type { ReceivedFunds, Totals } from 'open-payments-server'
import { type PostgresTransactions, postgresStore } from 'open-payments-server/postgres'
import type { Prisma, PrismaClient } from './generated/client.ts'
import { creditOf, debitOf, type Resources } from './ledger.js'

type Transaction = Prisma.TransactionClient

function transactionsOf(db: PrismaClient): PostgresTransactions<Transaction> {
  return {
    transaction: (work) => db.$transaction(work, { isolationLevel: 'ReadCommitted' }),
    query: (tx, text, values) => tx.$queryRawUnsafe(text, ...values),
    sqlState(error) {
      const { meta } = error as DriverError
      return meta?.driverAdapterError?.cause?.originalCode
    },
  }
}

/** Where the driver adapter keeps the code of PostgreSQL. */
interface DriverError {
  meta?: { driverAdapterError?: { cause?: { originalCode?: string } } }
}

export function creditIncoming(
  db: PrismaClient,
  resources: Resources,
  paymentId: string,
  funds: ReceivedFunds,
) {
  return postgresStore.transaction(transactionsOf(db), async (tx, store) => {
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
  totals: Totals,
) {
  return postgresStore.transaction(transactionsOf(db), async (tx, store) => {
    const { outgoingPayments } = resources.within(store)
    const result = await outgoingPayments.reportSent(paymentId, { ...totals, final: true })
    if (result.ok && result.changed && result.payment.sent !== '0') {
      await tx.ledger_entries.createMany({ data: debitOf(result.payment) })
    }
    return result
  })
}
