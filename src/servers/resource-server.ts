import * as v from 'valibot'
import { type IncomingPaymentServices, incomingPaymentServices } from '../host/incoming-payment.js'
import { type OutgoingPaymentServices, outgoingPaymentServices } from '../host/outgoing-payment.js'
import { limitServices } from '../host/preview.js'
import { type QuoteServices, quoteServices } from '../host/quote.js'
import { hooksOf } from '../http/hooks.js'
import type { Handler } from '../http/message.js'
import { createHandlers, varies } from '../http/pipeline.js'
import { resourceErrors } from '../http/public-errors.js'
import {
  incomingPaymentOperations,
  spendingOperations,
} from '../http/resource-server/operations.js'
import {
  receivingRoutes,
  type ServerHandlers,
  type ServerRoute,
  spendingRoutes,
  withoutPricing,
} from '../http/routes.js'
import { publicUrl, serverUrl } from '../http/target.js'
import type { Introspection, PaymentMethods, Pricing, WalletAddresses } from '../ports/host.js'
import type { Store } from '../ports/store.js'
import type { ServiceContext } from '../service/context.js'
import { createPaymentCreation } from '../service/create-outgoing-payment.js'
import { paymentEnds } from '../service/event-record.js'
import { createServerEvents, type ServerEvents } from '../service/events/server-events.js'
import { createIncomingPayments } from '../service/incoming-payment.js'
import type { IntrospectAndLoad } from '../service/introspection.js'
import { createOutgoingPayments, sweptBudgets } from '../service/outgoing-payment.js'
import { createOwnerConfirmations } from '../service/owner-confirmation.js'
import { createQuotes } from '../service/quote.js'
import { createSeenBudgets } from '../service/seen-budgets.js'
import { retired, type SweepOptions, type SweepResult, sweepKinds } from '../service/sweep.js'
import { sweptReplays } from '../service/used-key.js'
import { boolean, group, type Members, optionsOf, port, readInput } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { type CompatibilityOptions, compatibilityOptions } from './compatibility.js'
import { hostFunction, hostPaymentMethods, hostPricing, hostWalletAddresses } from './host-ports.js'
import {
  contextOn,
  requirePrefix,
  type ServerOptions,
  serviceContext,
  sharedGroup,
  sharedOf,
  strippedPrefixOption,
  unreadSharedOptions,
  wiringOf,
} from './options.js'
import { type ResourcePolicy, resourcePolicy, resourcePolicyOptions } from './resource-policy.js'

/** The source from which a resource server gets the access of a token. */
export interface GrantSource {
  /** URL of the grant endpoint, exactly the string that wallet addresses publish as `authServer`. */
  readonly grantEndpoint: string
  /**
   * Introspects an access token (RFC 9767 section 3.3). Rejects if the authorization server cannot be reached: the
   * client then receives 503, because an outage must not look like an invalid token. With `isFresh`, the answer must
   * not be a cached one.
   */
  introspect(query: {
    readonly accessToken: string
    readonly keyid?: string
    readonly isFresh?: boolean
  }): Promise<Introspection>
}

/** Options of `createResourceServer`. */
export interface ResourceServerOptions extends Partial<ServerOptions> {
  /** URL of the resource server, exactly the string that wallet addresses publish as `resourceServer`. */
  readonly baseUrl: string
  /**
   * The authorization server in this process, or `remoteGrants` for one in another process. A server in this process
   * also provides the store, the clock, the hooks and the other shared options, unless they are given. Each new
   * outgoing payment then guards the version of its grant, so that a revoked grant cannot spend. With
   * `remoteGrants`, a payment can still be created while its grant is revoked.
   */
  readonly grants: GrantSource
  /** Required with `remoteGrants`. Otherwise the store of `grants`. */
  readonly store?: Store
  /** The accounts, by the URLs of their wallet addresses. */
  readonly walletAddresses: WalletAddresses
  /** Creates the details by which incoming payments can be paid, such as `ilpPaymentMethods`. */
  readonly paymentMethods: PaymentMethods
  /** Prices outgoing payments. Without it, quotes and outgoing payments are not served. */
  readonly pricing?: Pricing
  /**
   * Allows receivers on loopback addresses, for development. Other receivers must not be at `localhost`, or at an IP
   * address that is not public. Default: true if `baseUrl` is on loopback.
   */
  readonly allowLoopback?: boolean
  /** The rules of this server: lifetimes, and what the host allows. */
  readonly policy?: ResourcePolicy
  /** The members of `CompatibilityOptions` that concern all signed requests. Default: those of `grants`. */
  readonly compatibility?: Pick<CompatibilityOptions, 'repeatedRequests' | 'signatureFields'>
}

const { repeatedRequests, signatureFields } = compatibilityOptions

const resourceServerOptions = optionsOf({
  // Those that are absent are taken from the authorization server.
  ...unreadSharedOptions,
  strippedPrefix: strippedPrefixOption,
  baseUrl: serverUrl,
  grants: port<GrantSource>('introspect'),
  walletAddresses: port<WalletAddresses>('find'),
  paymentMethods: port<PaymentMethods>('detailsOf', 'paymentIdOf'),
  pricing: v.optional(port<Pricing>('price')),
  allowLoopback: v.optional(boolean),
  policy: group(resourcePolicyOptions),
  compatibility: group({ repeatedRequests, signatureFields }),
} satisfies Members<ResourceServerOptions>)

/** The services for the host's own code. `ResourceServer.within` returns them on another store. */
export interface ResourceServices {
  readonly incomingPayments: IncomingPaymentServices
  readonly quotes: QuoteServices
  readonly outgoingPayments: OutgoingPaymentServices
}

/** A resource server: its routes for clients, and what the host calls. */
export interface ResourceServer extends ResourceServices {
  /** URL of the resource server, exactly as given. */
  readonly baseUrl: string
  /** Serves every route below `baseUrl`. */
  readonly handle: Handler
  /**
   * One handler for each operation, for hosts with their own router. Those of quotes and outgoing payments are absent
   * without `pricing`.
   */
  readonly handlers: ServerHandlers<'resourceServer'>
  /** The routes that this server serves. */
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
   * @throws {InvalidInputError} for an invalid `limit`.
   */
  sweep(options?: SweepOptions): Promise<SweepResult>
}

/**
 * Creates the resource server of an account servicing entity: incoming payments and, if `pricing` is
 * configured, quotes and outgoing payments (Open Payments OpenAPI, Resource Server API).
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { createResourceServer } from 'open-payments-server'
 *
 * const resources = createResourceServer({
 *   baseUrl: 'https://op.wallet.example',
 *   grants: wallet.auth,
 *   walletAddresses: accounts,
 *   paymentMethods,
 *   pricing,
 * })
 * ```
 */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  const settings = readSettings(options)
  const { context, policy } = settings
  if (policy.mayPay !== undefined && !paymentEnds.every(context.recordsEvents)) {
    const problem = `must contain ${paymentEnds.join(', ')}: policy.mayPay may hold funds until then`
    throw new InvalidInputError('recordsEvents', problem)
  }
  const services = servicesIn(context, settings)
  // Only mayPay lets a payment wait for its owner.
  if (settings.pricing !== undefined && policy.mayPay !== undefined) {
    settings.onNarrowed?.push((grantId, store) => {
      const { confirmations } = store
        ? servicesIn(contextOn(store, context, 'resourceServer'), settings)
        : services
      return confirmations.declineForbidden(grantId)
    })
  }
  const swept = [
    services.incoming.swept,
    services.outgoing.swept,
    sweptBudgets(context, settings.hasGrants, policy.spending.budgets),
    retired('quote'),
    retired('transfer'),
    retired('doubt'),
    sweptReplays(context, policy.spending.payments),
  ]
  return {
    baseUrl: options.baseUrl,
    ...createHandlers(pipelineOf(settings, services)),
    ...services.forHost,
    events: createServerEvents(context),
    within: (store) => servicesIn(contextOn(store, context, 'resourceServer'), settings).forHost,
    sweep: (options) => sweepKinds(context, swept, options),
  }
}

type Settings = ReturnType<typeof readSettings>

function readSettings(given: ResourceServerOptions) {
  const own = readInput('', resourceServerOptions, given)
  const { grants, walletAddresses, paymentMethods, pricing, allowLoopback } = own
  const { grantEndpoint } = grants
  const { options: shared, onNarrowed } = wiringOf(grants) ?? {}
  if (shared !== undefined && given.store !== undefined && given.store !== shared.store) {
    const problem = 'must be the store of grants; leave it out, or use remoteGrants'
    throw new InvalidInputError('store', problem)
  }
  const common = readInput('', sharedGroup, { ...shared, ...sharedOf(given) })
  const { hostTimeoutMs } = common
  const url = publicUrl(own.baseUrl)
  const baseUrl = url.origin + url.basePath
  const issuer = publicUrl(readInput('grants.grantEndpoint', serverUrl, grantEndpoint))
  return {
    pricing: pricing && hostPricing(pricing, hostTimeoutMs, baseUrl, allowLoopback),
    grantEndpoint,
    introspect: introspectionOf(grants, shared !== undefined, hostTimeoutMs),
    /** Whether the grants are in the store of this server. */
    hasGrants: shared !== undefined,
    onNarrowed,
    walletAddresses: hostWalletAddresses(walletAddresses, hostTimeoutMs),
    paymentMethods: hostPaymentMethods(paymentMethods, hostTimeoutMs),
    url,
    baseUrl,
    strippedPrefix: requirePrefix(own.strippedPrefix, url),
    policy: resourcePolicy(own.policy, hostTimeoutMs),
    context: serviceContext(common, 'resourceServer', url, issuer),
    seenBudgets: createSeenBudgets(),
    repeats: common.compatibility.repeatedRequests,
    watch: hooksOf(common),
  }
}

/** An authorization server in this process limits the time of what it calls. */
function introspectionOf(
  grants: GrantSource,
  isHere: boolean,
  timeoutMs: number,
): IntrospectAndLoad {
  if (isHere) return grants.introspect.bind(grants)
  // Without the call: the function of an authorization server takes what to load with the grant there.
  return hostFunction('grants.introspect', timeoutMs, (query) => grants.introspect(query))
}

type Services = ReturnType<typeof servicesIn>

/** Creates the services in a context, and the interfaces through which the host calls them. */
function servicesIn(context: ServiceContext, settings: Settings) {
  const { walletAddresses, paymentMethods, pricing, policy } = settings
  const { baseUrl, hasGrants, seenBudgets } = settings
  const incoming = createIncomingPayments(
    context,
    { walletAddresses, paymentMethods, mayReceive: policy.mayReceive },
    policy.incoming,
  )
  const { spending, mayPay, accountLimits } = policy
  const outgoing = createOutgoingPayments(context, spending, seenBudgets)
  const quotes = pricing && createQuotes(context, { walletAddresses, pricing }, spending.quotes)
  const limits = limitServices(
    { context, walletAddresses, quotes, mayPay, accountLimits, policy: spending },
    hasGrants,
  )
  const creation =
    quotes &&
    createPaymentCreation(
      context,
      { hasGrants, walletAddresses, quotes, seenBudgets, mayPay, accountLimits },
      spending,
    )
  const confirmations = createOwnerConfirmations({
    ...{ context, hasGrants, walletAddresses, mayPay, accountLimits },
    policy: spending,
  })
  const forHost: ResourceServices = {
    incomingPayments: incomingPaymentServices(incoming, paymentMethods, context.clock, baseUrl),
    outgoingPayments: outgoingPaymentServices(
      outgoing,
      context.clock,
      baseUrl,
      hasGrants,
      limits,
      confirmations,
      creation,
    ),
    quotes: quoteServices(quotes),
  }
  return { incoming, outgoing, quotes, creation, confirmations, forHost }
}

function pipelineOf(settings: Settings, { incoming, outgoing, quotes, creation }: Services) {
  const { context, url, strippedPrefix, baseUrl, repeats } = settings
  const { introspect, grantEndpoint, watch } = settings
  const deps = { context, introspect, baseUrl, repeats }
  return {
    server: 'resourceServer',
    errors: resourceErrors,
    url,
    strippedPrefix,
    routes: quotes === undefined ? receivingRoutes : [...receivingRoutes, ...spendingRoutes],
    ...(quotes === undefined && { unserved: withoutPricing }),
    serve: {
      ...incomingPaymentOperations({ ...deps, payments: incoming, grantEndpoint }),
      ...(quotes !== undefined &&
        creation !== undefined &&
        spendingOperations({ ...deps, payments: outgoing, creation, quotes })),
    },
    context,
    challenge: `GNAP as_uri=${grantEndpoint}`,
    headers: varies,
    watch,
  } as const
}
