import type { Instant } from '../instant.js'
import { retained, type Stored } from '../stored.js'
import type { Grant, GrantClient } from './record.js'
import { grantStatus } from './status.js'

/**
 * What remains of a grant that a resource owner consented to, once its own record is removed: what the owner may see,
 * without its public key, tokens and hashes. The members have the names, and the meaning, that they have in the grant.
 */
export interface EndedGrant
  extends Stored,
    Pick<Grant, 'finalized' | 'createdAt' | 'subject' | 'expiresAt' | 'conditions'>,
    Pick<Grant, 'amendments' | 'issuedAt'>,
    Required<Pick<Grant, 'granted' | 'consent'>> {
  /** The client, with the key that signed last as far as the grant recorded it. */
  readonly client: Omit<GrantClient, 'x'>
  readonly endedAt: Instant
}

interface EndedGrantOptions {
  readonly commandId: string
  /** Name of the owner's list. */
  readonly listName: string
  /** How long after its end the grant stays readable. */
  readonly historyMs: number
}

/**
 * Returns what remains of a grant, or `undefined` if the owner did not consent to it, it has not ended, or the time in
 * which it must stay readable is over.
 */
export function endedGrant(
  grant: Grant,
  { commandId, listName, historyMs }: EndedGrantOptions,
  now: Instant,
): EndedGrant | undefined {
  const { id, createdAt, granted, subject, conditions, amendments } = grant
  const { consent, issuedAt, expiresAt, finalized } = grant
  const endedAt = endOf(grant, now)
  if (consent === undefined || granted === undefined || endedAt === undefined) return undefined
  const until = endedAt + historyMs
  if (until <= now) return undefined
  const { x: _x, ...client } = grant.client
  return {
    id,
    version: 1,
    commandId,
    ...retained(until),
    lists: [{ list: listName, at: consent.at }],
    createdAt,
    client,
    granted,
    consent,
    endedAt,
    ...(subject !== undefined && { subject }),
    ...(conditions !== undefined && { conditions }),
    ...(amendments !== undefined && { amendments }),
    ...(issuedAt !== undefined && { issuedAt }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(finalized !== undefined && { finalized }),
  }
}

/**
 * Returns when a grant ended, or `undefined` if it has not. The owner can consent to windows that are all over: that
 * grant ends at once.
 */
export function endOf(grant: Grant, now: Instant): Instant | undefined {
  const status = grantStatus(grant, now)
  if (status === 'pending' || status === 'approved') return undefined
  const { finalized, granted, interaction, createdAt, consent, expiresAt = createdAt } = grant
  if (finalized !== undefined) return finalized.at
  return granted === undefined
    ? interaction?.expiresAt
    : Math.max(expiresAt, consent?.at ?? createdAt)
}
