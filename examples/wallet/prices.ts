import type { Amount, Asset, PriceAnswer, Pricing } from 'open-payments-server'
import { amountValueMax, parseValue } from 'open-payments-server/core'
import { railPaymentMax } from '../ilp/rail.js'
import { type Receivers, sameAsset } from '../ilp/receivers.js'
import { rateOf } from './rates.js'

/** The wallet's fee, added to the amount that it sends. */
export interface Fee {
  /** A part of that amount, in ten thousandths. */
  readonly basisPoints: bigint
  /** In hundredths of the currency of the account. */
  readonly fixed: bigint
}

export const noFee: Fee = { basisPoints: 0n, fixed: 0n }

/**
 * Prices payments from this wallet. It charges a fee, and exchanges currencies at a fixed rate. Each step is rounded
 * against the payer, by less than a cent, so that splitting a payment gains nothing.
 */
export function prices(receivers: Receivers, fee = noFee): Pricing {
  return {
    async price({ account: walletAddress, receiver: url, debitAmount, receiveAmount }) {
      const found = await receivers(url)
      // Also for a wallet that may respond later: its URL may be worthless, and the client can retry in
      // either case.
      if (!found.ok) {
        const { reason, publicReason } = found
        const told = publicReason === undefined ? {} : { publicReason }
        return { ok: false, refusal: 'receiver_invalid', reason, ...told }
      }
      const { asset, wanted, ilp, walletAddress: receiverWalletAddress, expiresAt } = found.receiver
      const exchange = exchangeOf(walletAddress, asset, fee)
      if (exchange === undefined) {
        const publicReason = 'this wallet has no exchange rate for its currency'
        return { ok: false, refusal: 'receiver_invalid', publicReason }
      }
      if (receiveAmount !== undefined && !sameAsset(asset, receiveAmount)) {
        return unpriceable('receiveAmount is not in the currency of the receiver')
      }
      const priced =
        debitAmount === undefined
          ? priceToReceive(exchange, receiveAmount ?? wanted)
          : priceToDebit(exchange, debitAmount)
      if (!priced.ok) return priced
      if (ilp !== undefined && units(priced.debitAmount) > railPaymentMax) {
        return unpriceable('a payment to another wallet is at most 10,000.00')
      }
      if (wanted !== undefined && units(priced.receiveAmount) > units(wanted)) {
        return unpriceable('the receiver does not accept that much')
      }
      return {
        ...priced,
        // The owner's condition on receivers needs it.
        ...(receiverWalletAddress !== undefined && { receiverWalletAddress }),
        // A quote expires with its receiver at the latest.
        ...(expiresAt !== undefined && { expiresAt }),
      }
    },
  }
}

/** The two sides of a payment, as functions of each other. */
interface Exchange {
  readonly debited: Asset
  readonly received: Asset
  /** Returns the minimum debit with which this amount arrives. */
  costOf(received: bigint): bigint
  /** Returns the amount that arrives. */
  arrivingOf(debited: bigint): bigint
}

function exchangeOf(
  debited: Asset,
  received: Asset,
  { basisPoints, fixed }: Fee,
): Exchange | undefined {
  const rate = rateOf(debited, received)
  if (rate === undefined) return undefined
  const { numerator, denominator } = rate
  return {
    debited,
    received,
    costOf(value) {
      const sent = dividedUp(value * denominator, numerator)
      return sent + dividedUp(sent * basisPoints, 10_000n) + fixed
    },
    arrivingOf(value) {
      if (value <= fixed) return 0n
      const sent = ((value - fixed) * 10_000n) / (10_000n + basisPoints)
      return (sent * numerator) / denominator
    },
  }
}

function priceToReceive(exchange: Exchange, receiveAmount?: Amount): PriceAnswer {
  if (receiveAmount === undefined) return { ok: false, refusal: 'amount_missing' }
  const debited = exchange.costOf(units(receiveAmount))
  if (debited > amountValueMax) return unpriceable('the debit amount would exceed 64 bits')
  return { ok: true, debitAmount: amountOf(debited, exchange.debited), receiveAmount }
}

function priceToDebit(exchange: Exchange, debitAmount: Amount): PriceAnswer {
  const received = exchange.arrivingOf(units(debitAmount))
  if (received > amountValueMax) return unpriceable('the receive amount would exceed 64 bits')
  if (received === 0n) {
    const minDebitAmount = amountOf(exchange.costOf(1n), exchange.debited)
    return { ok: false, refusal: 'amount_too_small', minDebitAmount }
  }
  return { ok: true, debitAmount, receiveAmount: amountOf(received, exchange.received) }
}

function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: `${value}`, assetCode, assetScale }
}

/** The library has validated the amounts and never passes zero. */
function units({ value }: Amount): bigint {
  return parseValue(value) ?? 0n
}

/** Divides and rounds up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

function unpriceable(publicReason: string): PriceAnswer {
  return { ok: false, refusal: 'amount_invalid', publicReason }
}
