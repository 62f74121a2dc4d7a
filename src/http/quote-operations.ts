import { quoteBody, readQuoteRequest } from '../protocol/outgoing.js'
import type { QuoteOperations } from '../service/quotes.js'
import { spend } from '../service/replay.js'
import { authorized, type ResourceDependencies } from './authorized.js'
import { json, readBody, refuse, refuseBody, type Serve } from './pipeline.js'
import { resourceUrl } from './resource-url.js'

/** What the operations on quotes work with. */
export interface QuoteDependencies extends ResourceDependencies {
  readonly quotes: QuoteOperations
}

const type = 'quote'

/** `POST /quotes` (Open Payments OpenAPI, `create-quote`). */
export function createQuote(deps: QuoteDependencies): Serve {
  const { quotes, baseUrl } = deps
  return authorized(deps, async (exchange, { permitted, client, once, refusing, insufficient }) => {
    if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
    const body = readBody(exchange.message)
    if ('outcome' in body) return refusing(body)
    const request = readQuoteRequest(body.value)
    if (!('value' in request)) return refusing(refuseBody(request))
    if (permitted(type, 'create', request.value.walletAddress) === undefined) {
      return refusing(refuse('identifier_foreign', 'the token is for another wallet address'))
    }
    const answer = await quotes.create(request.value, client, exchange.call, once)
    if (answer.outcome === 'refused') return answer
    return json(201, quoteBody(answer.quote, resourceUrl(baseUrl, 'quotes', answer.quote.id)))
  })
}

/** `GET /quotes/{id}` (`get-quote`), for the client instance that asked for it. */
export function getQuote(deps: QuoteDependencies): Serve {
  const { context, quotes, baseUrl } = deps
  return authorized(
    deps,
    async (exchange, { permitted, readable, once, refusing, insufficient }) => {
      if (permitted(type, 'read') === undefined) return insufficient(type, 'read')
      const quote = await quotes.load(exchange.id)
      if (quote === undefined || !readable(type, quote)) {
        return refusing(refuse('resource_unknown', 'there is no such quote for this token to read'))
      }
      const answer = json(200, quoteBody(quote, resourceUrl(baseUrl, 'quotes', quote.id)))
      return spend(context, once, answer, { refused: false })
    },
  )
}
