import { Injectable } from '@nestjs/common'
import type { EventHandler, PriceAnswer, PriceRequest, Store, Wallet } from 'open-payments-server'
import type { OutgoingPaymentEvent } from 'open-payments-server/core'
import { postgresStore } from 'open-payments-server/postgres'
import { Pool, type PoolClient } from 'pg'
import { AccountsService } from './accounts.service.js'

/** Prices payments between accounts of the wallet, and carries them out. */
@Injectable()
export class PaymentsService {
  constructor(
    private readonly pool: Pool,
    private readonly accounts: AccountsService,
  ) {}

  async price(
    { resources: { incomingPayments } }: Wallet,
    { account, receiver, debitAmount, receiveAmount }: PriceRequest,
  ): Promise<PriceAnswer> {
    const id = incomingPayments.idOf(receiver)
    const payment = id && (await incomingPayments.get(id))
    if (!payment || payment.completed || payment.expiresAt < Date.now()) {
      return { ok: false, refusal: 'receiver_invalid' }
    }
    const { asset, incomingAmount, received, walletAddress, expiresAt } = payment
    if (account.assetCode !== asset.assetCode || account.assetScale !== asset.assetScale) {
      return { ok: false, refusal: 'receiver_invalid', reason: 'there is no exchange rate' }
    }
    const left = incomingAmount && BigInt(incomingAmount.value) - BigInt(received)
    const value = (debitAmount ?? receiveAmount)?.value ?? left?.toString()
    if (value === undefined) return { ok: false, refusal: 'amount_missing' }
    if (left !== undefined && BigInt(value) > left) return { ok: false, refusal: 'amount_invalid' }
    const amount = { value, ...asset }
    return {
      ok: true,
      debitAmount: amount,
      receiveAmount: amount,
      receiverWalletAddress: walletAddress,
      expiresAt,
    }
  }

  /** Handles each event at least once. */
  handle({ resources }: Wallet): EventHandler {
    return async (event) => {
      if (event.type === 'outgoing-payment.created') await this.pay(resources, event)
      if (event.type === 'outgoing-payment.failed') {
        await this.accounts.release(event.outgoingPaymentId)
      }
      if (event.type === 'incoming-payment.received') {
        const insert = 'INSERT INTO notices VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
        await this.pool.query(insert, [event.id, event.walletAddress, event.type])
      }
    }
  }

  /** All that belongs to a payment takes effect in one transaction, so it may run again. */
  private async pay(resources: Wallet['resources'], event: OutgoingPaymentEvent) {
    const { outgoingPaymentId: paymentId, debitAmount, receiveAmount } = event
    const begun = await resources.outgoingPayments.begin(paymentId)
    if (!begun.ok && begun.refusal !== 'payment_begun') return
    const incomingPaymentId = resources.incomingPayments.idOf(event.receiver) ?? ''
    const work = async (client: PoolClient, store: Store) => {
      const { incomingPayments, outgoingPayments } = resources.within(store)
      const arrival = { transferId: paymentId, amount: receiveAmount }
      const received = await incomingPayments.receive(incomingPaymentId, arrival)
      if (!received.ok) return received
      const totals = { sentAmount: debitAmount, deliveredAmount: receiveAmount }
      const sent = await outgoingPayments.reportSent(paymentId, totals)
      if (!sent.ok) throw new Error(`${paymentId}: ${sent.reason}`)
      if (received.changed) {
        const [from, to] = [event.walletAddress, received.payment.walletAddress]
        const amounts = { debit: debitAmount.value, credit: receiveAmount.value }
        await this.accounts.move(client, { paymentId, from, to, ...amounts })
      }
      return received
    }
    const received = await postgresStore.transaction(this.pool, work)
    if (!received.ok) await resources.outgoingPayments.fail(paymentId, { reason: received.reason })
  }

  async releaseHolds({ resources }: Wallet) {
    await this.accounts.releaseEnded(async (paymentId) => {
      const payment = await resources.outgoingPayments.get(paymentId)
      return payment !== undefined && payment.endedAt === undefined
    })
    return { more: false }
  }
}
