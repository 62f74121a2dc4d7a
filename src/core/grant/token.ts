import type { Instant } from '../decision.js'
import type { Derivation, Grant, GrantPolicy, IssuedToken } from './record.js'

/** The parts of a new token. The command contains all of them, so deciding again gives the same token. */
export interface NextToken {
  /** SHA-256 of the new token's secret. */
  readonly hash: string
  /** The random part of the new management URI. */
  readonly manage: string
  /** The salt from which the secret was derived. */
  readonly salt: string
}

/** Creates an access token that is valid from now on, and not beyond the end of the grant. */
export function issuedToken(
  { endsAt = Number.POSITIVE_INFINITY }: Pick<Grant, 'endsAt'>,
  { hash, manage }: Pick<IssuedToken, 'hash' | 'manage'>,
  now: Instant,
  { accessTokenLifetimeMs }: GrantPolicy,
): IssuedToken {
  const expiresAt = Math.max(now, Math.min(now + accessTokenLifetimeMs, endsAt))
  return { hash, manage, issuedAt: now, expiresAt }
}

/** What identifies a request from which a token is derived. */
interface DerivingCommand {
  readonly commandId: string
  readonly signature?: string
}

/** Whether the current token was derived from a request with the same signature. */
export function recordsSignature({ derivation }: Grant, { signature }: DerivingCommand): boolean {
  return signature !== undefined && derivation?.signature === signature
}

/**
 * Whether another command derived the current token from a request with the same signature. A command whose
 * commit was lost finds its own signature, even if the grant has changed since.
 */
export function isRepeat(grant: Grant, command: DerivingCommand): boolean {
  return recordsSignature(grant, command) && grant.derivation?.commandId !== command.commandId
}

/** Returns what a derivation records of its request. */
export function requestOf({
  commandId,
  signature,
}: DerivingCommand): Pick<Derivation, 'signature' | 'commandId'> {
  return signature === undefined ? {} : { signature, commandId }
}

/** Creates a token derived from the presented secret, and the record to derive it again for a lost response. */
export function derivedToken(
  grant: Pick<Grant, 'endsAt'>,
  nextToken: NextToken,
  asked: Omit<Derivation, 'salt' | 'until'>,
  now: Instant,
  policy: GrantPolicy,
): Required<Pick<Grant, 'token' | 'derivation'>> {
  return {
    token: issuedToken(grant, nextToken, now, policy),
    derivation: { ...asked, salt: nextToken.salt, until: now + policy.retryMs },
  }
}
