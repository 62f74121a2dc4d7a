import { incomingPaymentWithMethods, readIncomingPaymentRequest } from '../protocol/payments.js'
import type { IncomingPayments, PayablePayment } from '../service/incoming-payments.js'
import { spend } from '../service/replay.js'
import { authorized, type ResourceDependencies } from './authorized.js'
import { json, readBody, refuse, refuseBody, type Serve } from './pipeline.js'

/** What the operations on incoming payments work with. */
export interface IncomingPaymentDependencies extends ResourceDependencies {
  readonly payments: IncomingPayments
}

const type = 'incoming-payment'

/** `POST /incoming-payments` (Open Payments OpenAPI, `create-incoming-payment`). */
export function createIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  return authorized(deps, async (exchange, { permitted, client, once, refusing, insufficient }) => {
    if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
    const body = readBody(exchange.message)
    if ('outcome' in body) return refusing(body)
    const request = readIncomingPaymentRequest(body.value)
    if (!('value' in request)) return refusing(refuseBody(request))
    const { walletAddress } = request.value
    if (permitted(type, 'create', walletAddress) === undefined) {
      return refusing(refuse('identifier_foreign', 'the token is for another wallet address'))
    }
    const answer = await deps.payments.create(request.value, client, exchange.call, once)
    return answer.outcome === 'refused' ? answer : json(201, paymentBody(answer, deps))
  })
}

/** `GET /incoming-payments/{id}` (`get-incoming-payment`), for the client instance that created it. */
export function getIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  const { context, payments } = deps
  return authorized(deps, async (exchange, { permitted, client, once, refusing, insufficient }) => {
    if (permitted(type, 'read') === undefined) return insufficient(type, 'read')
    const payment = await payments.load(exchange.id)
    if (payment === undefined) {
      return refusing(refuse('resource_unknown', 'there is no such incoming payment'))
    }
    const { walletAddress } = payment
    const readable =
      permitted(type, 'read-all', walletAddress) !== undefined ||
      (permitted(type, 'read', walletAddress) !== undefined && payment.client === client)
    if (!readable) {
      return refusing(refuse('resource_unknown', 'the payment is not for this token to read'))
    }
    const answer = await payments.payable(payment, exchange.call.now)
    return spend(context, once, json(200, paymentBody(answer, deps)), { refused: false })
  })
}

function paymentBody(
  { payment, methods }: PayablePayment,
  { baseUrl }: IncomingPaymentDependencies,
) {
  return incomingPaymentWithMethods(payment, incomingPaymentUrl(baseUrl, payment.id), methods)
}

export function incomingPaymentUrl(baseUrl: string, id: string): string {
  return `${baseUrl}/incoming-payments/${id}`
}
