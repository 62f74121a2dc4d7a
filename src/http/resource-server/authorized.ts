import { type AccessAction, type AccessType, type GrantedItem, permits } from '../../core/access.js'
import { ok } from '../../core/decision.js'
import { clientId } from '../../core/grant/record.js'
import type { ActiveToken, Introspect } from '../../ports/host.js'
import type { ServiceContext } from '../../service/context.js'
import { introspected } from '../../service/introspection.js'
import type { Proof, RepeatRule } from '../../service/replay.js'
import { inspect, presentedToken, prove } from '../authenticate.js'
import { type Exchange, refuse, type Serve, type ServeSigned, signed } from '../pipeline.js'
import type { HttpRefusal, HttpResult } from '../refusals.js'

/** The dependencies of every operation of a resource server. */
export interface ResourceDependencies {
  readonly context: ServiceContext
  readonly introspect: Introspect
  /** The resource server's URL without a trailing slash; the base of the URLs of its resources. */
  readonly baseUrl: string
  readonly repeats: RepeatRule
}

/** A request with an active token, signed with the key that the token is bound to. */
interface Authorized {
  readonly token: ActiveToken
  /** The presented token, which is introspected again if its grant changes before the commit. */
  readonly accessToken: string
  /** The client instance, as `clientId` identifies it. */
  readonly client: string
  readonly proof: Proof
  /** Returns the access item that allows an action at the wallet address, or at any if it is omitted. */
  permitted(type: AccessType, action: AccessAction, walletAddress?: string): GrantedItem | undefined
  /** Whether the token allows reading a resource: the client's own with `read`, any with `read-all`. */
  readable(type: AccessType, resource: { walletAddress: string; client?: string }): boolean
}

/** Serves a request after its signature and token have been verified. */
export function authorized(deps: ResourceDependencies, serve: ServeSigned<Authorized>): Serve {
  return signed(deps, (exchange) => authorize(exchange, deps), serve)
}

/** Refuses a request that the token does not allow. */
export function insufficient(type: AccessType, action: AccessAction): HttpRefusal {
  return refuse('access_insufficient', `the token does not allow ${action} of ${type}`)
}

/** Refuses a request for a wallet address that the token does not allow. */
export function foreignIdentifier(): HttpRefusal {
  return refuse('identifier_foreign', 'the token is for another wallet address')
}

/**
 * Checks the signature's form, the token, introspection and the signature itself: the cheapest check first.
 */
export async function authorize(
  exchange: Exchange,
  { context, introspect }: ResourceDependencies,
): Promise<HttpResult<Authorized>> {
  const candidates = await inspect(exchange, context.signatureRules)
  if (!candidates.ok) return candidates
  const presented = presentedToken(exchange)
  if (!presented.ok) return presented
  const accessToken = presented.value
  const introspection = await introspected(introspect, accessToken)
  if (!introspection.ok) return introspection
  const token = introspection.value
  const { key, walletAddress, access } = token
  const client = walletAddress === undefined ? key : { ...key, walletAddress }
  const proof = await prove(exchange, candidates.value, key, client)
  if (!proof.ok) return proof
  const own = clientId(client)
  const permitted = (type: AccessType, action: AccessAction, at?: string) =>
    permits(access, type, action, at)
  return ok({
    token,
    accessToken,
    client: own,
    proof: proof.value,
    permitted,
    readable: (type, { walletAddress, client }) =>
      permitted(type, 'read-all', walletAddress) !== undefined ||
      (permitted(type, 'read', walletAddress) !== undefined && client === own),
  })
}
