import { labelsOf, type TokenItem } from '../core/access.js'
import type { Refused } from '../core/decision.js'
import { type EndedGrant, endedGrant } from '../core/grant/ended.js'
import {
  clientId,
  type Derivation,
  type FinishMethod,
  type Grant,
  type GrantClient,
  type GrantPolicy,
  type IssuedToken,
  type SubjectId,
} from '../core/grant/record.js'
import { type RequestRefusal, requestGrant } from '../core/grant/request.js'
import { type ManagedToken, managedToken } from '../core/grant/rotation.js'
import { type NewToken, sameHash } from '../core/grant/token.js'
import {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from '../core/grant.js'
import type { Instant } from '../core/instant.js'
import type { Random } from '../ports/host.js'
import {
  type Credential,
  deriveSecret,
  isIdOf,
  newId,
  newPath,
  newSecret,
} from '../protocol/credential.js'
import { hashText } from '../util/hash.js'
import { type Call, newCall, type ServiceContext } from './context.js'
import { loadOwn, recordsOf } from './load.js'
import type { Replayed, SignedCall } from './signed-call.js'
import { ifRetired, type SweptKind } from './sweep.js'
import { creationWrite, type Write } from './write/write.js'

/** An access token with the secret that the store does not contain. */
export interface SecretToken extends IssuedToken {
  readonly secret: string
}

/** A grant after an operation, with the tokens for the response to its client. */
export interface GrantAnswer {
  readonly ok: true
  readonly grant: Grant
  /** Empty if the response contains no token. */
  readonly tokens: readonly SecretToken[]
}

/** A new grant, with the continuation token for the response. */
interface GrantRequested extends GrantAnswer {
  readonly continuationSecret: string
}

/** The result of a grant request. */
type RequestAnswer = GrantRequested | Refused<RequestRefusal> | Replayed

interface GrantRequestInput {
  readonly client: GrantClient
  readonly access: readonly TokenItem[]
  readonly subject?: SubjectId
  readonly needsConsent: boolean
  readonly needsFinish: boolean
  readonly interact?: { readonly finish?: FinishMethod }
}

export type Grants = ReturnType<typeof createGrants>

interface Dependencies {
  readonly context: ServiceContext
  readonly policy: GrantPolicy
}

/** A command of one type. */
type Command<Type> = Extract<GrantCommand, { readonly type: Type }>

/** Creates the operations on grants. Each loads, decides and commits. Only hashes of secrets are stored. */
export function createGrants(context: ServiceContext, policy: GrantPolicy) {
  const deps = { context, policy }
  return {
    load: (id: string) => loadOwn<Grant>(context, 'grant', id),
    loadReadable: (id: string) => loadReadable(context, id),
    /** Runs a command of the host on a grant. */
    run: <Type extends keyof GrantRefusals>(grant: Grant, command: Command<Type>, call: Call) =>
      context.run(commandWrite<Type>(deps, grant, command, call)),
    /** Runs a command of a client, whose signed request counts once, on a grant. */
    runSigned: <Type extends keyof GrantRefusals>(
      grant: Grant,
      command: Command<Type>,
      call: SignedCall,
    ) => call.run(commandWrite<Type>(deps, grant, command, call)),
    request: (input: GrantRequestInput, call: SignedCall) => request(deps, input, call),
    continue: (grant: Grant, presented: PresentedContinuation, call: SignedCall) =>
      answerContinuation(deps, grant, presented, call),
    rotate: (grant: Grant, presented: PresentedToken, call: SignedCall) =>
      answerRotation(deps, grant, presented, call),
    byContinuation: (credential: Credential, path: string) =>
      byContinuation(context, credential, path),
    byManagedToken: (credential: Credential, manage: string) =>
      byManagedToken(context, credential, manage),
  }
}

/** Loads a grant, or what remains of it. */
async function loadReadable(
  { store, namespace }: ServiceContext,
  id: string,
): Promise<Grant | EndedGrant | undefined> {
  if (!isIdOf(await namespace(), id)) return undefined
  const [grant, ended] = await store.load([
    { kind: 'grant', id },
    { kind: 'ended-grant', id },
  ])
  return (grant ?? ended) as Grant | EndedGrant | undefined
}

/** Returns the write that carries out a command on a loaded grant. */
function commandWrite<Type extends keyof GrantRefusals>(
  { policy }: Dependencies,
  grant: Grant,
  command: Command<Type>,
  { now }: Call,
): Write<GrantDecision<Type>> {
  const key = { kind: 'grant', id: grant.id } as const
  return {
    reads: [key],
    // The key of the client may have been looked up since: it does not depend on the grant.
    assumed: { records: recordsOf('grant', grant) },
    decide(read) {
      const found = read<Grant>(key) ?? removed(grant, now)
      const decision = decideGrant<Type>(found, command, now, policy)
      if (decision.outcome !== 'changed') return { result: decision }
      const { record: next, events } = decision
      return { changes: [{ kind: 'grant', next, events }], result: decision }
    },
  }
}

/** Returns a grant that was removed since it was loaded. Only ended grants are, so no command may change it. */
function removed(grant: Grant, now: Instant): Grant {
  const { finalized = { reason: 'revoked', by: 'host', at: now } } = grant
  return { ...grant, finalized }
}

/** Returns the name of the list of a client's grants, including requests that are not decided. */
export function clientListName(namespace: string, client: string): string {
  return `${namespace} client ${client}`
}

/**
 * Returns the name of the list of an owner's grants, of either kind of record. The owner's identifier can be any
 * well-formed text, so it is hashed to a fixed length.
 */
export async function ownerListName(namespace: string, resourceOwner: string): Promise<string> {
  return `${namespace} owner ${await hashText(resourceOwner)}`
}

/**
 * Sweeps grants. What remains of a grant is written before the grant is removed, so that a call that reads the grants
 * of an owner first, and what remains of others second, returns all of them.
 */
export function sweptGrants(context: ServiceContext, historyMs: number): SweptKind {
  return {
    kind: 'grant',
    async sweep(record, now) {
      const grant = record as Grant
      const swept = ifRetired(grant, now)
      if (swept === undefined || grant.consent === undefined) return swept
      const { commandId } = newCall(context)
      const listName = await ownerListName(await context.namespace(), grant.consent.resourceOwner)
      const ended = endedGrant(grant, { commandId, listName, historyMs }, now)
      if (ended === undefined) return swept
      const created = { record: ended, events: [] }
      return context.run({
        ...creationWrite('ended-grant', created, swept),
        together: 'ended grants',
      })
    },
  }
}

async function request(
  { context, policy }: Dependencies,
  input: GrantRequestInput,
  call: SignedCall,
): Promise<RequestAnswer> {
  const { random } = context
  const continuationSecret = newSecret(random)
  const labels = labelsOf(input.access)
  const secrets = labels.map(() => newSecret(random))
  const namespace = await context.namespace()
  const command = {
    ...input,
    commandId: call.commandId,
    id: newId(namespace, call.now, random),
    listName: clientListName(namespace, clientId(input.client)),
    interaction: { path: newPath(random), nonce: newSecret(random) },
    continuation: { path: newPath(random), tokenHash: await hashText(continuationSecret) },
    tokens: await Promise.all(
      labels.map((label, index) => newToken(label, secrets[index] ?? '', random)),
    ),
  }
  const decision = requestGrant(command, call.now, policy)
  if (!decision.ok) return decision
  const grant = decision.record
  const tokens = (grant.tokens ?? []).map((token) => ({
    secret: secrets[labels.indexOf(token.label)] ?? '',
    ...token,
  }))
  const result = { ok: true, grant, continuationSecret, tokens } as const
  return call.run<GrantRequested>(creationWrite('grant', decision, result))
}

/** A continuation token, and the interaction reference if the client has one. */
interface PresentedContinuation {
  readonly secret: string
  readonly interactRef?: string
}

/** Continues a grant request, and answers with the tokens that the continuation derived, now or the first time. */
async function answerContinuation(
  deps: Dependencies,
  grant: Grant,
  { secret, interactRef }: PresentedContinuation,
  call: SignedCall,
) {
  // An attacker with a copy of the store and the reference, which the redirect reveals, must not be able to derive the
  // token.
  const derivationKey = interactRef === undefined ? secret : `${secret} ${interactRef}`
  const salt = newSecret(deps.context.random)
  const next = await Promise.all(
    labelsOf(grant.requested).map((label) => derivedToken(deps, derivationKey, salt, label)),
  )
  const command = {
    type: 'continue' as const,
    commandId: call.commandId,
    ...(interactRef !== undefined && { refHash: await hashText(interactRef) }),
    salt,
    nextTokens: next.map(({ token }) => token),
    key: call.proof.key,
  }
  const decision = await call.run(commandWrite(deps, grant, command, call))
  if (!decision.ok) return decision
  const { tokens = [], derivation } = decision.record
  return withSecrets(decision.record, tokens, derivationKey, derivation, next)
}

/** Rotates a token, and answers with the one that the rotation derived, now or the first time. */
async function answerRotation(
  deps: Dependencies,
  grant: Grant,
  { hash, manage, secret, label }: PresentedToken,
  call: SignedCall,
) {
  const salt = newSecret(deps.context.random)
  const next = await derivedToken(deps, secret, salt, label)
  const command = {
    type: 'rotate' as const,
    commandId: call.commandId,
    presented: { hash, manage },
    nextToken: { salt, ...next.token },
    key: call.proof.key,
  }
  const decision = await call.run(commandWrite(deps, grant, command, call))
  if (!decision.ok) return decision
  const { tokens = [] } = decision.record
  const token = tokens.find(({ derivation }) => derivation?.manage === manage)
  const { derivation } = token ?? {}
  return withSecrets(decision.record, token === undefined ? [] : [token], secret, derivation, [
    next,
  ])
}

async function newToken(
  label: string | undefined,
  secret: string,
  random: Random,
): Promise<NewToken> {
  const hash = await hashText(secret)
  return { ...(label !== undefined && { label }), hash, manage: newPath(random) }
}

/** A derived token, with its own secret. */
interface DerivedToken {
  readonly token: NewToken
  readonly secret: string
}

/** Derives a token from what the client presented. With the stored salt, a retry derives the same one. */
async function derivedToken(
  { context: { random } }: Dependencies,
  derivationKey: string,
  salt: string,
  label: string | undefined,
): Promise<DerivedToken> {
  const secret = await deriveSecret(derivationKey, salt, label)
  return { token: await newToken(label, secret, random), secret }
}

/** Returns the tokens: new ones, or those of an earlier request whose response was lost. */
async function withSecrets(
  grant: Grant,
  tokens: readonly IssuedToken[],
  derivationKey: string,
  derivation: Derivation | undefined,
  derivedNow: readonly DerivedToken[],
): Promise<GrantAnswer> {
  if (derivation === undefined) return { ok: true, grant, tokens: [] }
  const withSecret = async (token: IssuedToken) => {
    const now = derivedNow.find((derived) => derived.token.hash === token.hash)
    const secret = now?.secret ?? (await deriveSecret(derivationKey, derivation.salt, token.label))
    return { secret, ...token }
  }
  // An amendment may have revoked tokens before the response was repeated.
  const valid = tokens.filter(({ revokedAt }) => revokedAt === undefined)
  return { ok: true, grant, tokens: await Promise.all(valid.map(withSecret)) }
}

/** Resolves to the grant that has both this continuation token and this path. */
async function byContinuation(
  context: ServiceContext,
  { grantId, secret }: Credential,
  path: string,
): Promise<Grant | undefined> {
  const grant = await loadOwn<Grant>(context, 'grant', grantId)
  if (grant === undefined || grant.continuation.path !== path) return undefined
  const { tokenHash } = grant.continuation
  return sameHash(tokenHash, await hashText(secret)) ? grant : undefined
}

/** Resolves to the grant whose current or last replaced access token is managed at this path. */
async function byManagedToken(
  context: ServiceContext,
  { grantId, secret }: Credential,
  manage: string,
) {
  const grant = await loadOwn<Grant>(context, 'grant', grantId)
  const presented = { hash: await hashText(secret), manage, secret }
  const found = grant && managedToken(grant, presented)
  if (grant === undefined || found === undefined) return undefined
  const { label } = found.token
  return { grant, presented: label === undefined ? presented : { ...presented, label } }
}

/** A token that is presented at its management URI, with the secret from which the next token is derived. */
export interface PresentedToken extends ManagedToken {
  readonly secret: string
  /** The label of the token; absent if the client requested a single token. */
  readonly label?: string
}
