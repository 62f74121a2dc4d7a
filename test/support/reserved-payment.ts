import type { GrantedItem } from '../../src/core/access.js'
import { reserveOutgoingPayment } from '../../src/core/outgoing-payment/create.js'

const alice = 'https://wallet.example/alice'
export const usd = (value: number) => ({ value: String(value), assetCode: 'USD', assetScale: 2 })
export const policy = { holdMs: 1_000, retentionMs: 10_000, decideMs: 30, lateMs: 200 }

export const item: GrantedItem = {
  itemId: '1',
  label: 'a',
  type: 'outgoing-payment',
  actions: ['create'],
  identifier: alice,
  limits: { debitAmount: usd(100) },
}

/** The request that reserves the payment. */
export const request = {
  commandId: 'first',
  client: 'https://shop.example',
  requestHash: 'hash',
  grantId: 'grant',
}

/** Decides at 1,000 about a payment of 60 dollars, about which the host is asked. */
export const reserve = (more: object = {}) =>
  reserveOutgoingPayment(
    {
      ...request,
      id: 'payment',
      namespace: '',
      walletAddress: alice,
      receiver: 'https://shop.example/1',
      debitAmount: usd(60),
      receiveAmount: usd(60),
      candidates: [{ item }],
      askedAt: 1_000,
      ...more,
    },
    1_000,
    { reservations: policy, budgets: policy },
  )

export const reservation = reserve()
if (!reservation.ok) throw new Error(reservation.reason)
export const { record: reserved, budget } = reservation
