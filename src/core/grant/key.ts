import { type Changed, changed } from '../decision.js'
import type { Instant } from '../instant.js'
import { type Grant, type GrantEvent, type GrantKey, grantEvent } from './record.js'

/**
 * Records the key that signed on a grant that the decision changes anyway. A client that is identified by its key has
 * no other.
 */
export function withKey(
  decision: Changed<Grant, GrantEvent>,
  key: GrantKey | undefined,
  now: Instant,
): Changed<Grant, GrantEvent> {
  const { client } = decision.record
  const { walletAddress } = client
  if (key === undefined || walletAddress === undefined) return decision
  if (client.kid === key.kid && client.thumbprint === key.thumbprint) return decision
  const record = { ...decision.record, client: { walletAddress, ...key } }
  return changed(record, grantEvent('grant.key-changed', record, now), ...decision.events)
}
