import type { IncomingPayment, IncomingPaymentPolicy } from '../core/incoming-payment.js'
import type { Introspect } from '../ports/introspect.js'
import type { PaymentMethods } from '../ports/payment-methods.js'
import type { Store } from '../ports/store.js'
import type { WalletAddresses } from '../ports/wallet-addresses.js'
import { invalidOption } from '../protocol/option-error.js'
import { type IncomingPaymentBody, incomingPaymentBody } from '../protocol/payments.js'
import { canonicalUrl } from '../protocol/url.js'
import { newCall } from '../service/context.js'
import type { EventSource } from '../service/delivery.js'
import {
  createIncomingPayments,
  type IncomingPayments,
  type ReceivedFunds,
  type ReceiveResult,
} from '../service/incoming-payments.js'
import { createOutbox } from '../service/outbox.js'
import { purge } from '../service/sweeps.js'
import {
  createIncomingPayment,
  getIncomingPayment,
  incomingPaymentUrl,
} from './incoming-payment-operations.js'
import type { Handler } from './message.js'
import {
  durations,
  repeatRule,
  requireFunction,
  requireKnown,
  requireMethods,
  requirePrefix,
  requireStore,
  type ServerOptions,
  serviceContext,
} from './options.js'
import { createHandlers } from './pipeline.js'
import type { Route } from './routes.js'
import { publicUrl } from './target.js'

/** What the host decides about payments. Durations are in milliseconds. */
export interface ResourcePolicy {
  /** Life of an incoming payment whose creator named no `expiresAt`. Default 30 days. */
  readonly incomingPaymentExpiryDefaultMs?: number
  /** How far away `expiresAt` may be. Default 30 days. */
  readonly incomingPaymentExpiryMaxMs?: number
  /** How long after its expiry a payment is kept, before `purge` may remove it. Default 365 days. */
  readonly incomingPaymentRetentionMs?: number
}

export interface ResourceServerOptions extends ServerOptions {
  /** URL of the resource server, exactly the string that wallet addresses publish as `resourceServer`. */
  readonly baseUrl: string
  /** URL of the grant endpoint, sent to clients that come without a good token. */
  readonly grantEndpoint: string
  /** `introspect` of the authorization server, or another way to ask it. */
  readonly introspect: Introspect
  readonly walletAddresses: WalletAddresses
  readonly paymentMethods: PaymentMethods
  readonly policy?: ResourcePolicy
}

/** What the host does with incoming payments from its own code. */
export interface IncomingPaymentServices {
  /** Reads a payment by its id, or answers `undefined` if there is none. */
  get(paymentId: string): Promise<IncomingPayment | undefined>
  /** The id in a payment's URL, or `undefined` if the URL is not one of this server's. */
  idOf(url: string): string | undefined
  /** A payment as clients see it, without the details by which it is paid. */
  toJSON(payment: IncomingPayment): IncomingPaymentBody
  /** Finds the payment that an ILP address was handed out for: the way back from a packet to a payment. */
  findByIlpAddress(ilpAddress: string): Promise<IncomingPayment | undefined>
  /**
   * Counts funds that have arrived. Refused: credit nobody, and send the funds back. Accepted: the same
   * `transferId` may be reported again at any time and counts once.
   *
   * @throws an error with code `ERR_CONTENTION` when others kept changing the payment for 3 s.
   */
  receive(funds: ReceivedFunds): Promise<ReceiveResult>
  /**
   * Records the expiry of payments whose time has passed, so that an `incoming-payment.expired` event tells
   * of each, once. Run it now and then, in as many processes as you like; what is accepted never depends on
   * it. Payments past their retention that it meets are removed.
   *
   * @param limit the most payments that it looks at. Default 100.
   * @returns how many expiries this call has recorded; call again at once until there is none.
   */
  expireDue(limit?: number): Promise<number>
}

/** What the host can do on a store of its choice: see `ResourceServer.within`. */
export interface ResourceServices {
  readonly incomingPayments: IncomingPaymentServices
}

export type ResourceOperation = 'createIncomingPayment' | 'getIncomingPayment'

export interface ResourceServer extends ResourceServices {
  /** Serves every route below `baseUrl`. */
  readonly handle: Handler
  /** The same operation by operation, for hosts that route for themselves. */
  readonly handlers: Readonly<Record<ResourceOperation, Handler>>
  readonly routes: readonly Route[]
  /** What happened to payments, for the host to hear of. */
  readonly events: EventSource
  /**
   * The same services on another store: one inside a transaction that the host holds, so that they commit
   * or roll back together with the host's own rows.
   */
  within(store: Store): ResourceServices
  /**
   * Removes records past their retention: payments, transfers, used signatures.
   *
   * @param limit the most records of each kind that it looks at. Default 1,000.
   * @returns how many it has removed; call again at once until there is none.
   */
  purge(limit?: number): Promise<number>
}

const month = 30 * 86_400_000

const defaultPolicy = {
  incomingPaymentExpiryDefaultMs: month,
  incomingPaymentExpiryMaxMs: month,
  incomingPaymentRetentionMs: 365 * 86_400_000,
}

const routes: readonly Route[] = [
  { operation: 'createIncomingPayment', method: 'POST', path: '/incoming-payments' },
  { operation: 'getIncomingPayment', method: 'GET', path: '/incoming-payments/{id}' },
]

/**
 * Creates the resource server of an account servicing entity: its incoming payments.
 *
 * @throws `TypeError` with code `ERR_INVALID_OPTION` and the name of the `option` that could not work.
 */
export function createResourceServer(options: ResourceServerOptions): ResourceServer {
  const { introspect, walletAddresses, paymentMethods } = options
  const url = publicUrl('baseUrl', options.baseUrl)
  publicUrl('grantEndpoint', options.grantEndpoint)
  requireFunction('introspect', introspect)
  requireMethods('walletAddresses', walletAddresses, ['find'])
  requireMethods('paymentMethods', paymentMethods, ['detailsOf', 'paymentIdOf'])
  const policy = incomingPaymentPolicy(options.policy ?? {})
  const context = serviceContext(options, options.baseUrl)
  const ports = { walletAddresses, paymentMethods }
  const payments = createIncomingPayments(context, ports, policy)

  const baseUrl = url.origin + url.basePath
  const deps = { context, payments, introspect, baseUrl, repeats: repeatRule(options) }
  const handlers = createHandlers({
    server: 'resourceServer',
    url,
    strippedPrefix: requirePrefix(options.strippedPrefix ?? '', url),
    routes,
    serve: {
      createIncomingPayment: createIncomingPayment(deps),
      getIncomingPayment: getIncomingPayment(deps),
    },
    newCall: () => newCall(context),
    challenge: `GNAP as_uri=${options.grantEndpoint}`,
    watch: options,
  })
  return {
    ...handlers,
    incomingPayments: incomingPaymentServices(payments, paymentMethods, baseUrl),
    events: createOutbox(context),
    within(store) {
      const inside = { ...context, store: requireStore(store) }
      const payments = createIncomingPayments(inside, ports, policy)
      return { incomingPayments: incomingPaymentServices(payments, paymentMethods, baseUrl) }
    },
    async purge(limit = 1_000) {
      const { removed } = await payments.settleDue(limit)
      return removed + (await purge(context, ['transfer', 'replay'], limit))
    },
  }
}

function incomingPaymentServices(
  payments: IncomingPayments,
  paymentMethods: PaymentMethods,
  baseUrl: string,
): IncomingPaymentServices {
  const collection = `${baseUrl}/incoming-payments/`
  return {
    get: payments.load,
    idOf(url) {
      const canonical = canonicalUrl(url)
      if (canonical === undefined || !canonical.startsWith(collection)) return undefined
      const id = canonical.slice(collection.length)
      return /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined
    },
    toJSON: (payment) => incomingPaymentBody(payment, incomingPaymentUrl(baseUrl, payment.id)),
    async findByIlpAddress(ilpAddress) {
      const id = paymentMethods.paymentIdOf(ilpAddress)
      return id === undefined ? undefined : payments.load(id)
    },
    receive: payments.receive,
    expireDue: async (limit = 100) => (await payments.settleDue(limit)).expired,
  }
}

function incomingPaymentPolicy(given: ResourcePolicy): IncomingPaymentPolicy {
  requireKnown('policy', given, Object.keys(defaultPolicy))
  const {
    incomingPaymentExpiryDefaultMs: expiryDefaultMs,
    incomingPaymentExpiryMaxMs: expiryMaxMs,
    incomingPaymentRetentionMs: retentionMs,
  } = durations('policy', defaultPolicy, given)
  if (expiryDefaultMs === 0) {
    throw invalidOption('policy.incomingPaymentExpiryDefaultMs', 'must be more than nothing')
  }
  if (expiryDefaultMs > expiryMaxMs) {
    throw invalidOption('policy.incomingPaymentExpiryDefaultMs', 'exceeds the maximum')
  }
  return { expiryDefaultMs, expiryMaxMs, retentionMs }
}
