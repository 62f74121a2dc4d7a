import { foreignIdentifier, insufficient } from '../../core/access.js'
import { ok } from '../../core/decision.js'
import type { OutgoingPayment } from '../../core/outgoing-payment/record.js'
import type { Introspect } from '../../ports/host.js'
import { readKey } from '../../protocol/idempotency-key.js'
import {
  type OutgoingPaymentRequest,
  outgoingPaymentResource,
  readOutgoingPaymentRequest,
} from '../../protocol/outgoing-payment.js'
import { resourceId } from '../../protocol/url.js'
import type { PaymentInput } from '../../service/create-outgoing-payment/request.js'
import type { PaymentAnswer, PaymentCreation } from '../../service/create-outgoing-payment.js'
import type { OutgoingPayments } from '../../service/outgoing-payment.js'
import type { RepeatRule, SignedCall } from '../../service/signed-call.js'
import { json, readContent, refuseProblem } from '../body.js'
import { type Exchange, type Serve, signed } from '../exchange.js'
import type { HttpResponse } from '../message.js'
import type { HttpRefusal, HttpResult } from '../refusals.js'
import { authorize, authorized, type ResourceDependencies } from './authorized.js'
import { getResource, listResources } from './read.js'

export interface OutgoingPaymentDependencies extends ResourceDependencies {
  readonly payments: OutgoingPayments
  readonly creation: PaymentCreation
}

const type = 'outgoing-payment'

/**
 * `POST /outgoing-payments` (Open Payments OpenAPI, `create-outgoing-payment`). A client that
 * repeats a `quoteId`, or an `Idempotency-Key`, with an equal body gets the existing payment.
 */
export function createOutgoingPayment(deps: OutgoingPaymentDependencies): Serve {
  const { context, creation, baseUrl, repeats } = deps
  return signed(context, {
    async authenticate(exchange) {
      // The body is read before the signature is verified, because the quote's id determines what to load with the
      // grant. The answer to an invalid body still comes after authentication.
      const content = readContent(exchange.message, readOutgoingPaymentRequest)
      const payment = content.ok
        ? ok(await creation.prepare(inputOf(content.value, baseUrl), deps.introspect))
        : content
      const ask: Introspect = payment.ok ? payment.value.introspect : deps.introspect
      // The owner may have paused, lowered or revoked the grant since its token was cached.
      const introspect: Introspect = (query) => ask({ isFresh: true, ...query })
      const authorization = await authorize(exchange, { context, introspect })
      if (!authorization.ok) return authorization
      const key = payment.ok ? readIdempotencyKey(exchange, payment.value.input) : ok(undefined)
      return ok({ payment, key, ...authorization.value })
    },
    rule: ({ payment, key }) => (payment.ok ? ruleFor(payment.value.input, key, repeats) : repeats),
    async serve({ call }, { client, token, renew, permitted, payment, key }) {
      if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
      if (!payment.ok) return payment
      const { input, create } = payment.value
      if (!key.ok) return key
      if (permitted(type, 'create', input.walletAddress) === undefined) {
        return foreignIdentifier('walletAddress')
      }
      const answer = await create({ client, token, renew }, call, key.value)
      return answer.ok ? json(201, createdBody(answer, call, baseUrl)) : nameReceiver(answer, input)
    },
    isHarmless: isBusy,
  })
}

/**
 * Without a quote or a key, only the signature distinguishes a repeat from a second payment. With a key, its record
 * does, but a payment that was refused must not be made later by the same bytes.
 */
function ruleFor(
  input: PaymentInput,
  key: HttpResult<string | undefined>,
  repeats: RepeatRule,
): RepeatRule {
  if ('quoteId' in input) return repeats
  const hasKey = key.ok && key.value !== undefined
  return hasKey && repeats === 'accept' ? 'refuse-refused' : 'refuse-every'
}

/** A busy answer writes no replay record, so that the client can repeat the same bytes. */
function isBusy(answer: HttpResult<HttpResponse>): boolean {
  return !answer.ok && answer.refusal === 'busy'
}

/**
 * Pricing names the receiver as a quote does. Here, the body of a payment without a quote names it `incomingPayment`.
 */
function nameReceiver<Refusal extends HttpRefusal>(refusal: Refusal, input: PaymentInput): Refusal {
  const { details } = refusal
  return 'incomingPayment' in input && details?.['path'] === 'receiver'
    ? { ...refusal, details: { ...details, path: 'incomingPayment' } }
    : refusal
}

/** `GET /outgoing-payments` (`list-outgoing-payments`). */
export function listOutgoingPayments(deps: OutgoingPaymentDependencies): Serve {
  const { context, payments, baseUrl } = deps
  return listResources(deps, {
    type,
    lists: payments,
    toBody: (payment: OutgoingPayment) =>
      outgoingPaymentResource(payment, baseUrl, context.clock.now()),
  })
}

/** `GET /outgoing-payments/{id}` (`get-outgoing-payment`), for the client that created it. */
export function getOutgoingPayment(deps: OutgoingPaymentDependencies): Serve {
  const { payments, baseUrl } = deps
  return getResource(deps, {
    type,
    load: payments.load,
    toBody: (payment, now) => outgoingPaymentResource(payment, baseUrl, now),
  })
}

/**
 * `GET /outgoing-payment-grant` (`get-outgoing-payment-grant`): the amounts spent under the token's grant, for a token
 * that may create outgoing payments.
 */
export function getOutgoingPaymentGrant(deps: OutgoingPaymentDependencies): Serve {
  const { payments } = deps
  return authorized(deps, async (exchange, { permitted, token }) => {
    if (permitted(type, 'create') === undefined) return insufficient(type, 'create')
    const spent = await payments.spentUnder(token, exchange.call.now)
    return json(200, {
      spentDebitAmount: spent.debitAmount,
      spentReceiveAmount: spent.receiveAmount,
    })
  })
}

/** Replaces the quote's URL with its id; a URL of another server becomes `''`, which is not the id of a quote. */
function inputOf(request: OutgoingPaymentRequest, baseUrl: string): PaymentInput {
  if (!('quoteId' in request)) return request
  return { ...request, quoteId: resourceId(baseUrl, 'quotes', request.quoteId) ?? '' }
}

/**
 * Reads `Idempotency-Key`, with which a client repeats a request after losing the response. A payment by a quote has
 * none: with another quote, it would be another payment, whatever the key.
 */
function readIdempotencyKey(
  { message }: Exchange,
  input: PaymentInput,
): HttpResult<string | undefined> {
  const [field, ...others] = message.fields.get('idempotency-key') ?? []
  if (field === undefined) return ok(undefined)
  if ('quoteId' in input) {
    return keyInvalid('Idempotency-Key must be absent, because the quote identifies the payment')
  }
  const key = readKey(field)
  return key !== undefined && others.length === 0
    ? ok(key)
    : keyInvalid('Idempotency-Key must be 1 to 255 visible ASCII characters, or a quoted string')
}

function keyInvalid(problem: string): HttpRefusal {
  return refuseProblem('idempotency_key_invalid', { path: '', problem })
}

function createdBody({ payment, spent }: PaymentAnswer, { now }: SignedCall, baseUrl: string) {
  if (spent === undefined) return outgoingPaymentResource(payment, baseUrl, payment.createdAt)
  const { debitAmount, receiveAmount } = spent
  return Object.assign(
    outgoingPaymentResource(payment, baseUrl, now),
    // Omitted if null: the schema of a created payment does not allow null; the schema of a grant does.
    debitAmount && { grantSpentDebitAmount: debitAmount },
    receiveAmount && { grantSpentReceiveAmount: receiveAmount },
  )
}
