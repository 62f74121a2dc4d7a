import {
  coversTokens,
  grantedItems,
  isWellFormed,
  lacksIdentifier,
  type TokenItem,
} from '../access.js'
import { changed, type Decision, refused, unchanged } from '../decision.js'
import type { Instant } from '../instant.js'
import { contradictsLimits, type GrantConditions } from '../limits.js'
import { type ListEntry, sameJson } from '../stored.js'
import { type GrantedAccount, payingAccounts, refuseAssets } from './account-assets.js'
import {
  type Grant,
  type GrantEvent,
  type GrantPolicy,
  grantEvent,
  type Interaction,
  type StoredReference,
  type SubjectId,
} from './record.js'
import { type GrantStatus, grantStatus } from './status.js'
import { finalize, nextVersion } from './version.js'

/**
 * A resource owner approves all or part of the requested access. The reference is unused without a finish method.
 */
export interface ApproveGrant extends StoredReference {
  readonly type: 'approve'
  readonly commandId: string
  readonly resourceOwner: string
  /** The name of the client that the owner could see, if it has one. */
  readonly clientName?: string
  /** The owner's wallet addresses. Granted items may name only these. */
  readonly walletAddresses: readonly string[]
  /** The assets of the wallet addresses, where the host states them. */
  readonly accounts?: readonly GrantedAccount[]
  /** The wallet address for items that need an identifier and have none. Default: the owner's only one. */
  readonly account?: string
  /** The granted access, if it is less than the requested access. */
  readonly access?: readonly TokenItem[]
  /** The owner's conditions for payments. Default: none. */
  readonly conditions?: GrantConditions
  /** The subject to disclose to the client, if it requested one and the owner agrees. */
  readonly subject?: SubjectId
  /** Name of the owner's list of grants. Default: the grant is not listed. */
  readonly listName?: string
}

/** A resource owner declines. The reference is unused without a finish method. */
export interface DenyGrant extends StoredReference {
  readonly type: 'deny'
  readonly commandId: string
  /** The owner who declines, if the host knows. */
  readonly resourceOwner?: string
}

/** Why an approval or a denial has no effect. Minor versions add members: give a `switch` a `default`. */
export type ConsentRefusal =
  | 'interaction_unknown'
  | 'interaction_expired'
  | 'interaction_over'
  | 'decided_otherwise'
  | 'identifier_required'
  | 'not_the_owner'
  | 'asset_mismatch'
  | 'access_widened'
  | 'nothing_granted'
  | 'limits_contradicted'

type Consented = Decision<Grant, GrantEvent, ConsentRefusal>

export function approve(
  grant: Grant,
  command: ApproveGrant,
  now: Instant,
  policy: GrantPolicy,
): Consented {
  const interaction = grant.interaction
  if (interaction === undefined)
    return refused('interaction_unknown', 'the grant has no interaction')
  const status = grantStatus(grant, now)
  if (status === 'denied') return refused('decided_otherwise', 'the request has been denied')
  if (isOver(grant, status)) return over(status)
  if (now >= interaction.expiresAt) return over('interaction-expired')

  const access = withIdentifiers(command.access ?? grant.requested, command)
  if (status === 'approved') return repeat(grant, access, command)

  const subject = subjectToTell(grant, command)
  if (access.length === 0 && subject === undefined) {
    return refused('nothing_granted', 'the approval grants neither access nor a subject')
  }
  const refusal = refuseAccess(grant.requested, access, command, policy)
  if (refusal !== undefined) return refusal
  const { conditions, clientName, resourceOwner } = command
  if (contradictsLimits(conditions ?? {}, access)) {
    return refused('limits_contradicted', 'the conditions are not in the asset of a limit')
  }
  const accounts = payingAccounts(access, command.accounts ?? [])
  const next = nextVersion(
    grant,
    {
      granted: grantedItems(access, policy.intervalCounting),
      ...(subject !== undefined && { subject }),
      ...(conditions !== undefined && { conditions }),
      consent: {
        resourceOwner,
        at: now,
        ...(clientName !== undefined && { clientName }),
        ...(accounts.length > 0 && { accounts }),
      },
      ...withReference(interaction, command),
      ...(command.listName !== undefined && { lists: listed(grant, command.listName, now) }),
    },
    command.commandId,
    now,
    policy,
  )
  return changed(next, grantEvent('grant.approved', next, now))
}

function listed({ lists = [] }: Grant, list: string, at: Instant): readonly ListEntry[] {
  return [...lists, { list, at }]
}

export function deny(
  grant: Grant,
  command: DenyGrant,
  now: Instant,
  policy: GrantPolicy,
): Consented {
  const { interaction } = grant
  if (interaction === undefined) {
    return refused('interaction_unknown', 'the grant has no interaction')
  }
  const status = grantStatus(grant, now)
  if (status === 'denied') return unchanged(grant)
  if (isOver(grant, status)) return over(status)
  if (status === 'approved') return refused('decided_otherwise', 'the request has been approved')
  const { commandId, resourceOwner } = command
  const next = finalize(
    { ...grant, ...withReference(interaction, command) },
    { reason: 'denied', by: 'host', ...(resourceOwner !== undefined && { resourceOwner }) },
    commandId,
    now,
    policy,
  )
  return changed(next, grantEvent('grant.denied', next, now))
}

/** Repeats the same decision, as a double click does. The interaction reference stays, until the client uses it. */
function repeat(grant: Grant, access: readonly TokenItem[], command: ApproveGrant): Consented {
  const { granted = [] } = grant
  const same =
    grant.consent?.resourceOwner === command.resourceOwner &&
    (grant.subject === undefined) === (subjectToTell(grant, command) === undefined) &&
    sameJson(grant.conditions ?? {}, command.conditions ?? {}) &&
    access.length === granted.length &&
    coversTokens(granted, access) &&
    coversTokens(access, granted)
  return same
    ? unchanged(grant)
    : refused('decided_otherwise', 'the request has been approved with a different decision')
}

/** Discloses a subject only to a client that requested one. */
function subjectToTell({ requestedSubject }: Grant, { subject }: ApproveGrant) {
  return requestedSubject && subject
}

/** Whether nobody can decide any more: the grant is finalized, or the client has received its tokens. */
function isOver({ issuedAt }: Grant, status: GrantStatus): boolean {
  return issuedAt !== undefined || (status !== 'pending' && status !== 'approved')
}

function over(status: GrantStatus) {
  if (status === 'interaction-expired') {
    return refused('interaction_expired', 'the interaction has expired')
  }
  return refused(
    'interaction_over',
    status === 'approved' ? 'the grant has been issued' : `the grant is ${status}`,
  )
}

function withReference(
  interaction: Interaction,
  { refHash, refSalt }: StoredReference,
): Pick<Grant, 'interaction'> {
  if (interaction.finish === undefined) return { interaction }
  return { interaction: { ...interaction, refHash, refSalt } }
}

/** Narrows items that need an identifier to the wallet address that the owner chose, or to the owner's only one. */
function withIdentifiers(
  access: readonly TokenItem[],
  { walletAddresses, account }: ApproveGrant,
): readonly TokenItem[] {
  const [only, ...others] = walletAddresses
  const chosen = account ?? (others.length > 0 ? undefined : only)
  if (chosen === undefined) return access
  return access.map((item) => (lacksIdentifier(item) ? { ...item, identifier: chosen } : item))
}

function refuseAccess(
  requested: readonly TokenItem[],
  access: readonly TokenItem[],
  { walletAddresses, account, accounts = [], conditions = {} }: ApproveGrant,
  { intervalCounting }: GrantPolicy,
) {
  if (!coversTokens(requested, access, intervalCounting)) {
    return refused('access_widened', 'the granted access exceeds the requested access')
  }
  if (!access.every(isWellFormed)) {
    return refused('access_widened', 'an item is not a valid access item')
  }
  if (access.some(lacksIdentifier)) {
    return refused('identifier_required', 'the access needs a wallet address as its identifier')
  }
  const foreign = [account, ...access.map(({ identifier }) => identifier)].find(
    (url) => url !== undefined && !walletAddresses.includes(url),
  )
  if (foreign !== undefined) {
    return refused('not_the_owner', `${foreign} is not a wallet address of this owner`)
  }
  return refuseAssets(access, conditions, accounts)
}
