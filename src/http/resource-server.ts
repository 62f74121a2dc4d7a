import { type IncomingPaymentServices, incomingPaymentServices } from '../host/incoming-payment.js'
import { type OutgoingPaymentServices, outgoingPaymentServices } from '../host/outgoing-payment.js'
import type { Introspect } from '../ports/introspect.js'
import type { PaymentMethods } from '../ports/payment-methods.js'
import type { Pricing } from '../ports/pricing.js'
import type { Store } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { sweptBudgets } from '../service/budget.js'
import { createIncomingPayments } from '../service/incoming-payment.js'
import { newCall, type ServiceContext } from '../service/mechanism/context.js'
import type { EventOutbox } from '../service/mechanism/delivery.js'
import { createOutbox } from '../service/mechanism/outbox.js'
import {
  retired,
  type SweepOptions,
  type SweepResult,
  sweepKinds,
} from '../service/mechanism/sweeps.js'
import { createOutgoingPayments, type SpendingPolicy } from '../service/outgoing-payment.js'
import { createPaymentCreation } from '../service/outgoing-payment-creation.js'
import { createQuotes } from '../service/quote.js'
import { requireKnownOptions } from '../util/known-options.js'
import type { Handler } from './message.js'
import {
  contextOn,
  repeatRule,
  requireBoolean,
  requireFunction,
  requireMethods,
  requirePrefix,
  type ServerOptions,
  serverOptions,
  serviceContext,
} from './options.js'
import { createHandlers } from './pipeline.js'
import {
  completeIncomingPayment,
  createIncomingPayment,
  getIncomingPayment,
  type IncomingPaymentDependencies,
  listIncomingPayments,
} from './resource-server/incoming-payment.js'
import {
  createOutgoingPayment,
  getOutgoingPayment,
  getOutgoingPaymentGrant,
  listOutgoingPayments,
  type OutgoingPaymentDependencies,
} from './resource-server/outgoing-payment.js'
import { type ResourcePolicy, resourcePolicy } from './resource-server/policy.js'
import { createQuote, getQuote } from './resource-server/quote.js'
import type { Route } from './routes.js'
import { publicUrl } from './target.js'

export interface ResourceServerOptions extends ServerOptions {
  /** URL of the resource server, exactly the string that wallet addresses publish as `resourceServer`. */
  readonly baseUrl: string
  /**
   * URL of the grant endpoint, exactly the string that wallet addresses publish as `authServer`. It is sent
   * in `WWW-Authenticate` to clients without a valid token, and in the public view of incoming payments.
   */
  readonly grantEndpoint: string
  /** `introspect` of the authorization server in this process, or `remoteIntrospection`. */
  readonly introspect: Introspect
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
  /** Prices outgoing payments. Without it, quotes and outgoing payments are not served. */
  readonly pricing?: Pricing
  readonly policy?: ResourcePolicy
  /**
   * Whether the grants are in `store`. If `introspect` runs in this process, each new outgoing payment then
   * guards the version of its grant, so that a revoked grant cannot spend. Set it to false if the
   * authorization server of this process uses another database: a payment can then still be created while its
   * grant is revoked. Ignored with `remoteIntrospection`, for which the same holds. Default true.
   */
  readonly guardsGrants?: boolean
}

const knownOptions: Readonly<Record<keyof ResourceServerOptions, true>> = {
  ...serverOptions,
  baseUrl: true,
  grantEndpoint: true,
  introspect: true,
  walletAddresses: true,
  paymentMethods: true,
  pricing: true,
  policy: true,
  guardsGrants: true,
}

/** The services for the host's own code. `ResourceServer.within` returns them on another store. */
export interface ResourceServices {
  readonly incomingPayments: IncomingPaymentServices
  readonly outgoingPayments: OutgoingPaymentServices
}

export type ResourceOperation =
  | 'createIncomingPayment'
  | 'listIncomingPayments'
  | 'getIncomingPayment'
  | 'completeIncomingPayment'
  | 'createQuote'
  | 'getQuote'
  | 'createOutgoingPayment'
  | 'listOutgoingPayments'
  | 'getOutgoingPayment'
  | 'getOutgoingPaymentGrant'

export interface ResourceServer extends ResourceServices {
  /** Serves every route below `baseUrl`. */
  readonly handle: Handler
  /** One handler for each operation, for hosts with their own router. */
  readonly handlers: Readonly<Record<ResourceOperation, Handler>>
  readonly routes: readonly Route[]
  /** The events of payments and quotes, for the host to consume. */
  readonly events: EventOutbox
  /**
   * Returns the same services on another store, such as one inside a transaction of the host, so that their
   * writes commit or roll back together with the host's own rows.
   */
  within(store: Store): ResourceServices
  /**
   * Records the expiry of incoming payments, with one `incoming-payment.expired` event for each; fails
   * outgoing payments that the host did not begin before their hold expired, so that their amounts return to
   * the budget; and removes payments, quotes, budgets, transfers and used signatures past their retention.
   *
   * Run it periodically, in any number of processes, and call it again immediately while `more` is true.
   * What the server accepts or refuses does not depend on it.
   *
   * @throws the store's first error, after it has processed the records of other kinds.
   * @throws `TypeError` with code `ERR_INVALID_OPTION` if `limit` is invalid.
   */
  sweep(options?: SweepOptions): Promise<SweepResult>
}

const receivingRoutes: readonly Route[] = [
  { operation: 'createIncomingPayment', method: 'POST', path: '/incoming-payments' },
  { operation: 'listIncomingPayments', method: 'GET', path: '/incoming-payments' },
  { operation: 'getIncomingPayment', method: 'GET', path: '/incoming-payments/{id}' },
  {
    operation: 'completeIncomingPayment',
    method: 'POST',
    path: '/incoming-payments/{id}/complete',
  },
]

const spendingRoutes: readonly Route[] = [
  { operation: 'createQuote', method: 'POST', path: '/quotes' },
  { operation: 'getQuote', method: 'GET', path: '/quotes/{id}' },
  { operation: 'createOutgoingPayment', method: 'POST', path: '/outgoing-payments' },
  { operation: 'listOutgoingPayments', method: 'GET', path: '/outgoing-payments' },
  { operation: 'getOutgoingPayment', method: 'GET', path: '/outgoing-payments/{id}' },
  { operation: 'getOutgoingPaymentGrant', method: 'GET', path: '/outgoing-payment-grant' },
]

/**
 * Creates the resource server of an account servicing entity: incoming payments and, if `pricing` is
 * configured, quotes and outgoing payments (Open Payments OpenAPI, Resource Server API).
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the invalid `option`.
 */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  requireKnownOptions('', options, knownOptions)
  const { introspect, walletAddresses, paymentMethods, grantEndpoint } = options
  const url = publicUrl('baseUrl', options.baseUrl)
  const issuer = publicUrl('grantEndpoint', grantEndpoint)
  requireFunction('introspect', introspect)
  requireMethods('walletAddresses', walletAddresses, ['find'])
  requireMethods('paymentMethods', paymentMethods, ['detailsOf', 'paymentIdOf'])
  if (options.pricing !== undefined) requireMethods('pricing', options.pricing, ['price'])
  const policy = resourcePolicy(options.policy ?? {})
  const context = serviceContext(options, url, issuer)
  requireBoolean('guardsGrants', options.guardsGrants ?? true)
  const baseUrl = url.origin + url.basePath
  const ports = { walletAddresses, paymentMethods }

  function servicesIn(context: ServiceContext) {
    const incoming = createIncomingPayments(context, ports, policy.incoming)
    const outgoing = createOutgoingPayments(context, policy.spending)
    return {
      incoming,
      outgoing,
      services: {
        incomingPayments: incomingPaymentServices(incoming, paymentMethods, baseUrl),
        outgoingPayments: outgoingPaymentServices(outgoing, context.clock, baseUrl),
      },
    }
  }

  const { incoming, outgoing, services } = servicesIn(context)
  const deps = { context, introspect, baseUrl, repeats: repeatRule(options) }
  const handlers = createHandlers({
    server: 'resourceServer',
    url,
    strippedPrefix: requirePrefix(options.strippedPrefix ?? '', url),
    routes:
      options.pricing === undefined ? receivingRoutes : [...receivingRoutes, ...spendingRoutes],
    serve: {
      ...incomingPaymentOperations({ ...deps, payments: incoming, grantEndpoint }),
      ...spendingOperations({ ...deps, payments: outgoing }, options, policy.spending),
    },
    newCall: () => newCall(context),
    challenge: `GNAP as_uri=${grantEndpoint}`,
    watch: options,
  })
  const swept = [
    incoming.swept,
    outgoing.swept,
    sweptBudgets(context, introspect, policy.spending.budgets),
    retired(context, 'quote'),
    retired(context, 'transfer'),
    retired(context, 'nonce'),
  ]
  return {
    ...handlers,
    ...services,
    events: createOutbox(context),
    within: (store) => servicesIn(contextOn(store, context)).services,
    sweep: (options) => sweepKinds(context, swept, options),
  }
}

function incomingPaymentOperations(deps: IncomingPaymentDependencies) {
  return {
    createIncomingPayment: createIncomingPayment(deps),
    listIncomingPayments: listIncomingPayments(deps),
    getIncomingPayment: getIncomingPayment(deps),
    completeIncomingPayment: completeIncomingPayment(deps),
  }
}

function spendingOperations(
  deps: Omit<OutgoingPaymentDependencies, 'create'>,
  { walletAddresses, pricing = noQuotes, guardsGrants = true }: ResourceServerOptions,
  policy: SpendingPolicy,
) {
  const { context, payments } = deps
  const quotes = createQuotes(context, { walletAddresses, quotes: pricing }, policy.quotes)
  const creating = { guardsGrants, walletAddresses, quotes, payments }
  const paying = { ...deps, create: createPaymentCreation(context, creating, policy) }
  return {
    createQuote: createQuote({ ...deps, quotes }),
    getQuote: getQuote({ ...deps, quotes }),
    createOutgoingPayment: createOutgoingPayment(paying),
    listOutgoingPayments: listOutgoingPayments(paying),
    getOutgoingPayment: getOutgoingPayment(paying),
    getOutgoingPaymentGrant: getOutgoingPaymentGrant(paying),
  }
}

/** Never called: without `pricing`, no route leads to quotes. */
const noQuotes: Pricing = { price: () => Promise.reject(new Error('pricing is not configured')) }
