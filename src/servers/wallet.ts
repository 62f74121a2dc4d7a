import * as v from 'valibot'
import { hooksOf } from '../http/hooks.js'
import type { Handler, HttpRequest, HttpResponse } from '../http/message.js'
import { matchRoute, withoutPricing } from '../http/routes.js'
import { isBelow, publicUrl, resolveTarget, serverUrl } from '../http/target.js'
import { remoteClientKeys } from '../outbound/client-keys.js'
import { withOwnAccounts } from '../outbound/own-accounts.js'
import type {
  ClientKeys,
  PaymentMethods,
  Pricing,
  Subjects,
  WalletAddresses,
} from '../ports/host.js'
import type { Store } from '../ports/store.js'
import { given } from '../util/given.js'
import { group, type Members, optionsOf, port, readInput } from '../util/input.js'
import { InvalidInputError } from '../util/invalid-input.js'
import { isLoopback } from '../util/loopback.js'
import { type AuthorizationPolicy, authorizationPolicyOptions } from './authorization-policy.js'
import {
  type AuthorizationServer,
  type AuthorizationServices,
  clientKeysOption,
  createAuthorizationServer,
} from './authorization-server.js'
import { type ServerOptions, serverOptions, sharedOf } from './options.js'
import { type ResourcePolicy, resourcePolicyOptions } from './resource-policy.js'
import {
  createResourceServer,
  type ResourceServer,
  type ResourceServices,
} from './resource-server.js'
import { type WalletAddressServer, walletAddressServer } from './wallet-address-server.js'

/** Options of `createWallet`: those of its three servers, except what they tell each other. */
export interface WalletOptions extends ServerOptions {
  /** The URL below which everything is served, such as `https://wallet.example`: its wallet addresses begin with it. */
  readonly baseUrl: string
  /** URL of the host's consent page; the interaction's id is appended as one more path segment. */
  readonly consentUrl: string
  /**
   * The accounts, by the URLs of their wallet addresses. An account at the path of a route, such as `{baseUrl}/auth` or
   * `{baseUrl}/quotes`, cannot be read: ask `addresses.canServe` when an owner chooses a name.
   */
  readonly walletAddresses: WalletAddresses
  /** Creates the details by which incoming payments can be paid, such as `ilpPaymentMethods`. */
  readonly paymentMethods: PaymentMethods
  /** Prices outgoing payments. Without it, quotes and outgoing payments are not served. */
  readonly pricing?: Pricing
  /**
   * Finds the keys of all clients except the wallet's own accounts: a client whose wallet address is at or below
   * `baseUrl` has the `keys` that `walletAddresses.find` resolves to at each request, and is never fetched. Default:
   * `remoteClientKeys`, which may use loopback addresses if `baseUrl` is on loopback. Pass your own to call its
   * `forget`.
   */
  readonly clientKeys?: ClientKeys
  /** Determines the subject that clients receive when they request one. Default: such requests are refused. */
  readonly subjects?: Subjects
  /** The rules of both servers: lifetimes, consent, and what the host allows. */
  readonly policy?: AuthorizationPolicy & ResourcePolicy
  /** URL of the grant endpoint, below `baseUrl`. Default `{baseUrl}/auth`. */
  readonly grantEndpoint?: string
  /** URL of the resource server, at or below `baseUrl`. Default `baseUrl`. */
  readonly resourceServerUrl?: string
}

const walletOptions = optionsOf({
  ...serverOptions,
  baseUrl: serverUrl,
  consentUrl: serverUrl,
  walletAddresses: port<WalletAddresses>('find'),
  paymentMethods: port<PaymentMethods>('detailsOf', 'paymentIdOf'),
  pricing: v.optional(port<Pricing>('price')),
  clientKeys: v.optional(clientKeysOption),
  subjects: v.optional(port<Subjects>('resolve')),
  policy: group({ ...authorizationPolicyOptions, ...resourcePolicyOptions }),
  grantEndpoint: v.optional(serverUrl),
  resourceServerUrl: v.optional(serverUrl),
} satisfies Members<WalletOptions>)

/** The three servers of a wallet. */
export interface Wallet {
  /**
   * Serves every path below `baseUrl`: mount it after your own routes, or as the first line with the option
   * `fallthrough` of the adapters.
   */
  readonly handle: Handler
  /** The authorization server, with the calls of the host for interactions and grants. */
  readonly auth: AuthorizationServer
  /** The resource server, with the calls of the host for incoming and outgoing payments. */
  readonly resources: ResourceServer
  /** The wallet address server. */
  readonly addresses: WalletAddressServer
  /**
   * Returns the services for the host's own code on another store, such as one inside a transaction of the host, so
   * that their writes commit or roll back together with the host's own rows.
   */
  within(store: Store): AuthorizationServices & ResourceServices
}

/**
 * Creates the authorization server, the resource server and the wallet address server of one wallet, over one store
 * and one set of accounts, and one handler for all of them. By default grants are served at `{baseUrl}/auth`, payments
 * at `{baseUrl}/incoming-payments`, and wallet addresses at every other path.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 *
 * @example
 * ```ts
 * import { createWallet } from 'open-payments-server'
 * import { postgresStore } from 'open-payments-server/postgres'
 *
 * const wallet = createWallet({
 *   baseUrl: 'https://wallet.example',
 *   consentUrl: 'https://wallet.example/consent',
 *   store: postgresStore(pool),
 *   walletAddresses: accounts,
 *   paymentMethods,
 *   pricing,
 * })
 * ```
 */
export function createWallet(options: WalletOptions): Wallet {
  const settings = readInput('', walletOptions, options)
  const { baseUrl, consentUrl, walletAddresses, paymentMethods, pricing, subjects } = settings
  const { strippedPrefix, policy } = settings
  const url = publicUrl(baseUrl)
  const root = url.origin + url.basePath
  const { grantEndpoint = `${root}/auth`, resourceServerUrl = baseUrl } = settings
  const paths = {
    auth: pathBelow(url, 'grantEndpoint', grantEndpoint),
    resources: pathBelow(url, 'resourceServerUrl', resourceServerUrl),
  }
  if (paths.auth === paths.resources) {
    throw new InvalidInputError('grantEndpoint', 'must not be the URL of the resource server')
  }
  const { clientKeys: others = remoteClientKeys({ allowLoopback: isLoopback(new URL(root)) }) } =
    settings
  const clientKeys = withOwnAccounts({ baseUrl: root, walletAddresses }, others)
  const {
    incomingPayments,
    quotes,
    outgoingPayments,
    mayPay,
    mayReceive,
    accountLimits,
    ...authorization
  } = policy
  const auth = createAuthorizationServer({
    ...sharedOf(settings),
    strippedPrefix,
    grantEndpoint,
    consentUrl,
    clientKeys,
    ...(subjects !== undefined && { subjects }),
    policy: authorization,
  })
  const resources = createResourceServer({
    strippedPrefix,
    baseUrl: resourceServerUrl,
    grants: auth,
    walletAddresses,
    paymentMethods,
    ...(pricing !== undefined && { pricing }),
    policy: {
      incomingPayments,
      quotes,
      outgoingPayments,
      ...given({ mayPay, mayReceive, accountLimits }),
    },
  })
  const { clock } = settings
  const addresses = walletAddressServer(
    {
      strippedPrefix,
      baseUrl,
      walletAddresses,
      grantEndpoint,
      resourceServerUrl,
      clock,
      ...hooksOf(settings),
    },
    pricing === undefined && paths.resources === '' ? withoutPricing : undefined,
  )

  function serverAt(method: string, path: string): { readonly handle: Handler } {
    if (isBelow(path, paths.auth)) return auth
    if (!isBelow(path, paths.resources)) return addresses
    if (paths.resources !== '') return resources
    const match = matchRoute(resources.routes, method, path)
    return match.ok || match.refusal === 'method_unknown' ? resources : addresses
  }

  function handlerOf(request: Pick<HttpRequest, 'method' | 'url'>): Handler {
    const target = resolveTarget(request.url, url, strippedPrefix)
    return (target.ok ? serverAt(request.method, target.value.path) : addresses).handle
  }

  const handle: Handler = Object.assign(
    async (request: HttpRequest): Promise<HttpResponse> => handlerOf(request)(request),
    {
      mayMatch: (request: Pick<HttpRequest, 'method' | 'url'>) =>
        handlerOf(request).mayMatch?.(request) !== false,
    },
  )

  return {
    handle,
    auth,
    resources,
    addresses,
    within: (store) => ({ ...auth.within(store), ...resources.within(store) }),
  }
}

/** Returns the path of a URL below `baseUrl`; every server of a wallet is there. */
function pathBelow(base: ReturnType<typeof publicUrl>, option: string, text: string): string {
  const { origin, basePath } = publicUrl(text)
  if (origin === base.origin && isBelow(basePath, base.basePath)) {
    return basePath.slice(base.basePath.length)
  }
  throw new InvalidInputError(
    option,
    'must be below baseUrl; otherwise create the servers one by one',
  )
}
