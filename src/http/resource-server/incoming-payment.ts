import { foreignIdentifier, insufficient } from '../../core/access.js'
import type { IncomingPayment } from '../../core/incoming-payment.js'
import {
  incomingPaymentBody,
  incomingPaymentWithMethods,
  publicIncomingPayment,
  readIncomingPaymentRequest,
} from '../../protocol/incoming-payment.js'
import { isObject } from '../../protocol/json.js'
import { resourceUrl } from '../../protocol/url.js'
import type { PayablePayment } from '../../service/incoming-payment/create.js'
import type { IncomingPayments } from '../../service/incoming-payment.js'
import { json, notEmpty, readBody, readContent, refuseProblem } from '../body.js'
import { type Exchange, type Serve, unsigned } from '../exchange.js'
import { type HttpRefusal, refuse } from '../refusals.js'
import { authorized, type ResourceDependencies, type ServeAuthorized } from './authorized.js'
import { getResource, listResources } from './read.js'

export interface IncomingPaymentDependencies extends ResourceDependencies {
  readonly payments: IncomingPayments
  readonly grantEndpoint: string
}

const type = 'incoming-payment'

/** `POST /incoming-payments` (Open Payments OpenAPI, `create-incoming-payment`). */
export function createIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  return authorized(deps, async (exchange, { permitted, client }) => {
    if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
    const request = readContent(exchange.message, readIncomingPaymentRequest)
    if (!request.ok) return request
    const { walletAddress } = request.value
    if (permitted(type, 'create', walletAddress) === undefined) {
      return foreignIdentifier('walletAddress')
    }
    const answer = await deps.payments.create(request.value, client, exchange.call)
    return answer.ok ? json(201, payableBody(answer, deps)) : answer
  })
}

/** `GET /incoming-payments` (`list-incoming-payments`), without payment methods. */
export function listIncomingPayments(deps: IncomingPaymentDependencies): Serve {
  const { payments } = deps
  return listResources(deps, {
    type,
    lists: payments,
    toBody: (payment: IncomingPayment) => incomingPaymentBody(payment, urlOf(payment, deps)),
  })
}

/**
 * `GET /incoming-payments/{id}` (`get-incoming-payment`): the whole payment for a token that may read it, and
 * the public view for a request without credentials. Invalid credentials never result in the public view.
 */
export function getIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  const { payments } = deps
  const getWhole = getResource(deps, {
    type,
    load: payments.load,
    toBody: async (payment, now) => payableBody(await payments.payable(payment, now), deps),
  })
  const getPublicView = unsigned(async ({ id }) => {
    const payment = await payments.load(id)
    return payment === undefined
      ? unknownPayment
      : json(200, publicIncomingPayment(payment, deps.grantEndpoint))
  })
  return (exchange) => (hasCredentials(exchange) ? getWhole(exchange) : getPublicView(exchange))
}

function hasCredentials({ message }: Exchange): boolean {
  return ['authorization', 'signature', 'signature-input'].some((name) => message.fields.has(name))
}

/** `POST /incoming-payments/{id}/complete` (`complete-incoming-payment`), for the client that created it. */
export function completeIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  const { payments } = deps
  const complete: ServeAuthorized = async (exchange, { permitted, client }) => {
    if (permitted(type, 'complete') === undefined) return insufficient(type, 'complete')
    const unwanted = unwantedBody(exchange)
    if (unwanted !== undefined) return unwanted
    const payment = await payments.load(exchange.id)
    if (payment === undefined) return unknownPayment
    const allowed = permitted(type, 'complete', payment.walletAddress) !== undefined
    if (!allowed || payment.client !== client) {
      return refuse('resource_unknown', 'the token cannot complete this payment')
    }
    const answer = await payments.complete(payment, exchange.call)
    if (answer.ok) return completed(answer.payment, deps)
    return answer.refusal === 'payment_unknown' ? unknownPayment : answer
  }
  return authorized(deps, complete, async ({ id }) => {
    const payment = await payments.load(id)
    return payment && completed(payment, deps)
  })
}

function completed(payment: IncomingPayment, deps: IncomingPaymentDependencies) {
  return json(200, incomingPaymentBody(payment, urlOf(payment, deps)))
}

/** Refuses content: completion has none, so its members would be silently ignored. */
function unwantedBody({ message }: Pick<Exchange, 'message'>): HttpRefusal | undefined {
  const body = readBody(message)
  if (!body.ok) return body
  const { value } = body
  const empty = value === undefined || (isObject(value) && Object.keys(value).length === 0)
  return empty ? undefined : refuseProblem('body_invalid', notEmpty)
}

const unknownPayment = refuse('resource_unknown', 'the incoming payment does not exist')

function payableBody({ payment, methods }: PayablePayment, deps: IncomingPaymentDependencies) {
  return incomingPaymentWithMethods(payment, urlOf(payment, deps), methods)
}

function urlOf({ id }: IncomingPayment, { baseUrl }: IncomingPaymentDependencies): string {
  return resourceUrl(baseUrl, 'incoming-payments', id)
}
