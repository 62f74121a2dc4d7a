import type { TokenItem } from '../../core/access.js'
import { ok } from '../../core/decision.js'
import { clientId, type GrantClient } from '../../core/grant/record.js'
import type { Json } from '../../core/stored.js'
import type { BoundedFunction, MayRequest } from '../../ports/host.js'
import {
  accessTokenClass,
  type Credential,
  continuationTokenClass,
} from '../../protocol/credential.js'
import {
  type GrantRequest,
  readClient,
  readContinuation,
  readGrantRequest,
} from '../../protocol/grant.js'
import { isObject } from '../../protocol/json.js'
import type { ServiceContext } from '../../service/context.js'
import type { Grants } from '../../service/grant.js'
import { readHostAnswer, refusedByHost } from '../../service/host-answer.js'
import type { Proof, RepeatRule } from '../../service/signed-call.js'
import type { KeyLookup } from '../../service/signing-key.js'
import { authenticateHolder, inspect, proveClient } from '../authenticate.js'
import { json, noContent, notEmpty, readBody, readContent, refuseProblem } from '../body.js'
import { type Exchange, type Serve, signed, unsigned } from '../exchange.js'
import { type HttpRefusal, type HttpResult, refuse } from '../refusals.js'
import { accessTokenBody, type GrantUrls, grantBody, interactBody } from './grant-bodies.js'

export interface GrantDependencies extends GrantUrls, KeyLookup {
  readonly context: ServiceContext
  readonly grants: Grants
  readonly grantEndpoint: string
  readonly repeats: RepeatRule
  readonly requiresConsent: (item: TokenItem) => boolean
  readonly requiresFinish: (item: TokenItem) => boolean
  readonly subjectRequiresFinish: boolean
  readonly intervalMinMs: number
  /** Whether the `subjects` option is configured. */
  readonly namesSubjects: boolean
  readonly mayRequest: BoundedFunction<MayRequest>
}

/** `POST {grantEndpoint}` (RFC 9635 section 2). Only `client` is read before its signature is verified. */
export function requestGrant(deps: GrantDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => identifyClient(exchange, deps),
    rule: deps.repeats,
    async serve({ call }, { client, body }) {
      const request = readGrantRequest(body, deps.intervalMinMs)
      if (!request.ok) return refuseProblem('body_invalid', request)
      const unwelcome = await refuseAsked(request.value, client, deps)
      if (unwelcome !== undefined) return unwelcome
      const { access, subject } = request.value
      const asksWho = subject !== undefined
      const input = {
        client,
        ...request.value,
        needsConsent: asksWho || access.some(deps.requiresConsent),
        needsFinish: (asksWho && deps.subjectRequiresFinish) || access.some(deps.requiresFinish),
      }
      const answer = await deps.grants.request(input, call)
      if (!answer.ok) return answer
      return json(200, {
        ...interactBody(answer, deps),
        ...grantBody(answer, answer.continuationSecret, call, deps),
      })
    },
  })
}

interface IdentifiedClient {
  readonly client: GrantClient
  readonly proof: Proof
  readonly body: Json
}

async function identifyClient(
  exchange: Exchange,
  { context, clientKeys }: GrantDependencies,
): Promise<HttpResult<IdentifiedClient>> {
  const candidates = await inspect(exchange, context)
  if (!candidates.ok) return candidates
  const read = readBody(exchange.message)
  if (!read.ok) return read
  const body = read.value ?? null
  const named = readClient(body)
  if (!named.ok) return named
  const proved = await proveClient(exchange, candidates.value, named.value, clientKeys)
  return proved.ok ? ok({ body, ...proved.value }) : proved
}

/**
 * Refuses an unsupported subject, and then a request that the host does not allow. Fails closed: only `{ ok: true }`
 * allows it, an answer of another form causes 500, and a rejection causes 503.
 */
async function refuseAsked(
  { access, subject }: GrantRequest,
  client: GrantClient,
  { namesSubjects, mayRequest }: GrantDependencies,
): Promise<HttpRefusal | undefined> {
  if (subject !== undefined && !namesSubjects) {
    return refuse('subject_unsupported', 'the subjects option is not configured')
  }
  const asked = { client: clientId(client), access, ...(subject !== undefined && { subject }) }
  const answer = await mayRequest(asked)
  const given = readHostAnswer('mayRequest', answer)
  if (given.ok) return undefined
  const refused = { ...given, refusal: 'request_not_allowed' }
  return refusedByHost('mayRequest', refused, { request_not_allowed: 'the host does not allow it' })
}

/** `POST /continue/{id}` (RFC 9635 sections 5.1 and 5.2). */
export function continueGrant(deps: GrantDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => continuationHolder(exchange, deps),
    rule: 'refuse',
    async serve({ message, call }, { grant, secret }) {
      const request = readContent(message, readContinuation)
      if (!request.ok) return request
      const { interactRef } = request.value
      const input = interactRef === undefined ? { secret } : { secret, interactRef }
      const answer = await deps.grants.continue(grant, input, call)
      return answer.ok ? json(200, grantBody(answer, secret, call, deps)) : answer
    },
  })
}

/** Finds a grant by its continuation URI and token together, and authenticates its client. */
function continuationHolder(exchange: Exchange, deps: GrantDependencies) {
  const lookup = {
    kind: continuationTokenClass,
    async find(credential: Credential, path: string) {
      const grant = await deps.grants.byContinuation(credential, path)
      return grant && { grant, secret: credential.secret }
    },
    unknown: 'no grant has both this continuation URI and this token',
  }
  return authenticateHolder(exchange, lookup, deps)
}

/** `DELETE /continue/{id}` (RFC 9635 section 5.4). */
export function cancelGrant(deps: GrantDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => continuationHolder(exchange, deps),
    rule: deps.repeats,
    async serve({ call }, { grant }) {
      const command = { type: 'cancel', commandId: call.commandId } as const
      const answer = await deps.grants.runSigned(grant, command, call)
      return answer.ok ? noContent : answer
    },
    again: doneAgain,
  })
}

/** A repeat of a cancellation or a revocation gets the answer of the first. */
const doneAgain = async () => noContent

/** `POST /token/{id}` (RFC 9635 section 6.1). Checks the managed token itself, in addition to the key. */
export function rotateToken(deps: GrantDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => managedTokenHolder(exchange, deps),
    rule: 'refuse',
    async serve({ message, call }, { grant, presented }) {
      const unwanted = unwantedRotationBody(message)
      if (unwanted !== undefined) return unwanted
      const answer = await deps.grants.rotate(grant, presented, call)
      return answer.ok ? json(200, accessTokenBody(answer, call, deps)) : answer
    },
  })
}

function managedTokenHolder(exchange: Exchange, deps: GrantDependencies) {
  const lookup = {
    kind: accessTokenClass,
    find: deps.grants.byManagedToken,
    unknown: 'the token is not the one managed at this URI',
  }
  return authenticateHolder(exchange, lookup, deps)
}

/**
 * Refuses content: rotation has none, and `{ key }` would request a key rotation (RFC 9635 section 6.1.1).
 */
function unwantedRotationBody(message: Exchange['message']): HttpRefusal | undefined {
  const body = readBody(message)
  if (!body.ok) return body
  if (body.value === undefined) return undefined
  if (!isObject(body.value)) return refuseProblem('body_invalid', notEmpty)
  const members = Object.entries(body.value).filter(([, value]) => value !== null)
  const asked = members.map(([name]) => name)
  if (asked.includes('key')) {
    return refuse('key_rotation_unsupported', 'the body requests a key rotation')
  }
  return asked.length === 0 ? undefined : refuseProblem('body_invalid', notEmpty)
}

/** `DELETE /token/{id}` (RFC 9635 section 6.2). Succeeds for an expired or revoked token too. */
export function revokeToken(deps: GrantDependencies): Serve {
  return signed(deps.context, {
    authenticate: (exchange) => managedTokenHolder(exchange, deps),
    rule: deps.repeats,
    async serve({ call }, { grant, presented }) {
      const { hash, manage } = presented
      const { commandId } = call
      const command = { type: 'revoke-token', commandId, presented: { hash, manage } } as const
      const answer = await deps.grants.runSigned(grant, command, call)
      return answer.ok ? noContent : answer
    },
    again: doneAgain,
  })
}

/**
 * `OPTIONS {grantEndpoint}` (RFC 9635 section 9): the features that the authorization server supports. A CORS
 * preflight request is not GNAP discovery, and gets no content.
 */
export function discover({
  grantEndpoint,
  namesSubjects,
}: Pick<GrantDependencies, 'grantEndpoint' | 'namesSubjects'>): Serve {
  const supported = json(200, {
    grant_request_endpoint: grantEndpoint,
    interaction_start_modes_supported: ['redirect'],
    interaction_finish_methods_supported: ['redirect'],
    key_proofs_supported: ['httpsig'],
    ...(namesSubjects && { sub_id_formats_supported: ['uri'] }),
  })
  return unsigned(async ({ message }) => {
    const preflight = message.fields.has('access-control-request-method')
    const { value } = preflight ? noContent : supported
    return ok({ ...value, headers: { ...value.headers, allow: 'POST, OPTIONS' } })
  })
}
