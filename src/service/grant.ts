import type { AccessItem } from '../core/access.js'
import { type Refused, sameHash } from '../core/decision.js'
import type { Finish, Grant, GrantClient, GrantPolicy } from '../core/grant/record.js'
import { type RequestRefusal, requestGrant } from '../core/grant/request.js'
import { type ManagedToken, managedToken } from '../core/grant/rotation.js'
import type { SubjectId } from '../core/grant/subject.js'
import { isRepeat, type NextToken } from '../core/grant/token.js'
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
import { consumeNonce, signatureOf } from './mechanism/nonces.js'
import { commitNew, loadOwn } from './mechanism/records.js'
import {
  type NonceGuard,
  type Operation,
  type Replayed,
  transact,
  transactSigned,
} from './mechanism/transact.js'

/** A grant after an operation, with the secrets for the response to its client instance. */
export interface GrantAnswer {
  readonly outcome: 'answered'
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

/** Creates the operations on grants. Each loads, decides and commits. Only hashes of secrets are stored. */
export function createGrants(context: ServiceContext, policy: GrantPolicy) {
  const { random } = context

  const load = (id: string) => loadOwn<Grant>(context, 'grant', id)

  function operation<Type extends keyof GrantRefusals>(
    grant: Grant,
    command: Extract<GrantCommand, { readonly type: Type }>,
    { now }: Call,
  ): Operation<Grant, GrantDecision<Type>> {
    return {
      loaded: grant,
      reload: async () => (await load(grant.id)) ?? grant,
      decide(loaded) {
        const decision = decideGrant<Type>(loaded, command, now, policy)
        if (decision.outcome !== 'changed') {
          return { changes: [], result: decision, refused: decision.outcome === 'refused' }
        }
        const { record, events } = decision
        const changes = changesOf(context, 'grant', record, events)
        const recordsSignature = 'signature' in command && isRepeat(record, command.signature)
        return { changes, result: decision, refused: false, recordsSignature }
      },
    }
  }

  /** Runs a command of the host on a grant. */
  function run<Type extends keyof GrantRefusals>(
    grant: Grant,
    command: Extract<GrantCommand, { readonly type: Type }>,
    call: Call,
  ) {
    return transact(context, operation<Type>(grant, command, call))
  }

  /** Runs a command of a client instance, whose signed request counts once, on a grant. */
  function runSigned<Type extends keyof GrantRefusals>(
    grant: Grant,
    command: Extract<GrantCommand, { readonly type: Type }>,
    call: Call,
    nonceGuard: NonceGuard | undefined,
  ) {
    return transactSigned(context, operation<Type>(grant, command, call), nonceGuard)
  }

  async function request(
    input: GrantRequestInput,
    call: Call,
    nonceGuard: NonceGuard | undefined,
  ): Promise<RequestAnswer> {
    const id = newId(await context.namespace(), random)
    const [continuationSecret, tokenSecret] = [newSecret(random), newSecret(random)]
    const command = {
      ...input,
      commandId: call.commandId,
      id,
      interaction: { path: newPath(random), nonce: newSecret(random) },
      continuation: { path: newPath(random), tokenHash: await hashSecret(continuationSecret) },
      token: { hash: await hashSecret(tokenSecret), manage: newPath(random) },
    }
    const decision = requestGrant(command, call.now, policy)
    if (decision.outcome === 'refused')
      return consumeNonce(context, nonceGuard, decision, { refused: true })
    const grant = decision.record
    const told = grant.token === undefined ? {} : { tokenSecret }
    const result = { outcome: 'answered', grant, continuationSecret, ...told } as const
    return commitNew<RequestAnswer>(context, 'grant', decision, result, nonceGuard)
  }

  /** Derives the next token from a presented secret. With the stored salt, a retry derives the same one. */
  async function nextTokenOf(presented: string): Promise<NextToken> {
    const salt = newSecret(random)
    const hash = await hashSecret(await deriveSecret(presented, salt))
    return { hash, manage: newPath(random), salt }
  }

  /** Returns the grant with the token derived from `presented`, now or before its response was lost. */
  async function answer<Type extends keyof GrantRefusals>(
    decision: GrantDecision<Type> | Replayed,
    presented: string,
  ): Promise<GrantAnswer | Refused<GrantRefusals[Type]> | Replayed> {
    if (decision.outcome === 'refused') return decision
    const grant = decision.record
    const salt = grant.derivation?.salt
    if (grant.token === undefined || salt === undefined) return { outcome: 'answered', grant }
    return { outcome: 'answered', grant, tokenSecret: await deriveSecret(presented, salt) }
  }

  async function continueGrant(
    grant: Grant,
    { secret, interactRef }: { readonly secret: string; readonly interactRef?: string },
    call: Call,
    nonceGuard: NonceGuard | undefined,
  ) {
    const presented = interactRef ?? secret
    const command = {
      type: 'continue' as const,
      commandId: call.commandId,
      ...(interactRef === undefined ? {} : { refHash: await hashSecret(interactRef) }),
      nextToken: await nextTokenOf(presented),
      ...signatureOf(nonceGuard),
    }
    return answer<'continue'>(await runSigned(grant, command, call, nonceGuard), presented)
  }

  async function rotate(
    grant: Grant,
    presented: PresentedToken,
    call: Call,
    nonceGuard: NonceGuard | undefined,
  ) {
    const { hash, manage, secret } = presented
    const command = {
      type: 'rotate' as const,
      commandId: call.commandId,
      presented: { hash, manage },
      nextToken: await nextTokenOf(secret),
      ...signatureOf(nonceGuard),
    }
    return answer<'rotate'>(await runSigned(grant, command, call, nonceGuard), secret)
  }

  /** Resolves to the grant that has both this continuation token and this path. */
  async function byContinuation({ grantId, secret }: Credential, path: string) {
    const grant = await load(grantId)
    if (grant === undefined || grant.continuation.path !== path) return undefined
    const { tokenHash } = grant.continuation
    return sameHash(tokenHash, await hashSecret(secret)) ? grant : undefined
  }

  /** Resolves to the grant whose current or last replaced access token is managed at this path. */
  async function byManagedToken({ grantId, secret }: Credential, manage: string) {
    const grant = await load(grantId)
    const presented = { hash: await hashSecret(secret), manage, secret }
    const managed = grant !== undefined && managedToken(grant, presented) !== undefined
    return managed ? { grant, presented } : undefined
  }

  return { load, run, runSigned, request, continueGrant, rotate, byContinuation, byManagedToken }
}

/** A token that is presented at its management URI, with the secret from which the next token is derived. */
export interface PresentedToken extends ManagedToken {
  readonly secret: string
}
