import { ok } from '../core/decision.js'
import { wholeMilliseconds } from '../core/instant.js'
import { noContent, revalidated } from '../http/body.js'
import { type Exchange, unsigned } from '../http/exchange.js'
import { hookOptions, hooksOf, type ServerHooks } from '../http/hooks.js'
import type { Handler, HttpResponse } from '../http/message.js'
import { createHandlers } from '../http/pipeline.js'
import { walletAddressErrors } from '../http/public-errors.js'
import { type HttpResult, refuse } from '../http/refusals.js'
import {
  grantRoutes,
  introspectionRoutes,
  receivingRoutes,
  type ServerHandlers,
  type ServerRoute,
  spendingRoutes,
  type UnservedRoutes,
  walletAddressRoutes,
} from '../http/routes.js'
import { isBelow, type PublicUrl, publicUrl, serverUrl } from '../http/target.js'
import type { Clock, WalletAddress, WalletAddresses } from '../ports/host.js'
import { clockOption } from '../protocol/host-options.js'
import { publishedJwk } from '../protocol/http-signature/jwk.js'
import { canonicalUrl } from '../protocol/url.js'
import { type Members, optionsOf, port, readInput } from '../util/input.js'
import { hostWalletAddresses } from './host-ports.js'
import { requirePrefix, strippedPrefixOption } from './options.js'

/** Options of `createWalletAddressServer`. */
export interface WalletAddressServerOptions extends ServerHooks {
  /** The base URL of the wallet addresses, such as `https://wallet.example`. */
  readonly baseUrl: string
  /** The accounts, by the URLs of their wallet addresses. */
  readonly walletAddresses: WalletAddresses
  /** URL of the grant endpoint, published as `authServer`. */
  readonly grantEndpoint: string
  /** URL of the resource server, published as `resourceServer`. */
  readonly resourceServerUrl: string
  /** The source of the current time. Default: `Date`. */
  readonly clock?: Clock
  /** The prefix of the published path that a reverse proxy strips. Default: none. */
  readonly strippedPrefix?: string
}

const addressServerOptions = optionsOf({
  baseUrl: serverUrl,
  walletAddresses: port<WalletAddresses>('find'),
  grantEndpoint: serverUrl,
  resourceServerUrl: serverUrl,
  clock: clockOption,
  strippedPrefix: strippedPrefixOption,
  ...hookOptions,
} satisfies Members<WalletAddressServerOptions>)

/** A server of wallet addresses and their keys. */
export interface WalletAddressServer {
  /** Serves every wallet address below `baseUrl`, and responds with 404 to any other path. */
  readonly handle: Handler
  /** One handler for each operation, for hosts with their own router. */
  readonly handlers: ServerHandlers<'walletAddressServer'>
  /** The routes that this server serves. */
  readonly routes: readonly ServerRoute[]
  /**
   * Whether an account can have a wallet address: it is a canonical URL at or below `baseUrl`, and not at or below the
   * path of a route, in any case of letters. Call it when an owner chooses the name of an account: an account at the
   * path of a route cannot be read.
   *
   * @param ownPaths the paths of your own routes on this origin, such as `/consent`. The routes of the authorization
   *   server and of the resource server are known.
   */
  canServe(walletAddress: string, ownPaths?: readonly string[]): boolean
}

/**
 * Wallet addresses and key sets are public, and web pages read them from other origins. Error responses have
 * the header too, so that a page can distinguish a missing wallet address from a network failure.
 */
const crossOrigin = { 'access-control-allow-origin': '*' }

const preflightResponse = ok<HttpResponse>({
  ...noContent.value,
  headers: {
    ...noContent.value.headers,
    allow: 'GET, HEAD, OPTIONS',
    'access-control-allow-methods': 'GET, HEAD',
    'access-control-allow-headers': '*',
    'access-control-max-age': '86400',
  },
})

/**
 * Creates the wallet address server, where every client starts: it serves the name and asset of an account,
 * the URLs of its authorization server and resource server, and its public keys.
 *
 * @throws {InvalidInputError} for an invalid or unknown option.
 * @see Open Payments OpenAPI, Wallet Address API
 *
 * @example
 * ```ts
 * import { createWalletAddressServer } from 'open-payments-server'
 *
 * const addresses = createWalletAddressServer({
 *   baseUrl: 'https://wallet.example',
 *   grantEndpoint: 'https://auth.wallet.example',
 *   resourceServerUrl: 'https://op.wallet.example',
 *   walletAddresses: accounts,
 * })
 * ```
 */
export function createWalletAddressServer(
  options: WalletAddressServerOptions,
): WalletAddressServer {
  return walletAddressServer(options)
}

/** @param unserved the routes at the same URL that another server of the wallet does not serve. */
export function walletAddressServer(
  options: WalletAddressServerOptions,
  unserved?: UnservedRoutes,
): WalletAddressServer {
  const settings = readInput('', addressServerOptions, options)
  const { grantEndpoint, resourceServerUrl, clock } = settings
  const url = publicUrl(settings.baseUrl)
  const others = [
    routeUrls(publicUrl(grantEndpoint), url, [...grantRoutes, ...introspectionRoutes]),
    routeUrls(publicUrl(resourceServerUrl), url, [...receivingRoutes, ...spendingRoutes]),
  ].flat()
  const watch = hooksOf(settings)
  const walletAddresses = hostWalletAddresses(settings.walletAddresses, settings.hostTimeoutMs)
  const baseUrl = url.origin + url.basePath

  async function find({ id }: Exchange): Promise<HttpResult<WalletAddress>> {
    const walletAddress = canonicalUrl(baseUrl + id)
    const found = walletAddress && (await walletAddresses.find(walletAddress))
    return found ? ok(found) : refuse('resource_unknown', 'the wallet address does not exist')
  }

  function canServe(walletAddress: string, ownPaths: readonly string[] = []): boolean {
    const address = walletAddress.toLowerCase()
    const taken = [
      ...others,
      ...ownPaths.filter((path) => path !== '').map((path) => url.origin + path),
    ]
    return (
      canonicalUrl(walletAddress) === walletAddress &&
      isBelow(walletAddress, baseUrl) &&
      !address.endsWith('/jwks.json') &&
      // Routers such as Express ignore case.
      !taken.some((each) => isBelow(address, each.toLowerCase()))
    )
  }

  const server = createHandlers({
    server: 'walletAddressServer',
    errors: walletAddressErrors,
    url,
    strippedPrefix: requirePrefix(settings.strippedPrefix, url),
    routes: walletAddressRoutes,
    ...(unserved !== undefined && { unserved }),
    serve: {
      getWalletAddress: unsigned(async (exchange) => {
        const found = await find(exchange)
        if (!found.ok) return found
        const { url: id, publicName, assetCode, assetScale, publicProperties } = found.value
        const named = publicName !== undefined && { publicName }
        const servers = { authServer: grantEndpoint, resourceServer: resourceServerUrl }
        const asset = { assetCode, assetScale }
        const document = { id, ...named, ...asset, ...servers, ...publicProperties }
        return revalidated(exchange.message, document)
      }),
      getWalletAddressKeys: unsigned(async (exchange) => {
        const found = await find(exchange)
        if (!found.ok) return found
        return revalidated(exchange.message, { keys: (found.value.keys ?? []).map(publishedJwk) })
      }),
      preflight: unsigned(async (exchange) => {
        const found = await find({ ...exchange, id: exchange.id.replace(/\/jwks\.json$/, '') })
        // Without the host's own answer, a page learns from its request that there is no such wallet address.
        return found.ok ? preflightResponse : ok({ ...preflightResponse.value, unmatched: true })
      }),
    },
    context: { clock: wholeMilliseconds(clock), random: crypto },
    headers: crossOrigin,
    // A request that only a page of the host can expect, such as one with a long cookie, included.
    unmatched: [
      'route_unknown',
      'method_unknown',
      'headers_invalid',
      'media_type_unsupported',
      'resource_unknown',
    ],
    watch,
  })
  return { ...server, canServe }
}

/**
 * Returns the URLs at and below which another server has its routes: the first segments of their paths, and the URL of
 * a server that is mounted below the wallet addresses.
 */
function routeUrls(
  { origin, basePath }: PublicUrl,
  addresses: PublicUrl,
  routes: readonly ServerRoute[],
): readonly string[] {
  const isMounted = basePath !== addresses.basePath && isBelow(basePath, addresses.basePath)
  const segments = routes.flatMap(({ path }) => /^\/[^/]+/.exec(path) ?? [])
  return [...(isMounted ? [''] : []), ...segments].map((path) => origin + basePath + path)
}
