import { type GrantedItem, permits } from '../../core/access.js'
import type { ActiveToken, Introspect } from '../../ports/introspect.js'
import { thumbprintOf } from '../../protocol/http-signature/jwk.js'
import {
  type IntrospectionRequest,
  introspectionBody,
  readIntrospectionRequest,
  readResourceServer,
} from '../../protocol/introspection.js'
import { introspected } from '../../service/introspection.js'
import type { ServiceContext } from '../../service/mechanism/context.js'
import {
  consumeNonce,
  nonceGuardOf,
  type Proof,
  type RepeatRule,
} from '../../service/mechanism/nonces.js'
import { type Candidates, inspect, prove } from '../authenticate.js'
import { type Exchange, json, readBody, refuse, refuseProblem, type Serve } from '../pipeline.js'
import type { HttpRefusal } from '../refusals.js'
import type {
  RegisteredResourceServer,
  ResourceServerRegistry,
} from './resource-server-registry.js'

/** What introspection over HTTP works with. */
export interface IntrospectionDependencies {
  readonly context: ServiceContext
  readonly introspect: Introspect
  /** The grant endpoint as it is published: the issuer of every token. */
  readonly grantEndpoint: string
  readonly registry: ResourceServerRegistry
  readonly repeats: RepeatRule
}

/**
 * `POST {grantEndpoint}/introspect` (RFC 9767 section 3.3), for resource servers in other processes. Each
 * signs with a key of its own; of the body only `resource_server` is read before that is proved.
 */
export function introspectToken(deps: IntrospectionDependencies): Serve {
  const { context } = deps
  // The dialects are those of client SDKs, which no resource server signs its questions with.
  const rules = { ...context.signatureRules, strict: true }
  return async (exchange) => {
    const candidates = await inspect(exchange, rules)
    if ('outcome' in candidates) return candidates
    const body = readBody(exchange.message)
    if ('outcome' in body) return body
    const named = readResourceServer(body.value ?? null)
    if ('refusal' in named) return refuse(named.refusal, named.reason)
    const resourceServer = deps.registry(named)
    if (resourceServer === undefined) {
      return refuse('resource_server_invalid', 'no resource server is registered by this id or key')
    }
    const proof = await proveResourceServer(exchange, candidates, resourceServer)
    if ('outcome' in proof) return proof
    const nonceGuard = await nonceGuardOf(context, proof, deps.repeats, exchange.call)
    const request = readIntrospectionRequest(body.value ?? null)
    if (!('value' in request)) {
      return consumeNonce(context, nonceGuard, refuseProblem('body_invalid', request), {
        refused: true,
      })
    }

    const token = await tokenFor(request.value, resourceServer, deps.introspect)
    if (token !== undefined && 'outcome' in token) {
      return consumeNonce(context, nonceGuard, token, { refused: true })
    }
    const answer = token ? introspectionBody(token, deps.grantEndpoint) : { active: false }
    return consumeNonce(context, nonceGuard, json(200, answer), { refused: false })
  }
}

/** Proves that one of the resource server's own keys has signed. */
async function proveResourceServer(
  exchange: Exchange,
  candidates: Candidates,
  { id, keys }: RegisteredResourceServer,
): Promise<Proof | HttpRefusal> {
  let refused = refuse('signature_invalid', 'keyid is that of no key of the resource server')
  for (const key of keys) {
    if (!candidates.some(({ keyid }) => keyid === key.kid)) continue
    // To the host's hooks it goes by its id, as a client instance goes by its wallet address.
    const named = { walletAddress: id, thumbprint: await thumbprintOf(key) }
    const proof = await prove(exchange, candidates, key, named)
    if (!('outcome' in proof)) return proof
    refused = proof
  }
  return refused
}

/** The token as far as this resource server may know it; `undefined` where it is of no use there. */
async function tokenFor(
  { accessToken, answerable, needed }: IntrospectionRequest,
  { accessTypes }: RegisteredResourceServer,
  introspect: Introspect,
): Promise<ActiveToken | HttpRefusal | undefined> {
  if (!answerable) return undefined
  const token = await introspected(introspect, accessToken)
  if ('outcome' in token) return token.refusal === 'token_unknown' ? undefined : token
  const access = token.access.filter(({ type }) => accessTypes?.includes(type) ?? true)
  if (access.length === 0) return undefined
  const allowed = needed.every(({ type, actions, identifier }) =>
    actions.every((action) => permits<GrantedItem>(access, type, action, identifier) !== undefined),
  )
  return allowed ? { ...token, access } : undefined
}
