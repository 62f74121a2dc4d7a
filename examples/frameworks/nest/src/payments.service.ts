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
      switch (event.type) {
        case 'outgoing-payment.created':
          return payOwn(this.pool, resources, event, (client, transfer) =>
            this.accounts.move(client, transfer),
          )
        case 'outgoing-payment.completed':
        case 'outgoing-payment.failed':
        case 'outgoing-payment.declined':
          return this.accounts.release(event.outgoingPaymentId, event.walletAddress)
        case 'incoming-payment.received': {
          const insert = 'INSERT INTO notices VALUES ($1, $2, $3) ON CONFLICT DO NOTHING'
          await this.pool.query(insert, [event.id, event.walletAddress, event.type])
        }
      }
    }
  }
}
