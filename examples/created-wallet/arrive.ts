import type { Sql } from 'create-open-payments-server/wallet/sql'
import type { Wallet } from 'create-open-payments-server/wallet/wallet'
import type { IncomingPaymentServices } from 'open-payments-server'

/** Records funds that arrive from outside of the wallet, and credits them to the account, in one transaction. */
export function arrive(
  { database, ledger, resources }: Pick<Wallet, 'database' | 'ledger' | 'resources'>,
  incomingPaymentId: string,
  transfer: Parameters<IncomingPaymentServices['receive']>[1],
  /** What else belongs to the arrival, such as the claim on the wallet that it came from. */
  more: (sql: Sql) => Promise<void> = async () => {},
): ReturnType<IncomingPaymentServices['receive']> {
  return database.transaction(async (sql, store) => {
    const { incomingPayments } = resources.within(store)
    const received = await incomingPayments.receive(incomingPaymentId, transfer)
    if (received.ok && received.changed) {
      const { transferId: paymentId, amount } = transfer
      const to = received.payment.walletAddress
      const values = { debit: '0', credit: amount.value }
      await ledger.move(sql, { paymentId, from: 'outside', to, ...values })
    }
    if (received.ok) await more(sql)
    return received
  })
}
