import type { AccessItem } from '../core/access.js'
import { type Refused, sameHash } from '../core/decision.js'
import type { Finish, Grant, GrantClient, GrantPolicy } from '../core/grant/record.js'
import { type RequestRefusal, requestGrant } from '../core/grant/request.js'
import { type ManagedToken, managedToken } from '../core/grant/rotation.js'
import type { SubjectId } from '../core/grant/subject.js'
import { type NextToken, recordsSignature } from '../core/grant/token.js'
import {
  decideGrant,
  type GrantCommand,
  type GrantDecision,
  type GrantRefusals,
} from '../core/grant.js'
import {
  type Credential,
  deriveSecret,
  hashSecret,
  newId,
  newPath,
  newSecret,
} from '../protocol/credential.js'
import type { Call, ServiceContext } from './mechanism/context.js'
import { changesOf } from './mechanism/events.js'
import { type SignedCall, signatureOf } from './mechanism/nonces.js'
import { commitNew, loadOwn } from './mechanism/records.js'
import { type Operation, type Replayed, transact, transactSigned } from './mechanism/transact.js'

/** A grant after an operation, with the secrets for the response to its client instance. */
export interface GrantAnswer {
  readonly ok: true
  readonly grant: Grant
  /** Secret of the access token; absent if the response contains no token. */
  readonly tokenSecret?: string
}

/** The result of a grant request. */
export type RequestAnswer =
  | (GrantAnswer & { readonly continuationSecret: string })
  | Refused<RequestRefusal>
  | Replayed

export interface GrantRequestInput {
  readonly client: GrantClient
  readonly access: readonly AccessItem[]
  readonly subject?: SubjectId
  readonly needsConsent: boolean
  readonly needsFinish: boolean
  readonly interact?: { readonly finish?: Finish }
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
    load: (id: string) => loadGrant(context, id),
    /** Runs a command of the host on a grant. */
    run: <Type extends keyof GrantRefusals>(grant: Grant, command: Command<Type>, call: Call) =>
      transact(context, operation<Type>(deps, grant, command, call)),
    /** Runs a command of a client instance, whose signed request counts once, on a grant. */
    runSigned: <Type extends keyof GrantRefusals>(
      grant: Grant,
      command: Command<Type>,
      call: SignedCall,
    ) => runSigned(deps, grant, command, call),
    request: (input: GrantRequestInput, call: SignedCall) => request(deps, input, call),
    continueGrant: (grant: Grant, presented: PresentedContinuation, call: SignedCall) =>
      continueGrant(deps, grant, presented, call),
    rotate: (grant: Grant, presented: PresentedToken, call: SignedCall) =>
      rotate(deps, grant, presented, call),
    byContinuation: (credential: Credential, path: string) =>
      byContinuation(context, credential, path),
    byManagedToken: (credential: Credential, manage: string) =>
      byManagedToken(context, credential, manage),
  }
}

function loadGrant(context: ServiceContext, id: string): Promise<Grant | undefined> {
  return loadOwn(context, 'grant', id)
}

function operation<Type extends keyof GrantRefusals>(
  { context, policy }: Dependencies,
  grant: Grant,
  command: Command<Type>,
  { now }: Call,
): Operation<Grant, GrantDecision<Type>> {
  return {
    loaded: grant,
    reload: async () => (await loadGrant(context, grant.id)) ?? grant,
    decide(loaded) {
      const decision = decideGrant<Type>(loaded, command, now, policy)
      if (decision.outcome !== 'changed') {
        return { changes: [], result: decision, refused: !decision.ok }
      }
      const { record, events } = decision
      const changes = changesOf(context, 'grant', record, events)
      const recorded = 'signature' in command && recordsSignature(record, command)
      return { changes, result: decision, refused: false, recordsSignature: recorded }
    },
  }
}

function runSigned<Type extends keyof GrantRefusals>(
  deps: Dependencies,
  grant: Grant,
  command: Command<Type>,
  call: SignedCall,
) {
  const run = operation<Type>(deps, grant, command, call)
  return transactSigned(deps.context, run, call.replay)
}

async function request(
  { context, policy }: Dependencies,
  input: GrantRequestInput,
  call: SignedCall,
): Promise<RequestAnswer> {
  const { random } = context
  const [continuationSecret, tokenSecret] = [newSecret(random), newSecret(random)]
  const command = {
    ...input,
    commandId: call.commandId,
    id: newId(await context.namespace(), random),
    interaction: { path: newPath(random), nonce: newSecret(random) },
    continuation: { path: newPath(random), tokenHash: await hashSecret(continuationSecret) },
    token: { hash: await hashSecret(tokenSecret), manage: newPath(random) },
  }
  const decision = requestGrant(command, call.now, policy)
  if (!decision.ok) return decision
  const grant = decision.record
  const told = grant.token === undefined ? {} : { tokenSecret }
  const result = { ok: true, grant, continuationSecret, ...told } as const
  return commitNew<RequestAnswer>(context, 'grant', decision, result, call)
}

/** A continuation token, and the interaction reference if the client instance has one. */
export interface PresentedContinuation {
  readonly secret: string
  readonly interactRef?: string
}

async function continueGrant(
  deps: Dependencies,
  grant: Grant,
  { secret, interactRef }: PresentedContinuation,
  call: SignedCall,
) {
  // The reference alone, which the redirect reveals, and a copy of the store must not yield the token.
  const presented = interactRef === undefined ? secret : `${secret} ${interactRef}`
  const command = {
    type: 'continue' as const,
    commandId: call.commandId,
    ...(interactRef === undefined ? {} : { refHash: await hashSecret(interactRef) }),
    nextToken: await nextTokenOf(deps, presented),
    ...signatureOf(call.replay),
  }
  return answer<'continue'>(await runSigned(deps, grant, command, call), presented)
}

async function rotate(
  deps: Dependencies,
  grant: Grant,
  { hash, manage, secret }: PresentedToken,
  call: SignedCall,
) {
  const command = {
    type: 'rotate' as const,
    commandId: call.commandId,
    presented: { hash, manage },
    nextToken: await nextTokenOf(deps, secret),
    ...signatureOf(call.replay),
  }
  return answer<'rotate'>(await runSigned(deps, grant, command, call), secret)
}

/** Derives the next token from a presented secret. With the stored salt, a retry derives the same one. */
async function nextTokenOf(
  { context: { random } }: Dependencies,
  presented: string,
): Promise<NextToken> {
  const salt = newSecret(random)
  const hash = await hashSecret(await deriveSecret(presented, salt))
  return { hash, manage: newPath(random), salt }
}

/** Returns the grant with the token derived from `presented`, now or before its response was lost. */
async function answer<Type extends keyof GrantRefusals>(
  decision: GrantDecision<Type> | Replayed,
  presented: string,
): Promise<GrantAnswer | Refused<GrantRefusals[Type]> | Replayed> {
  if (!decision.ok) return decision
  const grant = decision.record
  const salt = grant.derivation?.salt
  if (grant.token === undefined || salt === undefined) return { ok: true, grant }
  return { ok: true, grant, tokenSecret: await deriveSecret(presented, salt) }
}

/** Resolves to the grant that has both this continuation token and this path. */
async function byContinuation(
  context: ServiceContext,
  { grantId, secret }: Credential,
  path: string,
): Promise<Grant | undefined> {
  const grant = await loadGrant(context, grantId)
  if (grant === undefined || grant.continuation.path !== path) return undefined
  const { tokenHash } = grant.continuation
  return sameHash(tokenHash, await hashSecret(secret)) ? grant : undefined
}

/** Resolves to the grant whose current or last replaced access token is managed at this path. */
async function byManagedToken(
  context: ServiceContext,
  { grantId, secret }: Credential,
  manage: string,
) {
  const grant = await loadGrant(context, grantId)
  const presented = { hash: await hashSecret(secret), manage, secret }
  const managed = grant !== undefined && managedToken(grant, presented) !== undefined
  return managed ? { grant, presented } : undefined
}

/** A token that is presented at its management URI, with the secret from which the next token is derived. */
export interface PresentedToken extends ManagedToken {
  readonly secret: string
}
