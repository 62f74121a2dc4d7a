import type { SendSettings } from 'open-payments-pages'
import type { Clock, IncomingPaymentServices } from 'open-payments-server'
import type { Ledger } from './ledger.js'

const payableMs = 15 * 60_000

/**
 * Finds whom owners can pay: the accounts and the incoming payments of this wallet. For other wallets, add a rail, and
 * `createReceiver` of open-payments-client, which creates the incoming payment there.
 */
export function sendingTo(
  payments: Pick<IncomingPaymentServices, 'idOf' | 'create'>,
  ledger: Pick<Ledger, 'find'>,
  clock: Clock,
): SendSettings {
  return {
    async receiverFor(to) {
      if (payments.idOf(to) !== undefined) return to
      const account = await ledger.find(to)
      if (account === undefined) return undefined
      const created = await payments.create({
        walletAddress: account.url,
        idempotencyKey: crypto.randomUUID(),
        expiresAt: clock.now() + payableMs,
      })
      return created.ok ? created.url : undefined
    },
  }
}
