import { grantedItems, lacksIdentifier, type TokenItem } from '../access.js'
import { type Changed, changed, type Refused, refused } from '../decision.js'
import type { Instant } from '../instant.js'
import {
  type FinishMethod,
  type Grant,
  type GrantClient,
  type GrantEvent,
  type GrantPolicy,
  grantEvent,
  type Interaction,
  type SubjectId,
} from './record.js'
import { issuedTokens, type NewToken } from './token.js'
import { withExpiry } from './version.js'

/** A client requests access (RFC 9635 section 2). Secrets are passed as hashes. */
export interface RequestGrant {
  readonly commandId: string
  readonly id: string
  readonly client: GrantClient
  /** May be empty if a subject is requested. */
  readonly access: readonly TokenItem[]
  /** The requested subject; needs consent. */
  readonly subject?: SubjectId
  /** Whether the policy requires a resource owner's consent. Outgoing payments of any account always do. */
  readonly needsConsent: boolean
  /** Whether the policy requires the interaction to end with a redirect to the client. */
  readonly needsFinish: boolean
  /** The interaction methods of the client; absent if it offered none. */
  readonly interact?: { readonly finish?: FinishMethod }
  readonly interaction: Pick<Interaction, 'pathHash' | 'nonce'>
  readonly continuation: { readonly path: string; readonly tokenHash: string }
  /** A token for each label in `access`. */
  readonly tokens: readonly NewToken[]
  /** Name of the client's list of grants. Default: the grant is not listed. */
  readonly listName?: string
}

/** Why a grant is not created. */
export type RequestRefusal = 'interaction_required' | 'interaction_by_key' | 'finish_required'

/**
 * Creates a grant: with its tokens immediately, or pending until a resource owner has decided.
 *
 * @example
 * ```ts
 * import { requestGrant } from 'open-payments-server/core'
 *
 * const client = { walletAddress: 'https://shop.example', kid: 'key-1', x: '…', thumbprint: '…' }
 * const requested = requestGrant(
 *   {
 *     commandId: 'command-1',
 *     id: 'wallet01grant-1',
 *     client,
 *     access: [{ type: 'incoming-payment', actions: ['create'] }],
 *     needsConsent: false,
 *     needsFinish: false,
 *     interaction: { pathHash: 'hash-1', nonce: 'random-1' },
 *     continuation: { path: 'random-2', tokenHash: 'hash-2' },
 *     tokens: [{ hash: 'hash-3', manage: 'random-3' }],
 *   },
 *   Date.now(),
 *   grantPolicy,
 * )
 * console.log(requested.ok ? requested.record : requested.reason)
 * ```
 */
export function requestGrant(
  command: RequestGrant,
  now: Instant,
  policy: GrantPolicy,
): Changed<Grant, GrantEvent> | Refused<RequestRefusal> {
  const { access, interact } = command
  const ownerChoosesAccount = access.some(
    (item) => item.type === 'outgoing-payment' && lacksIdentifier(item),
  )
  const needsConsent = command.needsConsent || ownerChoosesAccount
  if (needsConsent && interact === undefined) {
    return refused(
      'interaction_required',
      'the requested access needs consent, but interact is missing',
    )
  }
  if (needsConsent && command.client.walletAddress === undefined) {
    return refused(
      'interaction_by_key',
      'a client identified only by its key cannot request access that needs consent',
    )
  }
  if (needsConsent && command.needsFinish && interact?.finish === undefined) {
    return refused('finish_required', 'policy requires a finish method for this access')
  }

  const asked: Grant = {
    id: command.id,
    version: 1,
    commandId: command.commandId,
    createdAt: now,
    client: command.client,
    requested: access,
    ...(command.subject !== undefined && { requestedSubject: command.subject }),
    ...(command.listName !== undefined && { lists: [{ list: command.listName, at: now }] }),
    continuation: { ...command.continuation, waitMs: policy.waitMs, acceptedAt: now },
  }
  const grant = needsConsent
    ? withInteraction(asked, command, now, policy)
    : withTokens(asked, command, now, policy)
  const kept = withExpiry(grant, now, policy)
  const requested = grantEvent('grant.requested', kept, now)
  return needsConsent
    ? changed(kept, requested)
    : changed(kept, requested, grantEvent('grant.issued', kept, now))
}

function withInteraction(
  grant: Grant,
  { interaction, interact }: RequestGrant,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const expiresAt = now + policy.interactionLifetimeMs
  const { finish } = interact ?? {}
  return {
    ...grant,
    interaction: { ...interaction, ...(finish !== undefined && { finish }), expiresAt },
  }
}

function withTokens(
  grant: Grant,
  { access, tokens }: RequestGrant,
  now: Instant,
  policy: GrantPolicy,
): Grant {
  const granted = grantedItems(access, policy.intervalCounting)
  const issued = issuedTokens({ granted }, tokens, now, policy)
  return { ...grant, granted, issuedAt: now, tokens: issued }
}
