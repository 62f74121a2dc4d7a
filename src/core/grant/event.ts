import type { Instant } from '../instant.js'
import { clientId, type Grant } from './record.js'

/** What happened to a grant. No event carries a token, a reference or a key. */
export interface GrantEvent {
  readonly type:
    | 'grant.requested'
    | 'grant.approved'
    | 'grant.denied'
    | 'grant.issued'
    | 'grant.rotated'
    | 'grant.token-revoked'
    | 'grant.cancelled'
    | 'grant.revoked'
  readonly at: Instant
  readonly grantId: string
  /** Wallet address of the client instance, or the URN of its key's thumbprint. */
  readonly client: string
  /** The owner who consented or, for `grant.denied`, the owner who denied, if the host said so. */
  readonly resourceOwner?: string
  /** The label of the token that was rotated or revoked, if the client instance requested several. */
  readonly label?: string
}

export function grantEvent(
  type: GrantEvent['type'],
  grant: Grant,
  at: Instant,
  label?: string,
): GrantEvent {
  const named = label === undefined ? {} : { label }
  const event = { type, at, grantId: grant.id, client: clientId(grant.client), ...named }
  const { resourceOwner } = grant.consent ?? grant.finalized ?? {}
  return resourceOwner === undefined ? event : { ...event, resourceOwner }
}
