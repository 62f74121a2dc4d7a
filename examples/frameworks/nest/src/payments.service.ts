import { Injectable } from '@nestjs/common'
import type { EventHandler, Wallet } from 'open-payments-server'
import { Pool } from 'pg'
import { AccountsService } from './accounts.service.js'
import { payOwn } from './own-accounts.js'

/** Carries out payments between accounts of the wallet. */
@Injectable()
export class PaymentsService {
  constructor(
    private readonly pool: Pool,
    private readonly accounts: AccountsService,
  ) {}

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
}
