import { Injectable } from '@nestjs/common'
import type { EventHandler, PriceRequest, Wallet } from 'open-payments-server'
import { Pool } from 'pg'
import { AccountsService } from './accounts.service.js'
import { payOwn, priceOfOwn } from './own-accounts.js'

/** Prices payments between accounts of the wallet, and carries them out. */
@Injectable()
export class PaymentsService {
  constructor(
    private readonly pool: Pool,
    private readonly accounts: AccountsService,
  ) {}

  price({ resources }: Wallet, request: PriceRequest) {
    return priceOfOwn(resources, request)
  }

  /** Handles each event at least once. */
  handle({ resources }: Wallet): EventHandler {
    return async (event) => {
      if (event.type === 'outgoing-payment.created') {
        await payOwn(this.pool, resources, event, (client, transfer) =>
          this.accounts.move(client, transfer),
        )
      }
      if (event.type === 'outgoing-payment.failed') {
        await this.accounts.release(event.outgoingPaymentId)
      }
      if (event.type === 'incoming-payment.received') {
        const insert = 'INSERT INTO notices VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
        await this.pool.query(insert, [event.id, event.walletAddress, event.type])
      }
    }
  }

  async releaseHolds({ resources }: Wallet) {
    await this.accounts.releaseEnded(async (paymentId) => {
      const payment = await resources.outgoingPayments.get(paymentId)
      return payment !== undefined && payment.endedAt === undefined
    })
    return { more: false }
  }
}
