import {
  type Amount,
  type Asset,
  amountValueMax,
  type IncomingPayment,
  type IncomingPaymentServices,
  type Price,
  type PriceRefusal,
  parseValue,
  type Quotes,
} from '../../src/index.js'

/** What money is worth, in hundredths of a dollar. A real wallet asks a market, and looks at scales too. */
const worth: Readonly<Record<string, bigint>> = { USD: 100n, EUR: 108n }

/** What the wallet takes for itself, on top of what it sends on. */
const feePercent = 1n

type Payments = Pick<IncomingPaymentServices, 'get' | 'idOf'>

/**
 * What payments from this wallet cost. It takes one percent, and changes dollars and euros at a fixed rate.
 * Each step is rounded against the payer, by less than a cent: nobody gains by cutting a payment in pieces.
 */
export function prices(incomingPayments: () => Payments): Quotes {
  return {
    async price({ walletAddress, receiver, debitAmount, receiveAmount }) {
      const payment = await receiving(incomingPayments(), receiver)
      if (payment === undefined) return invalid('there is no such payment here that takes money')
      const exchange = exchangeOf(walletAddress, payment.asset)
      if (exchange === undefined) return invalid('there is no rate into its currency')
      if (receiveAmount !== undefined && !isIn(payment.asset, receiveAmount)) {
        return invalid('it is paid in another currency than that of receiveAmount')
      }
      const priced =
        debitAmount === undefined
          ? priceToReceive(exchange, receiveAmount ?? wantedBy(payment))
          : priceToDebit(exchange, debitAmount)
      // No price outlives what it is a price for.
      return 'refusal' in priced ? priced : { ...priced, expiresAt: payment.expiresAt }
    },
  }
}

/**
 * The incoming payment, as long as it takes money. One in another wallet is not looked for: it would have to
 * be fetched from there, and there is no rail between this wallet and others.
 */
async function receiving(
  payments: Payments,
  receiver: string,
): Promise<IncomingPayment | undefined> {
  const id = payments.idOf(receiver)
  const payment = id === undefined ? undefined : await payments.get(id)
  if (payment === undefined || payment.completed) return undefined
  return Date.now() > payment.expiresAt ? undefined : payment
}

/** What is still to come of the amount that the receiver asked for, if it asked for any. */
function wantedBy({ incomingAmount, received }: IncomingPayment): Amount | undefined {
  if (incomingAmount === undefined) return undefined
  return { ...incomingAmount, value: `${units(incomingAmount) - BigInt(received)}` }
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
  const [from, to] = [worth[debited.assetCode], worth[received.assetCode]]
  if (from === undefined || to === undefined) return undefined
  return {
    debited,
    received,
    costOf(value) {
      const sent = dividedUp(value * to, from)
      return sent + dividedUp(sent * feePercent, 100n)
    },
    arrivingOf(value) {
      const sent = (value * 100n) / (100n + feePercent)
      return (sent * from) / to
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
