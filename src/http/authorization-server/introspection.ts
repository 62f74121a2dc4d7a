import { type GrantedItem, permits } from '../../core/access.js'
import { ok } from '../../core/decision.js'
import type { Json } from '../../core/stored.js'
import type { Introspect, Introspection } from '../../ports/host.js'
import { thumbprintOf } from '../../protocol/http-signature/jwk.js'
import {
  type IntrospectionRequest,
  introspectionBody,
  readIntrospectionRequest,
  readResourceServer,
} from '../../protocol/introspection.js'
import type { ServiceContext } from '../../service/context.js'
import { introspected } from '../../service/introspection.js'
import type { Proof, RepeatRule } from '../../service/signed-call.js'
import { type Candidates, inspect, prove } from '../authenticate.js'
import { json, readBody, refuseProblem } from '../body.js'
import { type Exchange, type Serve, signed } from '../exchange.js'
import { type HttpResult, refuse } from '../refusals.js'
import type {
  RegisteredResourceServer,
  ResourceServerRegistry,
} from './resource-server-registry.js'

export interface IntrospectionDependencies {
  readonly context: ServiceContext
  readonly introspect: Introspect
  /** The published URL of the grant endpoint: the issuer of every token. */
  readonly grantEndpoint: string
  readonly registry: ResourceServerRegistry
  readonly repeats: RepeatRule
}

/**
 * `POST {grantEndpoint}/introspect` (RFC 9767 section 3.3), for resource servers in other processes. Each
 * signs with its own key. Only `resource_server` of the body is read before the signature is verified.
 */
export function introspectToken(deps: IntrospectionDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => identifyResourceServer(exchange, deps),
    rule: deps.repeats,
    async serve(_, { resourceServer, body }) {
      const request = readIntrospectionRequest(body)
      if (!request.ok) return refuseProblem('body_invalid', request)
      const token = await tokenFor(request.value, resourceServer, deps.introspect)
      if (!token.ok) return token
      const { value } = token
      return isBare(value) ? inactive : json(200, introspectionBody(value, deps.grantEndpoint))
    },
    isHarmless: (answer) => answer === inactive,
  })
}

function isBare(token: Introspection): boolean {
  return !token.active && token.withdrawnKey === undefined
}

/**
 * Repeating this answer is harmless, so it is not recorded. Anyone can present invalid tokens at a resource server, and
 * must not be able to fill the store that way.
 */
const inactive = json(200, { active: false })

interface IdentifiedResourceServer {
  readonly resourceServer: RegisteredResourceServer
  readonly proof: Proof
  readonly body: Json
}

async function identifyResourceServer(
  exchange: Exchange,
  { context, registry }: IntrospectionDependencies,
): Promise<HttpResult<IdentifiedResourceServer>> {
  // Only client SDKs send the forms that `strict` excludes; resource servers do not.
  const signatureRules = { ...context.signatureRules, strict: true }
  const candidates = await inspect(exchange, { ...context, signatureRules })
  if (!candidates.ok) return candidates
  const read = readBody(exchange.message)
  if (!read.ok) return read
  const body = read.value ?? null
  const named = readResourceServer(body)
  if (!named.ok) return named
  const resourceServer = registry(named.value)
  if (resourceServer === undefined) {
    return refuse('resource_server_invalid', 'no resource server has this id or key')
  }
  const proof = await proveResourceServer(exchange, candidates.value, resourceServer)
  return proof.ok ? ok({ resourceServer, proof: proof.value, body }) : proof
}

async function proveResourceServer(
  exchange: Exchange,
  candidates: Candidates,
  { id, keys }: RegisteredResourceServer,
): Promise<HttpResult<Proof>> {
  let refused = refuse('signature_invalid', 'keyid does not match a key of the resource server')
  for (const key of keys) {
    if (!candidates.some(({ keyid }) => keyid === key.kid)) continue
    const proof = await prove(
      exchange,
      candidates,
      { thumbprint: await thumbprintOf(key), ...key },
      id,
    )
    if (proof.ok) return proof
    refused = proof
  }
  return refused
}

/**
 * Resolves to the token with the access that this resource server serves. It is inactive if that is none, or not the
 * access that the request asks to check.
 */
async function tokenFor(
  { answerable, needed, ...query }: IntrospectionRequest,
  { accessTypes }: RegisteredResourceServer,
  introspect: Introspect,
): Promise<HttpResult<Introspection>> {
  if (!answerable) return ok({ active: false })
  const introspection = await introspected(introspect, query)
  if (!introspection.ok || !introspection.value.active) return introspection
  const token = introspection.value
  const access = token.access.filter(({ type }) => accessTypes?.includes(type) ?? true)
  if (access.length === 0) return ok({ active: false })
  const allowed = needed.every(({ type, actions, identifier }) =>
    actions.every((action) => permits<GrantedItem>(access, type, action, identifier) !== undefined),
  )
  return ok(allowed ? { ...token, access } : { active: false })
}
