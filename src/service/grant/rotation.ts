import type { Grant } from '../../core/grant/record.js'
import { type ManagedToken, managedToken } from '../../core/grant/rotation.js'
import { type Credential, newSecret } from '../../protocol/credential.js'
import { hashText } from '../../util/hash.js'
import type { ServiceContext } from '../context.js'
import { loadGrant } from '../load.js'
import type { SignedCall } from '../signed-call.js'
import { commandWrite, type GrantingServer } from './command.js'
import { derivedToken, withSecrets } from './tokens.js'

/** A token that is presented at its management URI, with the secret from which the next token is derived. */
export interface PresentedToken extends ManagedToken {
  readonly secret: string
  /** The label of the token; absent if the client requested a single token. */
  readonly label?: string
}

/** Resolves to the grant whose current or last replaced access token is managed at this path. */
export async function byManagedToken(
  context: ServiceContext,
  { grantId, secret }: Credential,
  manage: string,
) {
  const grant = await loadGrant(context, grantId)
  const presented = { hash: await hashText(secret), manage, secret }
  const found = grant && managedToken(grant, presented)
  if (grant === undefined || found === undefined) return undefined
  const { label } = found.token
  return { grant, presented: label === undefined ? presented : { ...presented, label } }
}

/** Rotates a token, and answers with the one that the rotation derived, now or the first time. */
export async function answerRotation(
  deps: GrantingServer,
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
