import { foreignIdentifier, insufficient } from '../../core/access.js'
import type { Quote } from '../../core/quote.js'
import { quoteBody, readQuoteRequest } from '../../protocol/quote.js'
import { resourceUrl } from '../../protocol/url.js'
import type { QuoteOperations } from '../../service/quote.js'
import { json, readContent } from '../body.js'
import type { Serve } from '../exchange.js'
import { authorized, type ResourceDependencies, type ServeAuthorized } from './authorized.js'
import { getResource } from './read.js'

export interface QuoteDependencies extends ResourceDependencies {
  readonly quotes: QuoteOperations
}

const type = 'quote'

/** `POST /quotes` (Open Payments OpenAPI, `create-quote`). */
export function createQuote(deps: QuoteDependencies): Serve {
  const { quotes } = deps
  const create: ServeAuthorized = async (exchange, { permitted, client }) => {
    if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
    const request = readContent(exchange.message, readQuoteRequest)
    if (!request.ok) return request
    if (permitted(type, 'create', request.value.walletAddress) === undefined) {
      return foreignIdentifier('walletAddress')
    }
    const answer = await quotes.create(request.value, client, exchange.call)
    return answer.ok ? json(201, bodyOf(answer.quote, deps)) : answer
  }
  return authorized(deps, create, async (_, resultId = '') => {
    const quote = await quotes.load(resultId)
    return quote && json(201, bodyOf(quote, deps))
  })
}

/** `GET /quotes/{id}` (`get-quote`), for a token that may read the quote. */
export function getQuote(deps: QuoteDependencies): Serve {
  const { quotes } = deps
  return getResource(deps, { type, load: quotes.load, toBody: (quote) => bodyOf(quote, deps) })
}

function bodyOf(quote: Quote, { baseUrl }: QuoteDependencies) {
  return quoteBody(quote, resourceUrl(baseUrl, 'quotes', quote.id))
}
