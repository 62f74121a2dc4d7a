import type { EndedGrant } from '../core/grant/ended.js'
import type { Grant, GrantPolicy } from '../core/grant/record.js'
import type { GrantRefusals } from '../core/grant.js'
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
import { loadOwn } from './load.js'
import type { SignedCall } from './signed-call.js'

export type Grants = ReturnType<typeof createGrants>

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
