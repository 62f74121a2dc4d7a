import { type AccessAction, type AccessType, type GrantedItem, permits } from '../../core/access.js'
import { clientId } from '../../core/grant/record.js'
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
import type { HttpRefusal } from '../refusals.js'

/** What every operation of a resource server works with. */
export interface ResourceDependencies {
  readonly context: ServiceContext
  readonly introspect: Introspect
  /** The resource server's URL without a trailing slash: what the URLs of its resources begin with. */
  readonly baseUrl: string
  readonly repeats: RepeatRule
}

/** A request whose token is good and whose signature was made by the key that the token is bound to. */
export interface Authorized {
  readonly token: ActiveToken
  /** As it was presented, to be asked about again when a commit has lost. */
  readonly accessToken: string
  /** Who creates and owns: see `clientId`. */
  readonly client: string
  readonly proof: Proof
  readonly nonceGuard: NonceGuard | undefined
  /** The item that allows this at a wallet address, or anywhere if none is named. */
  permitted(type: AccessType, action: AccessAction, walletAddress?: string): GrantedItem | undefined
  /** Whether a resource may be read: the client's own with `read`, any client's that `read-all` covers. */
  readable(type: AccessType, resource: { walletAddress: string; client: string }): boolean
  /** Refuses the request, at the price of its nonce. */
  refusing(refusal: HttpRefusal): Promise<HttpRefusal | Replayed>
  /** Refuses a request whose token does not allow it. */
  insufficient(type: AccessType, action: AccessAction): Promise<HttpRefusal | Replayed>
}

/** Serves a request once it is known whose it is and what its token allows. */
export function authorized(
  deps: ResourceDependencies,
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
  { context, introspect, repeats }: ResourceDependencies,
): Promise<Authorized | HttpRefusal> {
  const candidates = await inspect(exchange, context.signatureRules)
  if ('outcome' in candidates) return candidates
  const presented = presentedToken(exchange)
  if ('outcome' in presented) return presented
  const token = await introspected(introspect, presented.token)
  if ('outcome' in token) return token
  const { key, walletAddress, access } = token
  const client = walletAddress === undefined ? key : { ...key, walletAddress }
  const proof = await prove(exchange, candidates, key, client)
  if ('outcome' in proof) return proof
  const nonceGuard = await nonceGuardOf(context, proof, repeats, exchange.call)
  const own = clientId(client)
  const permitted = (type: AccessType, action: AccessAction, at?: string) =>
    permits(access, type, action, at)
  const refusing = (refusal: HttpRefusal) =>
    consumeNonce(context, nonceGuard, refusal, { refused: true })
  return {
    token,
    accessToken: presented.token,
    client: own,
    proof,
    nonceGuard,
    permitted,
    readable: (type, { walletAddress, client }) =>
      permitted(type, 'read-all', walletAddress) !== undefined ||
      (permitted(type, 'read', walletAddress) !== undefined && client === own),
    refusing,
    insufficient: (type, action) =>
      refusing(refuse('access_insufficient', `the token does not allow ${action} of ${type}`)),
  }
}
