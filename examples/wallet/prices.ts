import {
  type Amount,
  type Asset,
  amountValueMax,
  type Price,
  type PriceRefusal,
  type Pricing,
  parseValue,
} from 'open-payments-server'
import { rateOf } from './rates.js'
import type { Receivers } from './receivers.js'

/** What the wallet takes for itself, on top of what it sends on. */
const feePercent = 1n

/**
 * What payments from this wallet cost. It takes one percent, and changes dollars and euros at a fixed rate.
 * Each step is rounded against the payer, by less than a cent: nobody gains by cutting a payment in pieces.
 */
export function prices(receivers: Receivers): Pricing {
  return {
    async price({ account: walletAddress, receiver: url, debitAmount, receiveAmount }) {
      const found = await receivers(url)
      // Also when the other wallet may answer later: its URL may as well be of nothing, and the client can ask
      // again in either case.
      if (!found.ok) return invalid(found.reason)
      const { asset, wanted, expiresAt } = found.receiver
      const exchange = exchangeOf(walletAddress, asset)
      if (exchange === undefined) return invalid('there is no rate into its currency')
      if (receiveAmount !== undefined && !isIn(asset, receiveAmount)) {
        return invalid('it is paid in another currency than that of receiveAmount')
      }
      const priced =
        debitAmount === undefined
          ? priceToReceive(exchange, receiveAmount ?? wanted)
          : priceToDebit(exchange, debitAmount)
      // No price outlives what it is a price for.
      return 'refusal' in priced || expiresAt === undefined ? priced : { ...priced, expiresAt }
    },
  }
}

/** A payment's two sides, as functions of each other. */
interface Exchange {
  readonly debited: Asset
  readonly received: Asset
  /** The least that has to be debited for so much to arrive. */
  costOf(received: bigint): bigint
  /** What arrives of it. */
  arrivingOf(debited: bigint): bigint
}

function exchangeOf(debited: Asset, received: Asset): Exchange | undefined {
  const rate = rateOf(debited, received)
  if (rate === undefined) return undefined
  const { numerator, denominator } = rate
  return {
    debited,
    received,
    costOf(value) {
      const sent = dividedUp(value * denominator, numerator)
      return sent + dividedUp(sent * feePercent, 100n)
    },
    arrivingOf(value) {
      const sent = (value * 100n) / (100n + feePercent)
      return (sent * numerator) / denominator
    },
  }
}

function priceToReceive(exchange: Exchange, receiveAmount?: Amount): Price | PriceRefusal {
  if (receiveAmount === undefined) return { refusal: 'amount_missing' }
  const debited = exchange.costOf(units(receiveAmount))
  if (debited > amountValueMax) return invalid('it would cost more than can be said')
  return { debitAmount: amountOf(debited, exchange.debited), receiveAmount }
}

function priceToDebit(exchange: Exchange, debitAmount: Amount): Price | PriceRefusal {
  const received = exchange.arrivingOf(units(debitAmount))
  if (received > amountValueMax) return invalid('more would arrive than can be said')
  if (received === 0n) {
    const minDebitAmount = amountOf(exchange.costOf(1n), exchange.debited)
    return { refusal: 'amount_too_small', minDebitAmount }
  }
  return { debitAmount, receiveAmount: amountOf(received, exchange.received) }
}

function invalid(reason: string): PriceRefusal {
  return { refusal: 'receiver_invalid', reason }
}

function isIn(asset: Asset, { assetCode, assetScale }: Amount): boolean {
  return assetCode === asset.assetCode && assetScale === asset.assetScale
}

function amountOf(value: bigint, { assetCode, assetScale }: Asset): Amount {
  return { value: `${value}`, assetCode, assetScale }
}

/** The library has read what it hands in, and asks for nothing of nothing. */
function units({ value }: Amount): bigint {
  return parseValue(value) ?? 0n
}

/** Rounded up. */
function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
