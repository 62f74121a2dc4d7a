import type {
  Amount,
  Asset,
  IncomingPaymentServices,
  PriceAnswer,
  Pricing,
} from 'open-payments-server'
import { amountValueMax } from 'open-payments-server/core'
import type { Exchange, Exchanges } from './exchange.js'

/** An incoming payment that accepts funds. */
export interface Receiver {
  readonly asset: Asset
  /** What is still missing, if the payment has an amount. */
  readonly wanted?: Amount
  readonly walletAddress?: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number
}

/** Finds the receiver of a payment by its URL. Clients are told the public reason, and the operator the other. */
export type Receivers = (
  url: string,
) => Promise<
  | { readonly ok: true; readonly receiver: Receiver }
  | { readonly ok: false; readonly publicReason?: string; readonly reason?: string }
>

/**
 * Finds the incoming payments of this wallet: `resources.incomingPayments`. Payments to other wallets need a rail
 * between the two: docs/prices.md and docs/ilp.md of open-payments-server have the code to add.
 */
export function ownReceivers(
  payments: Pick<IncomingPaymentServices, 'idOf' | 'get'>,
  elsewhere: Receivers = async () => none('the receiver is in another wallet'),
): Receivers {
  return async (url) => {
    const id = payments.idOf(url)
    if (id === undefined) return elsewhere(url)
    const payment = await payments.get(id)
    if (payment === undefined) return none('the incoming payment does not exist')
    if (payment.status !== 'open') return none('the incoming payment accepts no further funds')
    const { incomingAmount, receivedAmount, walletAddress, expiresAt } = payment
    const { value, ...asset } = receivedAmount
    if (incomingAmount === undefined)
      return { ok: true, receiver: { asset, walletAddress, expiresAt } }
    const wanted = { ...asset, value: `${BigInt(incomingAmount.value) - BigInt(value)}` }
    return { ok: true, receiver: { asset, wanted, walletAddress, expiresAt } }
  }
}

/** Prices payments to these receivers, at these rates. */
export function pricingOf(receivers: Receivers, exchanges: Exchanges): Pricing {
  return {
    async price({ account, receiver: url, debitAmount, receiveAmount }) {
      const found = await receivers(url)
      if (!found.ok) {
        const { publicReason, reason } = found
        const reasons = { ...(publicReason && { publicReason }), ...(reason && { reason }) }
        return { ok: false, refusal: 'receiver_invalid', ...reasons }
      }
      const { asset, wanted, walletAddress: receiverWalletAddress, expiresAt } = found.receiver
      const exchange = exchanges(account, asset)
      if (exchange === undefined) {
        const publicReason = 'there is no exchange rate for its currency'
        return { ok: false, refusal: 'receiver_invalid', publicReason }
      }
      if (receiveAmount !== undefined && !isSameAsset(asset, receiveAmount)) {
        return invalid('receiveAmount is not in the currency of the receiver')
      }
      const priced =
        debitAmount === undefined
          ? priceToReceive(exchange, account, receiveAmount ?? wanted)
          : priceToDebit(exchange, debitAmount, account, asset)
      if (!priced.ok) return priced
      if (wanted !== undefined && BigInt(priced.receiveAmount.value) > BigInt(wanted.value)) {
        return invalid('the receiver does not accept that much')
      }
      return {
        ...priced,
        ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
        ...(expiresAt !== undefined && { expiresAt }), // a quote expires with its receiver at the latest
      }
    },
  }
}

function priceToReceive(exchange: Exchange, account: Asset, receiveAmount?: Amount): PriceAnswer {
  if (receiveAmount === undefined) return { ok: false, refusal: 'amount_missing' }
  const debited = exchange.costOf(BigInt(receiveAmount.value))
  if (debited > amountValueMax) return invalid('the debit amount would exceed 64 bits')
  return { ok: true, debitAmount: amountOf(debited, account), receiveAmount }
}

function priceToDebit(
  exchange: Exchange,
  debitAmount: Amount,
  account: Asset,
  asset: Asset,
): PriceAnswer {
  const received = exchange.arrivingOf(BigInt(debitAmount.value))
  if (received > amountValueMax) return invalid('the receive amount would exceed 64 bits')
  if (received === 0n) {
    const minDebitAmount = amountOf(exchange.costOf(1n), account)
    return { ok: false, refusal: 'amount_too_small', minDebitAmount }
  }
  return { ok: true, debitAmount, receiveAmount: amountOf(received, asset) }
}

export function isSameAsset(one: Asset, other: Asset): boolean {
  return one.assetCode === other.assetCode && one.assetScale === other.assetScale
}

function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: `${value}`, assetCode, assetScale }
}

function none(publicReason: string) {
  return { ok: false, publicReason } as const
}

function invalid(publicReason: string): PriceAnswer {
  return { ok: false, refusal: 'amount_invalid', publicReason }
}
