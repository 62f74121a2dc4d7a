import { ok } from '../core/decision.js'
import { clientId, type Grant, type GrantClient, type GrantKey } from '../core/grant/record.js'
import type { Instant } from '../core/instant.js'
import type { Bounded, ClientKeys, PublicJwk } from '../ports/host.js'
import {
  type Credential,
  type CredentialClass,
  parseCredential,
  parsePath,
} from '../protocol/credential.js'
import type { RequestingClient } from '../protocol/grant.js'
import {
  inspectSignatures,
  type SignatureCandidate,
  verifyCandidates,
} from '../protocol/http-signature/inspect.js'
import { thumbprintOf } from '../protocol/http-signature/jwk.js'
import type { ServiceContext } from '../service/context.js'
import type { Proof } from '../service/signed-call.js'
import { type KeyLookup, signingKey } from '../service/signing-key.js'
import { hasCode, isWrongAnswer } from '../util/errors.js'
import type { Exchange } from './exchange.js'
import { type HttpRefusal, type HttpResult, refuse } from './refusals.js'
import { verifiedFor } from './target.js'

export type Candidates = readonly SignatureCandidate[]

/** Checks everything about the signatures that needs no key: the first check of every signed operation. */
export async function inspect(
  { message, call, note }: Exchange,
  { signatureRules, signatureClock }: Pick<ServiceContext, 'signatureRules' | 'signatureClock'>,
): Promise<HttpResult<Candidates>> {
  const now = signatureClock?.now() ?? call.now
  const inspection = await inspectSignatures(message, now, signatureRules)
  if (!inspection.ok) return saying(inspection.problem, 'signature_invalid')
  const keyid = inspection.value[0]?.keyid
  if (keyid !== undefined) note({ keyid })
  if (signatureClock === undefined) return inspection
  // Replay records expire by the server's clock.
  const byServer = (createdAt: Instant) => createdAt + call.now - now
  return ok(inspection.value.map((each) => ({ ...each, createdAt: byServer(each.createdAt) })))
}

const token68 = /^GNAP +([A-Za-z0-9\-._~+/]+=*)$/i

/** Reads the token of an `Authorization: GNAP …` header (RFC 9635 section 7.2) without parsing it. */
export function presentedToken({ message }: Exchange): HttpResult<string> {
  const authorization = message.fields.get('authorization')?.[0]
  if (authorization === undefined) return refuse('token_missing', 'Authorization is missing')
  const [, token] = token68.exec(authorization) ?? []
  return token === undefined
    ? refuse('token_malformed', 'Authorization must have the scheme GNAP and one token')
    : ok(token)
}

/** Parses the presented token. A token of another class or format is refused as unknown. */
function presentedCredential(exchange: Exchange, kind: CredentialClass): HttpResult<Credential> {
  const presented = presentedToken(exchange)
  if (!presented.ok) return presented
  const credential = parseCredential(kind, presented.value)
  return credential === undefined
    ? refuse('token_unknown', 'the token is not of the required class')
    : ok(credential)
}

/** How to find a grant by a token and the path that belongs to the token. */
interface GrantLookup<Found> {
  readonly kind: CredentialClass
  readonly find: (credential: Credential, path: string) => Promise<Found | undefined>
  /** The reason for the operator if no grant is found. */
  readonly unknown: string
}

/** Authenticates the client that presents a token of a grant: by the token and its path, then by its key. */
export async function authenticateHolder<Found extends { readonly grant: Grant }>(
  exchange: Exchange,
  { kind, find, unknown }: GrantLookup<Found>,
  deps: KeyLookup & { readonly context: ServiceContext },
): Promise<HttpResult<Found & { readonly proof: Proof }>> {
  const candidates = await inspect(exchange, deps.context)
  if (!candidates.ok) return candidates
  const credential = presentedCredential(exchange, kind)
  if (!credential.ok) return credential
  const { value } = credential
  const path = parsePath(exchange.id)
  const found = path?.grantId === value.grantId ? await find(value, path.own) : undefined
  if (found === undefined) return refuse('token_unknown', unknown)
  const proof = await proveGrant(exchange, candidates.value, found.grant, deps)
  return proof.ok ? ok({ proof: proof.value, ...found }) : proof
}

const keyWithdrawn = refuse('client_invalid', 'the client does not publish this key')
const keyReplaced = refuse('client_invalid', 'the client now publishes another key with this kid')

/** Verifies one of the signatures with a key that signs for the grant. Looks up one key for each `keyid`. */
async function proveGrant(
  exchange: Exchange,
  candidates: Candidates,
  { client }: Grant,
  keys: KeyLookup,
): Promise<HttpResult<Proof>> {
  let refused = refuse(
    'signature_invalid',
    'keyid does not match the key that the grant is bound to',
  )
  for (const kid of new Set(candidates.map(({ keyid }) => keyid))) {
    const answer = await available(() => signingKey(client, kid, keys))
    if (!answer.ok) {
      refused = answer
      continue
    }
    const key = answer.value
    if (key.ok) {
      const proof = await prove(exchange, candidates, key.value, clientId(client))
      if (proof.ok || proof.refusal === 'rate_limited') return proof
      const isOther = key.value.x !== client.x
      refused = isOther && (await signatureBy(exchange, candidates, client)) ? keyReplaced : proof
    } else if (key.problem !== 'other') {
      refused = key.problem === 'replaced' ? keyReplaced : keyWithdrawn
    }
  }
  return refused
}

/**
 * Verifies one of the signatures with the key of a client, then applies its rate limit.
 *
 * @param client The client as hooks and logs name it.
 */
export async function prove(
  exchange: Exchange,
  candidates: Candidates,
  key: GrantKey,
  client: string,
): Promise<HttpResult<Proof>> {
  const candidate = await signatureBy(exchange, candidates, key)
  if (candidate === undefined) {
    const about = `no signature verifies with the key of the client for ${verifiedFor(exchange.message)}`
    return refuse('signature_invalid', about)
  }
  const { keyid, createdAt, nonce, signature } = candidate
  exchange.note({ client })
  const limited = await exchange.limit({ client, keyid })
  if (limited !== undefined) return limited
  const proof = { key, createdAt, signature }
  return ok(nonce === undefined ? proof : { nonce, ...proof })
}

/** Resolves to a signature by this key, if there is one. */
export async function signatureBy(
  { server, telemetry }: Exchange,
  candidates: Candidates,
  key: PublicJwk,
): Promise<SignatureCandidate | undefined> {
  const verify = () => verifyCandidates(candidates, key)
  return telemetry?.observe({ type: 'verify', server }, verify) ?? verify()
}

/**
 * Authenticates the client of a grant request, by a key that it publishes or sends in the request.
 */
export async function proveClient(
  exchange: Exchange,
  candidates: Candidates,
  named: RequestingClient,
  clientKeys: Pick<Bounded<ClientKeys>, 'find'>,
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
    const key = { kid, x: found.value.x, thumbprint: await thumbprintOf(found.value) }
    const client = 'jwk' in named ? key : { walletAddress: named.walletAddress, ...key }
    const proof = await prove(exchange, candidates, key, clientId(client))
    if (proof.ok) return ok({ client, proof: proof.value })
    if (proof.refusal === 'rate_limited') return proof
    refused = proof
  }
  return refused
}

async function findKey(
  clientKeys: Pick<Bounded<ClientKeys>, 'find'>,
  walletAddress: string,
  kid: string,
): Promise<HttpResult<PublicJwk>> {
  try {
    const key = await clientKeys.find({ walletAddress, kid, mayBeNew: true })
    return key === undefined ? refuse('client_invalid', 'the client has no such key') : ok(key)
  } catch (error) {
    if (hasCode(error, 'ERR_KEY_UNUSABLE')) return saying(messageOf(error), 'client_invalid')
    if (!hasCode(error, 'ERR_FETCH_REFUSED')) return unavailable(error)
    // The same response as for an unknown key, so that clients cannot probe the network of this server.
    return refuse('client_invalid', `the keys of the client were not fetched: ${messageOf(error)}`)
  }
}

/** Turns a rejection into a refusal with 503, so that an outage does not look like a missing key. */
async function available<Value>(ask: () => Promise<Value>): Promise<HttpResult<Value>> {
  try {
    return ok(await ask())
  } catch (error) {
    return unavailable(error)
  }
}

function unavailable(error: unknown): HttpRefusal {
  if (isWrongAnswer(error)) throw error
  if (hasCode(error, 'ERR_KEY_SET')) return saying(messageOf(error), 'client_unavailable')
  return refuse('client_unavailable', messageOf(error))
}

/** Tells the client what it must change in its signature or key set: a reason that needs nothing of the server. */
function saying(
  problem: string,
  refusal: 'signature_invalid' | 'client_invalid' | 'client_unavailable',
): HttpRefusal {
  return { ...refuse(refusal, problem), details: { problem } }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'the client keys are unavailable'
}
