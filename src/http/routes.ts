import { ok, type Refused, type Result, refused } from '../core/decision.js'
import type { Handler } from './message.js'

export type Server = 'authorizationServer' | 'resourceServer' | 'walletAddressServer'

export const grantRoutes = [
  { operation: 'requestGrant', method: 'POST', path: '' },
  { operation: 'discover', method: 'OPTIONS', path: '' },
  { operation: 'continueGrant', method: 'POST', path: '/continue/{id}' },
  { operation: 'cancelGrant', method: 'DELETE', path: '/continue/{id}' },
  { operation: 'rotateToken', method: 'POST', path: '/token/{id}' },
  { operation: 'revokeToken', method: 'DELETE', path: '/token/{id}' },
] as const

/** The route of an authorization server with resource servers in other processes. */
export const introspectionRoutes = [
  { operation: 'introspectToken', method: 'POST', path: '/introspect' },
] as const

export const receivingRoutes = [
  { operation: 'createIncomingPayment', method: 'POST', path: '/incoming-payments' },
  { operation: 'listIncomingPayments', method: 'GET', path: '/incoming-payments' },
  { operation: 'getIncomingPayment', method: 'GET', path: '/incoming-payments/{id}' },
  {
    operation: 'completeIncomingPayment',
    method: 'POST',
    path: '/incoming-payments/{id}/complete',
  },
] as const

/** The routes of a resource server with `pricing`. */
export const spendingRoutes = [
  { operation: 'createQuote', method: 'POST', path: '/quotes' },
  { operation: 'getQuote', method: 'GET', path: '/quotes/{id}' },
  { operation: 'createOutgoingPayment', method: 'POST', path: '/outgoing-payments' },
  { operation: 'listOutgoingPayments', method: 'GET', path: '/outgoing-payments' },
  { operation: 'getOutgoingPayment', method: 'GET', path: '/outgoing-payments/{id}' },
  { operation: 'getOutgoingPaymentGrant', method: 'GET', path: '/outgoing-payment-grant' },
] as const

export const walletAddressRoutes = [
  { operation: 'getWalletAddressKeys', method: 'GET', path: '{path}/jwks.json' },
  { operation: 'getWalletAddress', method: 'GET', path: '{path}' },
  { operation: 'preflight', method: 'OPTIONS', path: '{path}' },
] as const

/** The names of the operations of one kind of server. Default: of all. */
export type ServerOperation<
  Of extends 'authorizationServer' | 'resourceServer' | 'walletAddressServer' =
    | 'authorizationServer'
    | 'resourceServer'
    | 'walletAddressServer',
> = {
  readonly authorizationServer:
    | (typeof grantRoutes)[number]['operation']
    | (typeof introspectionRoutes)[number]['operation']
  readonly resourceServer:
    | (typeof receivingRoutes)[number]['operation']
    | (typeof spendingRoutes)[number]['operation']
  readonly walletAddressServer: (typeof walletAddressRoutes)[number]['operation']
}[Of]

/** A handler for each operation of a server; optional if its option may be missing: `resourceServers` or `pricing`. */
export type ServerHandlers<
  Of extends 'authorizationServer' | 'resourceServer' | 'walletAddressServer',
> = {
  readonly [Name in Exclude<
    ServerOperation<Of>,
    (typeof introspectionRoutes | typeof spendingRoutes)[number]['operation']
  >]: Handler
} & {
  readonly [Name in Extract<
    ServerOperation<Of>,
    (typeof introspectionRoutes | typeof spendingRoutes)[number]['operation']
  >]?: Handler
}

/**
 * The route of an operation. `path` is relative to the server's URL; in it, `{id}` matches one segment and
 * `{path}` any number of segments.
 */
export interface ServerRoute {
  readonly operation: ServerOperation
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
  readonly path: string
}

/** The routes that a server does not serve because an option is absent. */
export interface UnservedRoutes {
  readonly option: string
  readonly routes: readonly ServerRoute[]
}

export const withoutPricing: UnservedRoutes = { option: 'pricing', routes: spendingRoutes }

export const withoutResourceServers: UnservedRoutes = {
  option: 'resourceServers of createAuthorizationServer',
  routes: introspectionRoutes,
}

type RouteMatch = Result<
  { readonly route: ServerRoute; readonly id: string },
  Refused<'route_unknown'> | (Refused<'method_unknown'> & { readonly allow: string })
>

/**
 * Finds the route of a request. HEAD is routed like GET (RFC 9110 section 9.3.2). One trailing slash is
 * ignored, because some clients append one to the URLs that they received.
 */
export function matchRoute(
  routes: readonly ServerRoute[],
  method: string,
  target: string,
): RouteMatch {
  const path = target.endsWith('/') ? target.slice(0, -1) : target
  const effective = method === 'HEAD' ? 'GET' : method
  for (const route of routes) {
    const id = route.method === effective ? idIn(route.path, path) : undefined
    if (id !== undefined) return ok({ route, id })
  }
  const here = routes.filter((route) => idIn(route.path, path) !== undefined)
  if (here.length === 0) {
    const paths = new Set(routes.map((route) => route.path || '/'))
    return refused(
      'route_unknown',
      `no operation matches this path; there is ${[...paths].join(', ')}`,
    )
  }
  const methods = new Set<string>(here.map((candidate) => candidate.method))
  if (methods.has('GET')) methods.add('HEAD')
  const unknown = refused('method_unknown', 'the path does not support this method')
  return { ...unknown, allow: [...methods].join(', ') }
}

/** Returns the text that the braces match, `''` for a pattern without braces, `undefined` without a match. */
function idIn(pattern: string, path: string): string | undefined {
  const open = pattern.indexOf('{')
  if (open === -1) return path === pattern ? '' : undefined
  const close = pattern.indexOf('}') + 1
  const [before, braces, after] = [
    pattern.slice(0, open),
    pattern.slice(open, close),
    pattern.slice(close),
  ]
  if (path.length < before.length + after.length) return undefined
  if (!path.startsWith(before) || !path.endsWith(after)) return undefined
  const id = path.slice(before.length, path.length - after.length)
  if (braces === '{path}') return id
  return id === '' || id.includes('/') ? undefined : id
}
