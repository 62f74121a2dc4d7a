import { type AccessAction, type GrantedItem, permits } from '../core/access.js'
import { clientId } from '../core/grant/record.js'
import type { Introspect, Introspection } from '../ports/introspect.js'
import { incomingPaymentWithMethods, readIncomingPaymentRequest } from '../protocol/payments.js'
import type { ServiceContext } from '../service/context.js'
import type { IncomingPayments, PayablePayment } from '../service/incoming-payments.js'
import { onceOf, type RepeatRule, spend } from '../service/replay.js'
import type { Once, Replayed } from '../service/transact.js'
import { inspect, presentedToken, prove } from './authenticate.js'
import { type Exchange, json, readBody, refuse, refuseBody, type Serve } from './pipeline.js'
import type { HttpRefusal } from './refusals.js'

/** What the operations on incoming payments work with. */
export interface IncomingPaymentDependencies {
  readonly context: ServiceContext
  readonly payments: IncomingPayments
  readonly introspect: Introspect
  /** The resource server's URL without a trailing slash: what the URLs of payments begin with. */
  readonly baseUrl: string
  readonly repeats: RepeatRule
}

/** A request whose token is good and whose signature was made by the key that the token is bound to. */
interface Authorized {
  readonly access: readonly GrantedItem[]
  /** Who creates and owns: see `clientId`. */
  readonly client: string
  readonly once: Once | undefined
  /** Refuses the request, at the price of its nonce. */
  refusing(refusal: HttpRefusal): Promise<HttpRefusal | Replayed>
}

/** `POST /incoming-payments` (Open Payments OpenAPI, `create-incoming-payment`). */
export function createIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  return authorized(deps, async (exchange, { access, client, once, refusing }) => {
    if (permitted(access, 'create') === undefined) return refusing(insufficient('create'))
    const body = readBody(exchange.message)
    if ('outcome' in body) return refusing(body)
    const request = readIncomingPaymentRequest(body.value)
    if (!('value' in request)) return refusing(refuseBody(request))
    const { walletAddress } = request.value
    if (permitted(access, 'create', walletAddress) === undefined) {
      return refusing(refuse('identifier_foreign', 'the token is for another wallet address'))
    }
    const answer = await deps.payments.create(request.value, client, exchange.call, once)
    return answer.outcome === 'refused' ? answer : json(201, paymentBody(answer, deps))
  })
}

/** `GET /incoming-payments/{id}` (`get-incoming-payment`), for the client instance that created it. */
export function getIncomingPayment(deps: IncomingPaymentDependencies): Serve {
  const { context, payments } = deps
  return authorized(deps, async (exchange, { access, client, once, refusing }) => {
    if (permitted(access, 'read') === undefined) return refusing(insufficient('read'))
    const payment = await payments.load(exchange.id)
    if (payment === undefined) {
      return refusing(refuse('resource_unknown', 'there is no such incoming payment'))
    }
    const { walletAddress } = payment
    const readable =
      permitted(access, 'read-all', walletAddress) !== undefined ||
      (permitted(access, 'read', walletAddress) !== undefined && payment.client === client)
    if (!readable) {
      return refusing(refuse('resource_unknown', 'the payment is not for this token to read'))
    }
    const answer = await payments.payable(payment, exchange.call.now)
    return spend(context, once, json(200, paymentBody(answer, deps)), { refused: false })
  })
}

/** Serves a request once it is known whose it is and what its token allows. */
function authorized(
  deps: IncomingPaymentDependencies,
  serve: (exchange: Exchange, authorized: Authorized) => ReturnType<Serve>,
): Serve {
  return async (exchange) => {
    const authorization = await authorize(exchange, deps)
    return 'outcome' in authorization ? authorization : serve(exchange, authorization)
  }
}

/** Signature without a key, token, introspection, curve: in this order, each cheaper than the next. */
async function authorize(
  exchange: Exchange,
  { context, introspect, repeats }: IncomingPaymentDependencies,
): Promise<Authorized | HttpRefusal> {
  const candidates = await inspect(exchange, context.freshness)
  if ('outcome' in candidates) return candidates
  const presented = presentedToken(exchange)
  if ('outcome' in presented) return presented
  const token = await introspected(introspect, presented.token)
  if ('outcome' in token) return token
  if (!token.active) return refuse('token_unknown', 'the token is not active')
  const { key, walletAddress, access } = token
  const client = walletAddress === undefined ? key : { ...key, walletAddress }
  const proof = await prove(exchange, candidates, key, client)
  if ('outcome' in proof) return proof
  const once = await onceOf(context, proof, repeats, exchange.call)
  return {
    access,
    client: clientId(client),
    once,
    refusing: (refusal) => spend(context, once, refusal, { refused: true }),
  }
}

async function introspected(
  introspect: Introspect,
  accessToken: string,
): Promise<Introspection | HttpRefusal> {
  try {
    return await introspect({ accessToken })
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'introspection failed'
    return refuse('introspection_unavailable', reason)
  }
}

function permitted(
  access: readonly GrantedItem[],
  action: AccessAction,
  walletAddress?: string,
): GrantedItem | undefined {
  return permits(access, 'incoming-payment', action, walletAddress)
}

function insufficient(action: AccessAction): HttpRefusal {
  return refuse('access_insufficient', `the token does not allow ${action} of incoming payments`)
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
