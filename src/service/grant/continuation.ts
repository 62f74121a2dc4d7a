import { labelsOf } from '../../core/access.js'
import type { Grant } from '../../core/grant/record.js'
import { sameHash } from '../../core/grant/token.js'
import { type Credential, newSecret } from '../../protocol/credential.js'
import { hashText } from '../../util/hash.js'
import type { ServiceContext } from '../context.js'
import { loadGrant } from '../load.js'
import type { SignedCall } from '../signed-call.js'
import { commandWrite, type GrantingServer } from './command.js'
import { derivedToken, withSecrets } from './tokens.js'

export async function byContinuation(
  context: ServiceContext,
  { grantId, secret }: Credential,
  path: string,
): Promise<Grant | undefined> {
  const grant = await loadGrant(context, grantId)
  if (grant === undefined || grant.continuation.path !== path) return undefined
  const { tokenHash } = grant.continuation
  return sameHash(tokenHash, await hashText(secret)) ? grant : undefined
}

/** A continuation token, and the interaction reference if the client has one. */
export interface PresentedContinuation {
  readonly secret: string
  readonly interactRef?: string
}

/** Continues a grant request, and answers with the tokens that the continuation derived, now or the first time. */
export async function answerContinuation(
  deps: GrantingServer,
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
