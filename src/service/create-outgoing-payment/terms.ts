import type { Asset } from '../../core/amount.js'
import { ok, type Result } from '../../core/decision.js'
import type { Terms } from '../../core/outgoing-payment/create.js'
import { unexpired } from '../../core/quote.js'
import { given } from '../../util/given.js'
import { activeAccount } from '../accounts.js'
import type { PricingRefused } from '../quote.js'
import type { PayingServer } from './paying-server.js'
import type { IdentifiedRequest } from './request.js'

interface Agreed {
  readonly terms: Terms
  readonly account: Asset
}

/** Prices a payment without a quote. A quote contains its price, so only its account is checked. */
export async function termsOf(
  { walletAddresses, quotes }: PayingServer,
  { input, receivedAt }: IdentifiedRequest,
  client: string | undefined,
): Promise<Result<Agreed, PricingRefused>> {
  const { walletAddress } = input
  if ('quoteId' in input) {
    const account = await activeAccount(walletAddresses, walletAddress)
    if (!account.ok) return account
    return ok({ terms: { type: 'quote', quoteId: input.quoteId }, account: account.value })
  }
  const { incomingPayment: receiver, debitAmount, receiveAmount } = input
  const asked = { walletAddress, receiver, ...given({ debitAmount, receiveAmount }) }
  const priced = await quotes.price(asked, client)
  if (!priced.ok) return priced
  const current = unexpired(priced.value, receivedAt)
  if (!current.ok) return current
  const price = { ...current.value, receiver }
  return ok({ terms: { type: 'price', price }, account: price.debitAmount })
}
