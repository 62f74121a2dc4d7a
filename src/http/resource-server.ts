import { type IncomingPaymentServices, incomingPaymentServices } from '../host/incoming-payment.js'
import { type OutgoingPaymentServices, outgoingPaymentServices } from '../host/outgoing-payment.js'
import type { Introspect } from '../ports/introspect.js'
import type { PaymentMethods } from '../ports/payment-methods.js'
import type { Pricing } from '../ports/pricing.js'
import type { Store } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { sweptBudgets } from '../service/budget.js'
import type { ServiceContext } from '../service/context.js'
import { createPaymentCreation } from '../service/create-outgoing-payment.js'
import type { ServerEvents } from '../service/events/delivery.js'
import { createServerEvents } from '../service/events/outbox.js'
import { createIncomingPayments } from '../service/incoming-payment.js'
import { createOutgoingPayments } from '../service/outgoing-payment.js'
import { createQuotes } from '../service/quote.js'
import { retired, type SweepOptions, type SweepResult, sweepKinds } from '../service/sweep.js'
import { requireKnownOptions } from '../util/known-options.js'
import { hostPaymentMethods, hostPricing, hostWalletAddresses } from './host-ports.js'
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
import { resourceErrors } from './public-errors.js'
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
import { screenedPricing } from './resource-server/screened-pricing.js'
import {
  type ResourceOperation,
  receivingRoutes,
  type ServerRoute,
  spendingRoutes,
} from './routes.js'
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
  /**
   * Allows receivers on loopback addresses, for development. Other receivers must not be at `localhost`, or at an IP
   * address that is not public. Default: true if `baseUrl` is on loopback.
   */
  readonly allowLoopback?: boolean
  readonly policy?: ResourcePolicy
  /**
   * Whether the grants are in `store`. If `introspect` runs in this process, each new outgoing payment then guards the
   * version of its grant, so that a revoked grant cannot spend. Set it to false if the authorization server of this
   * process uses another database: a payment can then still be created while its grant is revoked. Has no effect with
   * `remoteIntrospection`, where this can always happen. Default true.
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
  allowLoopback: true,
  policy: true,
  guardsGrants: true,
}

/** The services for the host's own code. `ResourceServer.within` returns them on another store. */
export interface ResourceServices {
  readonly incomingPayments: IncomingPaymentServices
  readonly outgoingPayments: OutgoingPaymentServices
}

export interface ResourceServer extends ResourceServices {
  /** Serves every route below `baseUrl`. */
  readonly handle: Handler
  /** One handler for each operation, for hosts with their own router. */
  readonly handlers: Readonly<Record<ResourceOperation, Handler>>
  readonly routes: readonly ServerRoute[]
  /** The events of payments and quotes, for the host to consume. */
  readonly events: ServerEvents
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
   * @throws {OptionError} for an invalid `limit`.
   */
  sweep(options?: SweepOptions): Promise<SweepResult>
}

/**
 * Creates the resource server of an account servicing entity: incoming payments and, if `pricing` is
 * configured, quotes and outgoing payments (Open Payments OpenAPI, Resource Server API).
 *
 * @throws {OptionError} for an invalid or unknown option.
 */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  const settings = readSettings(options)
  const { context, policy } = settings
  const services = servicesIn(context, settings)
  const swept = [
    services.incoming.swept,
    services.outgoing.swept,
    sweptBudgets(context, options.introspect, policy.spending.budgets),
    retired(context, 'quote'),
    retired(context, 'transfer'),
    retired(context, 'nonce'),
  ]
  return {
    ...createHandlers(pipelineOf(settings, services)),
    ...services.forHost,
    events: createServerEvents(context),
    within: (store) => servicesIn(contextOn(store, context), settings).forHost,
    sweep: (options) => sweepKinds(context, swept, options),
  }
}

type Settings = ReturnType<typeof readSettings>

/** Validates the options, and fills in defaults. */
function readSettings(options: ResourceServerOptions) {
  requireKnownOptions('', options, knownOptions)
  const { introspect, walletAddresses, paymentMethods, pricing, guardsGrants = true } = options
  const url = publicUrl('baseUrl', options.baseUrl)
  const issuer = publicUrl('grantEndpoint', options.grantEndpoint)
  requireFunction('introspect', introspect)
  requireMethods('walletAddresses', walletAddresses, ['find'])
  requireMethods('paymentMethods', paymentMethods, ['detailsOf', 'paymentIdOf'])
  if (pricing !== undefined) requireMethods('pricing', pricing, ['price'])
  return {
    options,
    walletAddresses: hostWalletAddresses(walletAddresses),
    paymentMethods: hostPaymentMethods(paymentMethods),
    url,
    baseUrl: url.origin + url.basePath,
    strippedPrefix: requirePrefix(options.strippedPrefix ?? '', url),
    policy: resourcePolicy(options.policy ?? {}),
    context: serviceContext(options, 'resourceServer', url, issuer),
    repeats: repeatRule(options),
    guardsGrants: requireBoolean('guardsGrants', guardsGrants),
  }
}

type Services = ReturnType<typeof servicesIn>

/** Creates the services in a context, and the interfaces through which the host calls them. */
function servicesIn(context: ServiceContext, settings: Settings) {
  const { walletAddresses, paymentMethods, policy, baseUrl } = settings
  const incoming = createIncomingPayments(
    context,
    { walletAddresses, paymentMethods },
    policy.incoming,
  )
  const outgoing = createOutgoingPayments(context, policy.spending)
  const forHost: ResourceServices = {
    incomingPayments: incomingPaymentServices(incoming, paymentMethods, baseUrl),
    outgoingPayments: outgoingPaymentServices(outgoing, context.clock, baseUrl),
  }
  return { incoming, outgoing, forHost }
}

function pipelineOf(settings: Settings, { incoming, outgoing }: Services) {
  const { context, options, url, strippedPrefix, baseUrl, repeats } = settings
  const { introspect, grantEndpoint, pricing } = options
  const deps = { context, introspect, baseUrl, repeats }
  return {
    server: 'resourceServer',
    errors: resourceErrors,
    url,
    strippedPrefix,
    routes: pricing === undefined ? receivingRoutes : [...receivingRoutes, ...spendingRoutes],
    serve: {
      ...incomingPaymentOperations({ ...deps, payments: incoming, grantEndpoint }),
      ...spendingOperations({ ...deps, payments: outgoing }, settings),
    },
    context,
    challenge: `GNAP as_uri=${grantEndpoint}`,
    watch: options,
  } as const
}

function incomingPaymentOperations(deps: IncomingPaymentDependencies) {
  return {
    createIncomingPayment: createIncomingPayment(deps),
    listIncomingPayments: listIncomingPayments(deps),
    getIncomingPayment: getIncomingPayment(deps),
    completeIncomingPayment: completeIncomingPayment(deps),
  }
}

function spendingOperations(deps: Omit<OutgoingPaymentDependencies, 'create'>, settings: Settings) {
  const { context } = deps
  const { options, walletAddresses, guardsGrants, policy } = settings
  const { spending, mayPay } = policy
  const { pricing = noPricing, allowLoopback } = options
  const screened = screenedPricing(hostPricing(pricing), {
    baseUrl: settings.baseUrl,
    allowLoopback,
  })
  const quotes = createQuotes(context, { walletAddresses, pricing: screened }, spending.quotes)
  const creating = { guardsGrants, walletAddresses, quotes, mayPay }
  const limits = { ...spending.payments, ...spending.budgets }
  const paying = { ...deps, create: createPaymentCreation(context, creating, limits) }
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
const noPricing: Pricing = { price: () => Promise.reject(new Error('pricing is not configured')) }
