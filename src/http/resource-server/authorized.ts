import { type AccessAction, type AccessType, type GrantedItem, permits } from '../../core/access.js'
import { ok, type Refused, type Result, refused } from '../../core/decision.js'
import { clientId } from '../../core/grant/record.js'
import type { ActiveToken, TokenRefusal } from '../../ports/host.js'
import type { ServiceContext } from '../../service/context.js'
import { type IntrospectAndLoad, introspected } from '../../service/introspection.js'
import type { Proof, RepeatRule } from '../../service/signed-call.js'
import { inspect, presentedToken, prove, signatureBy } from '../authenticate.js'
import {
  type AnswerAgain,
  type Exchange,
  type Serve,
  type SignedExchange,
  signed,
} from '../exchange.js'
import type { HttpResponse } from '../message.js'
import { type HttpRefusal, type HttpResult, refuse } from '../refusals.js'

export interface ResourceDependencies {
  readonly context: ServiceContext
  readonly introspect: IntrospectAndLoad
  /** The resource server's URL without a trailing slash; the base of the URLs of its resources. */
  readonly baseUrl: string
  readonly repeats: RepeatRule
}

/** A request with an active token, signed with a key that signs for its grant. */
interface Authorized {
  readonly token: ActiveToken
  /** Introspects the token again, because its grant may have changed since. */
  renew(): Promise<Result<ActiveToken, Refused<TokenRefusal>>>
  /** The client, as `clientId` identifies it. */
  readonly client: string
  readonly proof: Proof
  /** Returns the access item that allows an action at the wallet address, or at any if it is omitted. */
  permitted(type: AccessType, action: AccessAction, walletAddress?: string): GrantedItem | undefined
  /**
   * Whether the token allows reading a resource: the client's own with `read`, and with `read-all` that of any client.
   * Only an incoming payment is shared if the host created it.
   */
  readable(type: AccessType, resource: { walletAddress: string; client?: string }): boolean
}

export type ServeAuthorized = (
  exchange: SignedExchange,
  authorized: Authorized,
) => Promise<HttpResult<HttpResponse>>

/**
 * Serves a request once, after its signature and token have been verified.
 *
 * @param again default: a repeat is refused.
 */
export function authorized(
  deps: ResourceDependencies,
  serve: ServeAuthorized,
  again?: AnswerAgain,
): Serve {
  const authenticate = (exchange: Exchange) => authorize(exchange, deps)
  return signed(deps.context, { authenticate, rule: deps.repeats, serve, again })
}

const tokenInactive = refused('token_unknown', 'the token is not active')
const keyWithdrawn = refused('signature_invalid', 'the key that signed was withdrawn')

/**
 * Checks the signature's form, the token, introspection and the signature itself: the cheapest check first.
 */
export async function authorize(
  exchange: Exchange,
  { context, introspect }: Pick<ResourceDependencies, 'context' | 'introspect'>,
): Promise<HttpResult<Authorized>> {
  const candidates = await inspect(exchange, context)
  if (!candidates.ok) return candidates
  const presented = presentedToken(exchange)
  if (!presented.ok) return presented
  const accessToken = presented.value
  let refusal: HttpRefusal = refuse('signature_invalid', 'there is no signature')
  for (const keyid of new Set(candidates.value.map((candidate) => candidate.keyid))) {
    const query = { accessToken, keyid }
    const introspection = await introspected(introspect, query)
    if (!introspection.ok) return introspection
    const token = introspection.value
    if (!token.active) {
      const { withdrawnKey } = token
      if (withdrawnKey === undefined) return tokenInactive
      const isOfClient = await signatureBy(exchange, candidates.value, withdrawnKey)
      refusal = isOfClient ? keyWithdrawn : tokenInactive
      continue
    }
    const { key, walletAddress, access } = token
    const client = clientId({ walletAddress, thumbprint: key.thumbprint })
    const proof = await prove(exchange, candidates.value, key, client)
    if (proof.ok) {
      const permitted = (type: AccessType, action: AccessAction, at?: string) =>
        permits(access, type, action, at)
      return ok({
        token,
        async renew() {
          const renewed = await introspected(introspect, query)
          if (!renewed.ok) return renewed
          const { value } = renewed
          if (!value.active) return value.withdrawnKey?.x === key.x ? keyWithdrawn : tokenInactive
          return value.key.x === key.x ? ok(value) : keyWithdrawn
        },
        client,
        proof: proof.value,
        permitted,
        readable(type, { walletAddress, client: creator }) {
          if (creator === undefined && type !== 'incoming-payment') return false
          return (
            permitted(type, 'read-all', walletAddress) !== undefined ||
            (permitted(type, 'read', walletAddress) !== undefined && creator === client)
          )
        },
      })
    }
    if (proof.refusal === 'rate_limited') return proof
    refusal = proof
  }
  return refusal
}
