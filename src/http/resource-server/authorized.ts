import { type AccessAction, type AccessType, type GrantedItem, permits } from '../../core/access.js'
import { clientId } from '../../core/grant/record.js'
import { ok } from '../../core/result.js'
import type { ActiveToken, Introspect } from '../../ports/introspect.js'
import { introspected } from '../../service/introspection.js'
import type { ServiceContext } from '../../service/mechanism/context.js'
import {
  consumeNonce,
  nonceGuardOf,
  type Proof,
  type RepeatRule,
} from '../../service/mechanism/nonces.js'
import type { NonceGuard, Replayed } from '../../service/mechanism/transact.js'
import { inspect, presentedToken, prove } from '../authenticate.js'
import { type Exchange, refuse, type Serve } from '../pipeline.js'
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
export interface Authorized {
  readonly token: ActiveToken
  /** The presented token, introspected again when a commit loses a race. */
  readonly accessToken: string
  /** The client instance, as `clientId` identifies it. */
  readonly client: string
  readonly proof: Proof
  readonly nonceGuard: NonceGuard | undefined
  /** Returns the access item that allows an action at the wallet address, or at any if it is omitted. */
  permitted(type: AccessType, action: AccessAction, walletAddress?: string): GrantedItem | undefined
  /** Whether the token allows reading a resource: the client's own with `read`, any with `read-all`. */
  readable(type: AccessType, resource: { walletAddress: string; client: string }): boolean
  /** Refuses the request, and consumes its nonce. */
  refusing(refusal: HttpRefusal): Promise<HttpRefusal | Replayed>
  /** Refuses a request that the token does not allow, and consumes its nonce. */
  insufficient(type: AccessType, action: AccessAction): Promise<HttpRefusal | Replayed>
}

/** Serves a request after its signature and token have been verified. */
export function authorized(
  deps: ResourceDependencies,
  serve: (exchange: Exchange, authorized: Authorized) => ReturnType<Serve>,
): Serve {
  return async (exchange) => {
    const authorization = await authorize(exchange, deps)
    return authorization.ok ? serve(exchange, authorization.value) : authorization
  }
}

/**
 * Checks the signature's form, the token, introspection and the signature itself: the cheapest check first.
 */
async function authorize(
  exchange: Exchange,
  { context, introspect, repeats }: ResourceDependencies,
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
  const nonceGuard = await nonceGuardOf(context, proof.value, repeats, exchange.call)
  const own = clientId(client)
  const permitted = (type: AccessType, action: AccessAction, at?: string) =>
    permits(access, type, action, at)
  const refusing = (refusal: HttpRefusal) =>
    consumeNonce(context, nonceGuard, refusal, { refused: true })
  return ok({
    token,
    accessToken,
    client: own,
    proof: proof.value,
    nonceGuard,
    permitted,
    readable: (type, { walletAddress, client }) =>
      permitted(type, 'read-all', walletAddress) !== undefined ||
      (permitted(type, 'read', walletAddress) !== undefined && client === own),
    refusing,
    insufficient: (type, action) =>
      refusing(refuse('access_insufficient', `the token does not allow ${action} of ${type}`)),
  })
}
