import { parseValue, sameAsset } from '../core/amount.js'
import { ok, type Refused, type Result } from '../core/decision.js'
import { refusedPublicly } from '../core/public-reasons.js'
import {
  createQuote,
  type Price,
  type PriceQuery,
  priceProblem,
  type Quote,
  type QuotePolicy,
} from '../core/quote.js'
import type { Bounded, PriceRefusal, Pricing, WalletAddresses } from '../ports/host.js'
import { type QuoteRequest, readPriceAnswer } from '../protocol/quote.js'
import { newUuid } from '../protocol/uuid.js'
import { HostAnswerError } from '../util/errors.js'
import { given } from '../util/given.js'
import { type AccountRefusal, activeAccount } from './accounts.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { refusedFor } from './host-answer.js'
import { loadPublic } from './load.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { creationWrite, type Write } from './write/write.js'

interface QuotePorts {
  readonly walletAddresses: Bounded<WalletAddresses>
  readonly pricing: Bounded<Pricing>
}

interface QuoteDependencies extends QuotePorts {
  readonly context: ServiceContext
  readonly policy: QuotePolicy
}

export type PricingRefused = Refused<AccountRefusal | PriceRefusal['refusal'] | 'quote_expired'>

interface QuoteAnswer {
  readonly ok: true
  readonly quote: Quote
}

export type QuoteOperations = ReturnType<typeof createQuotes>

export function createQuotes(context: ServiceContext, ports: QuotePorts, policy: QuotePolicy) {
  const deps = { ...ports, context, policy }
  return {
    load: (id: string) => loadPublic<Quote>(context.store, 'quote', id),
    /** @param client absent if the owner of the account asks. */
    price: (request: QuoteRequest, client?: string) => price(ports, request, client),
    create: (request: QuoteRequest, client: string, call: SignedCall) =>
      create(deps, request, client, call),
    /** Creates a quote for the owner of the account, with which no client can pay. */
    createForOwner: (request: QuoteRequest) => createForOwner(deps, request),
  }
}

/** Requests a price from the host, and validates the price that it returned. */
async function price(
  ports: QuotePorts,
  request: QuoteRequest,
  client: string | undefined,
): Promise<Result<Price, PricingRefused>> {
  const found = await activeAccount(ports.walletAddresses, request.walletAddress)
  if (!found.ok) return found
  const account = found.value
  const query = queryOf(request)
  for (const name of ['debitAmount', 'receiveAmount'] as const) {
    const asked = query[name]
    if (asked !== undefined && parseValue(asked.value) === 0n) {
      return refusedPublicly('amount_invalid', name, 'must be positive')
    }
  }
  const { debitAmount } = query
  if (debitAmount !== undefined && !sameAsset(debitAmount, account)) {
    const problem = 'must be in the asset of the wallet address'
    return refusedPublicly('amount_invalid', 'debitAmount', problem)
  }
  const asked = { ...query, account, ...given({ client }), method: 'ilp' } as const
  const answer = readPriceAnswer(await ports.pricing.price(asked))
  if (!answer.ok) throw wrongPrice(`${answer.path} ${answer.problem}`)
  const priced = answer.value
  if (!priced.ok) return refusedPrice(priced, query)
  const problem = priceProblem(priced.value, query, account)
  if (problem !== undefined) throw wrongPrice(problem)
  return priced
}

async function create(
  deps: QuoteDependencies,
  request: QuoteRequest,
  client: string,
  call: SignedCall,
): Promise<QuoteAnswer | PricingRefused | Replayed> {
  const quoted = await newQuote(deps, request, client, call)
  return quoted.ok ? call.run(quoted.value) : quoted
}

async function createForOwner(
  deps: QuoteDependencies,
  request: QuoteRequest,
): Promise<QuoteAnswer | PricingRefused> {
  const { context } = deps
  const quoted = await newQuote(deps, request, undefined, newCall(context))
  return quoted.ok ? context.run(quoted.value) : quoted
}

/** Prices a payment, and resolves to the write of its quote. */
async function newQuote(
  { context, policy, ...ports }: QuoteDependencies,
  request: QuoteRequest,
  client: string | undefined,
  { now, commandId }: Call,
): Promise<Result<Write<QuoteAnswer>, PricingRefused>> {
  const priced = await price(ports, request, client)
  if (!priced.ok) return priced
  const { walletAddress, receiver } = request
  const id = newUuid(now, context.random)
  const command = { ...priced.value, commandId, id, walletAddress, ...given({ client }), receiver }
  const decision = createQuote(command, now, policy)
  if (!decision.ok) return decision
  const result = { ok: true, quote: decision.record } as const
  return ok(creationWrite<QuoteAnswer>('quote', decision, result))
}

function queryOf({ receiver, debitAmount, receiveAmount }: QuoteRequest): PriceQuery {
  return { receiver, ...given({ debitAmount, receiveAmount }) }
}

function refusedPrice(
  { refusal, minDebitAmount, ...own }: PriceRefusal,
  { debitAmount, receiveAmount }: PriceQuery,
): PricingRefused {
  const asked = debitAmount ? 'debitAmount' : receiveAmount ? 'receiveAmount' : undefined
  const path = refusal === 'receiver_invalid' ? 'receiver' : asked
  const answer = refusedFor(refusal, own, 'the host has no price for this payment', path)
  if (minDebitAmount === undefined) return answer
  const { value, assetCode, assetScale } = minDebitAmount
  const minSendAmount = { value, assetCode, assetScale }
  return { ...answer, details: { ...answer.details, minSendAmount } }
}

function wrongPrice(problem: string): HostAnswerError {
  return new HostAnswerError('pricing.price', problem)
}
