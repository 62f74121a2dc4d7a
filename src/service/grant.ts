import type { EndedGrant } from '../core/grant/ended.js'
import type { Grant, GrantPolicy } from '../core/grant/record.js'
import type { GrantCommand, GrantRefusals } from '../core/grant.js'
import { type Credential, isIdOf } from '../protocol/credential.js'
import type { Call, ServiceContext } from './context.js'
import { type Command, commandWrite } from './grant/command.js'
import {
  answerContinuation,
  byContinuation,
  type PresentedContinuation,
} from './grant/continuation.js'
import { type GrantRequestInput, request } from './grant/request.js'
import { answerRotation, byManagedToken, type PresentedToken } from './grant/rotation.js'
import { loadGrant } from './load.js'
import type { SignedCall } from './signed-call.js'

export type Grants = ReturnType<typeof createGrants>

/** What a server in this process does once a grant has ended or allows less. */
export type OnNarrowed = (grantId: string) => Promise<void>

/** Each operation loads, decides and commits. Only hashes of secrets are stored. */
export function createGrants(
  context: ServiceContext,
  policy: GrantPolicy,
  onNarrowed: OnNarrowed = async () => undefined,
) {
  const deps = { context, policy }

  /** Waits for what follows from a command that narrows or ends a grant, also if it is repeated. */
  async function followed<Type extends keyof GrantRefusals, Answer extends { ok: boolean }>(
    { id, granted = [] }: Grant,
    { type }: Command<Type>,
    answer: Answer,
  ): Promise<Answer> {
    const pays = granted.some((item) => item.type === 'outgoing-payment')
    if (answer.ok && pays && narrowing.includes(type)) await onNarrowed(id)
    return answer
  }

  return {
    load: (id: string) => loadGrant(context, id),
    loadReadable: (id: string) => loadReadable(context, id),
    run: async <Type extends keyof GrantRefusals>(
      grant: Grant,
      command: Command<Type>,
      call: Call,
    ) => {
      const answer = await context.run(commandWrite<Type>(deps, grant, command, call))
      return followed<Type, typeof answer>(grant, command, answer)
    },
    /** Runs a command of a client, whose signed request counts once, on a grant. */
    runSigned: async <Type extends keyof GrantRefusals>(
      grant: Grant,
      command: Command<Type>,
      call: SignedCall,
    ) => {
      const answer = await call.run(commandWrite<Type>(deps, grant, command, call))
      return followed<Type, typeof answer>(grant, command, answer)
    },
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

const narrowing: readonly GrantCommand['type'][] = ['amend', 'cancel', 'revoke', 'revoke-token']

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
