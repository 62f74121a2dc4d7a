import { type Refused, refused } from './decision.js'
import type { JsonObject } from './stored.js'

/** The rule for the URL of a wallet address or of another resource. */
export const resourceUrlForm =
  'must be an https URL, or http on loopback, without userinfo, query, fragment, empty segment or needless escape'

/**
 * The reasons that a client learns in `details` of an error, as refusal, `path` and `problem`: what is wrong with its
 * own data, with a quote or a limit of its own, or a public fact. Every other reason is only for the operator, except
 * those that the host publishes, and those for which a schema rejects a body or a query. A `path` with `limits` leads
 * into the access of the token, any other into the body or query.
 */
export const publicReasons = [
  ['client_invalid', 'client', resourceUrlForm],
  ['client_invalid', 'client.jwk', 'must be a JSON object'],
  ['client_invalid', 'client.jwk', 'must not contain a private key'],
  ['client_invalid', 'client.jwk', 'must have kty OKP and crv Ed25519'],
  ['client_invalid', 'client.jwk', 'must have alg EdDSA'],
  ['client_invalid', 'client.jwk', 'must have use sig, or no use'],
  ['client_invalid', 'client.jwk', 'must have a kid of 1 to 256 characters'],
  ['client_invalid', 'client.jwk', 'must have a canonical x that is not of small order'],
  ['body_invalid', 'client', 'is missing'],
  ['body_invalid', 'client', 'must have either walletAddress or jwk'],
  ['identifier_foreign', 'walletAddress', 'must be the identifier in the access of the token'],
  ['identifier_foreign', 'wallet-address', 'must be the identifier in the access of the token'],
  ['amount_invalid', 'incomingAmount', 'must be in the asset of the wallet address'],
  ['amount_invalid', 'incomingAmount', 'must be positive'],
  ['amount_invalid', 'debitAmount', 'must be in the asset of the wallet address'],
  ['amount_invalid', 'debitAmount', 'must be positive'],
  ['amount_invalid', 'receiveAmount', 'must be positive'],
  ['expiry_invalid', 'expiresAt', 'must be in the future'],
  ['expiry_invalid', 'expiresAt', 'must be earlier'],
  ['receiver_invalid', 'receiver', 'must be on the public internet'],
  ['receiver_invalid', 'incomingPayment', 'must be on the public internet'],
  ['quote_mismatch', 'walletAddress', 'must be the wallet address of the quote'],
  ['quote_expired', 'quoteId', 'has expired'],
  ['limits_exceeded', 'limits.receiver', 'is another receiver'],
  ['limits_exceeded', 'limits.interval', 'has no window at this time'],
  ['limits_exceeded', 'limits', 'has paid in 32 assets already'],
  ['limits_exceeded', 'limits.debitAmount', 'is in another asset'],
  ['limits_exceeded', 'limits.debitAmount', 'is less than this payment'],
  ['limits_exceeded', 'limits.debitAmount', 'leaves less than this payment'],
  ['limits_exceeded', 'limits.receiveAmount', 'is in another asset'],
  ['limits_exceeded', 'limits.receiveAmount', 'is less than this payment'],
  ['limits_exceeded', 'limits.receiveAmount', 'leaves less than this payment'],
] as const

type PublicReason = (typeof publicReasons)[number]

export type PublicProblem<Refusal extends string, Path extends string> = Extract<
  PublicReason,
  readonly [Refusal, Path, string]
>[2]

/** Declines for a reason that the client learns. */
export function refusedPublicly<const Reason extends PublicReason>(
  ...[refusal, path, problem]: Reason
): Refused<Reason[0]> {
  return { ...refused(refusal, `${path} ${problem}`), details: { path, problem } }
}

export function withDetails<Refusal extends string>(
  refusal: Refused<Refusal>,
  more: JsonObject,
): Refused<Refusal> {
  return { ...refusal, details: { ...refusal.details, ...more } }
}
