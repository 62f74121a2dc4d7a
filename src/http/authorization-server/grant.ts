import type { AccessItem } from '../../core/access.js'
import { clientId, type Grant, type GrantClient } from '../../core/grant/record.js'
import { ok } from '../../core/result.js'
import type { ClientKeys } from '../../ports/client-keys.js'
import {
  accessTokenClass,
  type Credential,
  type CredentialClass,
  continuationTokenClass,
  parsePath,
} from '../../protocol/credential.js'
import {
  type GrantRequest,
  type RequestingClient,
  readClient,
  readContinuation,
  readGrantRequest,
} from '../../protocol/grant.js'
import { thumbprintOf } from '../../protocol/http-signature/jwk.js'
import { isObject } from '../../protocol/json.js'
import type { Grants } from '../../service/grant.js'
import type { ServiceContext } from '../../service/mechanism/context.js'
import {
  consumeNonce,
  nonceGuardOf,
  type Proof,
  type RepeatRule,
} from '../../service/mechanism/nonces.js'
import type { NonceGuard } from '../../service/mechanism/transact.js'
import {
  type Candidates,
  findKey,
  inspect,
  presentedCredential,
  prove,
  proveGrant,
} from '../authenticate.js'
import {
  type Exchange,
  json,
  noContent,
  readBody,
  readContent,
  refuse,
  refuseProblem,
  type Serve,
} from '../pipeline.js'
import type { HttpRefusal, HttpResult } from '../refusals.js'
import { accessTokenBody, type GrantUrls, grantBody, interactBody } from './grant-bodies.js'
import { type MayRequest, refuseRequest } from './may-request.js'

/** The dependencies of the operations on grants. */
export interface GrantDependencies extends GrantUrls {
  readonly context: ServiceContext
  readonly grants: Grants
  readonly clientKeys: ClientKeys
  readonly repeats: RepeatRule
  readonly requiresConsent: (item: AccessItem) => boolean
  readonly requiresFinish: (item: AccessItem) => boolean
  readonly subjectRequiresFinish: boolean
  /** Whether the `subjects` option is configured. */
  readonly namesSubjects: boolean
  readonly mayRequest: MayRequest
}

/** `POST {grantEndpoint}` (RFC 9635 section 2). Only `client` is read before its signature is verified. */
export function requestGrant(deps: GrantDependencies): Serve {
  const { context, grants } = deps
  return async (exchange) => {
    const candidates = await inspect(exchange, context.signatureRules)
    if (!candidates.ok) return candidates
    const body = readBody(exchange.message)
    if (!body.ok) return body
    const named = readClient(body.value ?? null)
    if (!named.ok) return refuse(named.refusal, named.reason)
    const proved = await proveClient(exchange, candidates.value, named.value, deps.clientKeys)
    if (!proved.ok) return proved
    const { client, proof } = proved.value
    const nonceGuard = await nonceGuardOf(context, proof, deps.repeats, exchange.call)
    const request = readGrantRequest(body.value ?? null)
    if (!request.ok) {
      return consumeNonce(context, nonceGuard, refuseProblem('body_invalid', request), {
        refused: true,
      })
    }

    const unwelcome = await refuseAsked(request.value, client, deps)
    if (unwelcome !== undefined)
      return consumeNonce(context, nonceGuard, unwelcome, { refused: true })
    const { access, subject } = request.value
    const asksWho = subject !== undefined
    const input = {
      client,
      ...request.value,
      needsConsent: asksWho || access.some(deps.requiresConsent),
      needsFinish: (asksWho && deps.subjectRequiresFinish) || access.some(deps.requiresFinish),
    }
    const answer = await grants.request(input, exchange.call, nonceGuard)
    if (answer.outcome === 'refused') return answer
    return json(200, {
      ...interactBody(answer.grant, deps),
      ...grantBody(answer, answer.continuationSecret, exchange.call, deps),
    })
  }
}

/** Refuses an unsupported subject, and then a request that the host does not allow. */
async function refuseAsked(
  { access, subject }: GrantRequest,
  client: GrantClient,
  { namesSubjects, mayRequest }: GrantDependencies,
): Promise<HttpRefusal | undefined> {
  if (subject !== undefined && !namesSubjects) {
    return refuse('subject_unsupported', 'the subjects option is not configured')
  }
  const asked = { client: clientId(client), access }
  return refuseRequest(mayRequest, subject === undefined ? asked : { ...asked, subject })
}

/** `POST /continue/{id}` (RFC 9635 sections 5.1 and 5.2). */
export function continueGrant(deps: GrantDependencies): Serve {
  return async (exchange) => {
    const continued = await presentedContinuation(exchange, deps, 'refuse-repeat')
    if (!continued.ok) return continued
    const { grant, secret, nonceGuard } = continued.value
    const request = readContent(exchange.message, readContinuation)
    if (!request.ok) return consumeNonce(deps.context, nonceGuard, request, { refused: true })
    const { interactRef } = request.value
    const input = interactRef === undefined ? { secret } : { secret, interactRef }
    const answer = await deps.grants.continueGrant(grant, input, exchange.call, nonceGuard)
    if (answer.outcome === 'refused') return answer
    return json(200, grantBody(answer, secret, exchange.call, deps))
  }
}

/** `DELETE /continue/{id}` (RFC 9635 section 5.4). */
export function cancelGrant(deps: GrantDependencies): Serve {
  return async (exchange) => {
    const continued = await presentedContinuation(exchange, deps, deps.repeats)
    if (!continued.ok) return continued
    const { grant, nonceGuard } = continued.value
    const { call } = exchange
    const command = { type: 'cancel', commandId: call.commandId } as const
    const answer = await deps.grants.runSigned(grant, command, call, nonceGuard)
    return answer.outcome === 'refused' ? answer : noContent
  }
}

/** `POST /token/{id}` (RFC 9635 section 6.1). Checks the managed token itself, in addition to the key. */
export function rotateToken(deps: GrantDependencies): Serve {
  return async (exchange) => {
    const managed = await presentedManagedToken(exchange, deps, 'refuse-repeat')
    if (!managed.ok) return managed
    const { grant, presented, nonceGuard } = managed.value
    const unwanted = unwantedRotationBody(exchange)
    if (unwanted !== undefined)
      return consumeNonce(deps.context, nonceGuard, unwanted, { refused: true })
    const answer = await deps.grants.rotate(grant, presented, exchange.call, nonceGuard)
    if (answer.outcome === 'refused') return answer
    return json(200, accessTokenBody(answer, exchange.call, deps))
  }
}

/** `DELETE /token/{id}` (RFC 9635 section 6.2). Succeeds for an expired or revoked token too. */
export function revokeToken(deps: GrantDependencies): Serve {
  return async (exchange) => {
    const managed = await presentedManagedToken(exchange, deps, deps.repeats)
    if (!managed.ok) return managed
    const { grant, presented, nonceGuard } = managed.value
    const { hash, manage } = presented
    const { call } = exchange
    const command = {
      type: 'revoke-token',
      commandId: call.commandId,
      presented: { hash, manage },
    } as const
    const answer = await deps.grants.runSigned(grant, command, call, nonceGuard)
    return answer.outcome === 'refused' ? answer : noContent
  }
}

/**
 * Authenticates the client instance of a grant request, by a key that it publishes or sends in the request.
 */
async function proveClient(
  exchange: Exchange,
  candidates: Candidates,
  named: RequestingClient,
  clientKeys: ClientKeys,
): Promise<HttpResult<{ client: GrantClient; proof: Proof }>> {
  let refused: HttpRefusal = refuse('signature_invalid', 'keyid does not match the given key')
  for (const kid of new Set(candidates.map(({ keyid }) => keyid))) {
    if ('jwk' in named && named.jwk.kid !== kid) continue
    const found =
      'jwk' in named ? ok(named.jwk) : await findKey(clientKeys, named.walletAddress, kid)
    if (!found.ok) {
      refused = found
      continue
    }
    const key = found.value
    const identity = 'jwk' in named ? { x: key.x } : { walletAddress: named.walletAddress }
    const client = { ...identity, kid, thumbprint: await thumbprintOf(key) }
    const proof = await prove(exchange, candidates, key, client)
    if (proof.ok) return ok({ client, proof: proof.value })
    if (proof.refusal === 'rate_limited') return proof
    refused = proof
  }
  return refused
}

/** Finds a grant by its continuation URI and token together, and authenticates its client instance. */
function presentedContinuation(exchange: Exchange, deps: GrantDependencies, rule: RepeatRule) {
  return presented(exchange, deps, rule, {
    kind: continuationTokenClass,
    async find(credential, path) {
      const grant = await deps.grants.byContinuation(credential, path)
      return grant && { grant, secret: credential.secret }
    },
    unknown: 'no grant has both this continuation URI and this token',
  })
}

/** Finds a grant by a management URI and its token, and authenticates its client instance. */
function presentedManagedToken(exchange: Exchange, deps: GrantDependencies, rule: RepeatRule) {
  return presented(exchange, deps, rule, {
    kind: accessTokenClass,
    find: deps.grants.byManagedToken,
    unknown: 'the token is not the one managed at this URI',
  })
}

/** How to find a grant by a token and the path that belongs to the token. */
interface Presented<Found> {
  readonly kind: CredentialClass
  readonly find: (credential: Credential, path: string) => Promise<Found | undefined>
  /** The reason for the operator if no grant is found. */
  readonly unknown: string
}

async function presented<Found extends { readonly grant: Grant }>(
  exchange: Exchange,
  { context, clientKeys }: GrantDependencies,
  rule: RepeatRule,
  { kind, find, unknown }: Presented<Found>,
): Promise<HttpResult<Found & { readonly nonceGuard: NonceGuard | undefined }>> {
  const candidates = await inspect(exchange, context.signatureRules)
  if (!candidates.ok) return candidates
  const credential = presentedCredential(exchange, kind)
  if (!credential.ok) return credential
  const path = parsePath(exchange.id)
  const found =
    path?.grantId === credential.value.grantId ? await find(credential.value, path.own) : undefined
  if (found === undefined) return refuse('token_unknown', unknown)
  const proof = await proveGrant(exchange, candidates.value, found.grant, clientKeys)
  if (!proof.ok) return proof
  const nonceGuard = await nonceGuardOf(context, proof.value, rule, exchange.call)
  return ok({ ...found, nonceGuard })
}

/**
 * Refuses content: rotation has none, and `{ key }` would request a key rotation (RFC 9635 section 6.1.1).
 */
function unwantedRotationBody({ message }: Exchange): HttpRefusal | undefined {
  const body = readBody(message)
  if (!body.ok) return body
  if (body.value === undefined) return undefined
  if (!isObject(body.value)) return refuse('body_invalid', 'the body is not an object')
  const members = Object.entries(body.value).filter(([, value]) => value !== null)
  const asked = members.map(([name]) => name)
  if (asked.includes('key')) {
    return refuse('key_rotation_unsupported', 'the body requests a key rotation')
  }
  return asked.length === 0 ? undefined : refuse('body_invalid', 'the body must be empty')
}
