import { labelsOf } from '../../core/access.js'
import type { Refused } from '../../core/decision.js'
import { clientId } from '../../core/grant/record.js'
import { type RequestGrant, type RequestRefusal, requestGrant } from '../../core/grant/request.js'
import { newId, newSecret, newUniqueText } from '../../protocol/credential.js'
import { hashText } from '../../util/hash.js'
import type { Replayed, SignedCall } from '../signed-call.js'
import { creationWrite } from '../write/write.js'
import type { GrantingServer } from './command.js'
import { clientListName } from './lists.js'
import { type GrantAnswer, newToken } from './tokens.js'

export interface GrantRequested extends GrantAnswer {
  readonly continuationSecret: string
  /** The random part of the path of the interaction. */
  readonly interactionSecret: string
}

type RequestAnswer = GrantRequested | Refused<RequestRefusal> | Replayed

/** What a client requests, and what the policy of the server requires for it. */
export type GrantRequestInput = Pick<
  RequestGrant,
  'client' | 'access' | 'subject' | 'needsConsent' | 'needsFinish' | 'interact'
>

/** Creates a grant request, with its tokens if it needs no consent. */
export async function request(
  { context, policy }: GrantingServer,
  input: GrantRequestInput,
  call: SignedCall,
): Promise<RequestAnswer> {
  const { random } = context
  const continuationSecret = newSecret(random)
  const interactionSecret = newUniqueText(random)
  const labels = labelsOf(input.access)
  const secrets = labels.map(() => newSecret(random))
  const namespace = await context.namespace()
  const command = {
    ...input,
    commandId: call.commandId,
    id: newId(namespace, call.now, random),
    listName: clientListName(namespace, clientId(input.client)),
    interaction: { pathHash: await hashText(interactionSecret), nonce: newSecret(random) },
    continuation: { path: newUniqueText(random), tokenHash: await hashText(continuationSecret) },
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
  const result = { ok: true, grant, continuationSecret, interactionSecret, tokens } as const
  return call.run<GrantRequested>(creationWrite('grant', decision, result))
}
