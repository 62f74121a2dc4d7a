import { parseValue, sameAsset } from '../core/amount.js'
import { type Refused, type Result, refused } from '../core/decision.js'
import {
  createQuote,
  type Price,
  type PriceQuery,
  priceProblem,
  type Quote,
  type QuotePolicy,
} from '../core/quote.js'
import type { JsonObject } from '../core/stored.js'
import type { PriceRefusal, Pricing, WalletAddresses } from '../ports/host.js'
import { newId } from '../protocol/credential.js'
import { type QuoteRequest, readPriceAnswer } from '../protocol/quote.js'
import { HostAnswerError } from '../util/errors.js'
import {
  type AccountRefusal,
  activeAccount,
  loadOwn,
  type ServiceContext,
  type SignedCall,
} from './context.js'
import type { Replayed } from './replay.js'
import { creating } from './write.js'

interface QuotePorts {
  readonly walletAddresses: WalletAddresses
  readonly pricing: Pricing
}

/** Why a payment cannot be priced. `details` is part of the response to the client instance. */
export type PricingRefused = Refused<AccountRefusal | PriceRefusal['refusal'] | 'quote_expired'> & {
  readonly details?: JsonObject
}

interface QuoteAnswer {
  readonly ok: true
  readonly quote: Quote
}

export type QuoteOperations = ReturnType<typeof createQuotes>

/** Creates the operations on quotes. */
export function createQuotes(context: ServiceContext, ports: QuotePorts, policy: QuotePolicy) {
  const load = (id: string) => loadOwn<Quote>(context, 'quote', id)

  /** Requests a price from the host, and validates the price that it returned. */
  async function price(
    request: QuoteRequest,
    client: string,
  ): Promise<Result<Price, PricingRefused>> {
    const found = await activeAccount(ports.walletAddresses, request.walletAddress)
    if (!found.ok) return found
    const account = found.value
    const { debitAmount, receiveAmount } = request
    const asked = debitAmount ?? receiveAmount
    if (asked !== undefined && parseValue(asked.value) === 0n) {
      return refused('amount_invalid', 'the amount must be positive')
    }
    if (debitAmount !== undefined && !sameAsset(debitAmount, account)) {
      return refused('amount_invalid', 'debitAmount is not in the asset of the wallet address')
    }
    const query = queryOf(request)
    const given = await ports.pricing.price({ ...query, account, client, method: 'ilp' })
    const answer = readPriceAnswer(given)
    if (!answer.ok) throw wrongPrice(`${answer.path} ${answer.problem}`)
    const priced = answer.value
    if (!priced.ok) return refusedPrice(priced)
    const problem = priceProblem(priced.value, query, account)
    if (problem !== undefined) throw wrongPrice(problem)
    return priced
  }

  async function create(
    request: QuoteRequest,
    client: string,
    call: SignedCall,
  ): Promise<QuoteAnswer | PricingRefused | Replayed> {
    const priced = await price(request, client)
    if (!priced.ok) return priced
    const { walletAddress, receiver } = request
    const { now, commandId } = call
    const id = newId(await context.namespace(), now, context.random)
    const command = { ...priced.value, commandId, id, walletAddress, client, receiver }
    const decision = createQuote(command, now, policy)
    if (!decision.ok) return decision
    const result = { ok: true, quote: decision.record } as const
    return call.commit<QuoteAnswer>(creating('quote', decision, result))
  }

  return { load, price, create }
}

function queryOf({ receiver, debitAmount, receiveAmount }: QuoteRequest): PriceQuery {
  return { receiver, ...(debitAmount && { debitAmount }), ...(receiveAmount && { receiveAmount }) }
}

function refusedPrice({ refusal, reason, minDebitAmount }: PriceRefusal): PricingRefused {
  const answer = refused(refusal, reason ?? 'the host has no price for this payment')
  if (minDebitAmount === undefined) return answer
  const { value, assetCode, assetScale } = minDebitAmount
  return { ...answer, details: { minSendAmount: { value, assetCode, assetScale } } }
}

function wrongPrice(problem: string): HostAnswerError {
  return new HostAnswerError('pricing.price', problem)
}
