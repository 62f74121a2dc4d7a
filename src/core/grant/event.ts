import type { Instant } from '../decision.js'
import { clientId, type Grant } from './record.js'

/** What happened to a grant. No event carries a token, a reference or a key. */
export interface GrantEvent {
  readonly type:
    | 'grant.requested'
    | 'grant.approved'
    | 'grant.denied'
    | 'grant.issued'
    | 'grant.rotated'
    | 'grant.cancelled'
    | 'grant.revoked'
  readonly at: Instant
  readonly grantId: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  readonly resourceOwner?: string
}

export function grantEvent(type: GrantEvent['type'], grant: Grant, at: Instant): GrantEvent {
  const event = { type, at, grantId: grant.id, client: clientId(grant.client) }
  return grant.consent === undefined
    ? event
    : { ...event, resourceOwner: grant.consent.resourceOwner }
}
