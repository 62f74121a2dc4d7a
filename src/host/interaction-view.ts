import { type AccessItem, publicItem } from '../core/access.js'
import type { Instant } from '../core/decision.js'
import { type Grant, type GrantPolicy, grantStatus } from '../core/grant/record.js'
import type { SubjectId } from '../core/grant/subject.js'
import { formatPath } from '../protocol/credential.js'

/** The content of a consent page: the client instance, the requested access and the deadline. */
export interface InteractionView {
  readonly id: string
  readonly grantId: string
  readonly state: 'pending' | 'approved' | 'denied' | 'expired' | 'closed'
  /** Wallet address of the client instance, verified by its signature. */
  readonly client: string
  /** The requested access; once approved, the granted access. Empty if only a subject is requested. */
  readonly access: readonly AccessItem[]
  /**
   * The subject identifier that the client instance requests; once approved, the one that it receives. Show
   * it to the owner, because the client instance learns who consented. Until then it is text that the
   * client instance chose: do not render it as a link.
   */
  readonly subject?: SubjectId
  /** The client instance's finish URI, to which the browser is redirected, if any. Show it to the owner. */
  readonly finishUri?: string
  readonly expiresAt: Instant
}

/** Returns the view of a grant's interaction, or `undefined` if the grant has none. */
export function interactionView(
  grant: Grant,
  now: Instant,
  policy: GrantPolicy,
): InteractionView | undefined {
  const { interaction, client } = grant
  const subject = grant.granted === undefined ? grant.requestedSubject : grant.subject
  if (interaction === undefined || client.walletAddress === undefined) return undefined
  const { path, finish, expiresAt } = interaction
  return {
    id: formatPath(grant.id, path),
    grantId: grant.id,
    state: viewState(grant, now, policy),
    client: client.walletAddress,
    access: (grant.granted ?? grant.requested).map(publicItem),
    ...(subject === undefined ? {} : { subject }),
    ...(finish === undefined ? {} : { finishUri: finish.uri }),
    expiresAt,
  }
}

function viewState(grant: Grant, now: Instant, policy: GrantPolicy): InteractionView['state'] {
  const status = grantStatus(grant, now, policy)
  switch (status) {
    case 'pending':
    case 'approved':
    case 'denied':
      return status
    case 'interaction-expired':
      return 'expired'
    default:
      return 'closed'
  }
}
