import type { Derivation, Grant, IssuedToken } from '../../core/grant/record.js'
import type { NewToken } from '../../core/grant/token.js'
import type { Random } from '../../ports/host.js'
import { deriveSecret, newUniqueText } from '../../protocol/credential.js'
import { hashText } from '../../util/hash.js'
import type { GrantingServer } from './command.js'

/** An access token with the secret that the store does not contain. */
export interface SecretToken extends IssuedToken {
  readonly secret: string
}

/** A grant after an operation, with the tokens for the response to its client. */
export interface GrantAnswer {
  readonly ok: true
  readonly grant: Grant
  /** Empty if the response contains no token. */
  readonly tokens: readonly SecretToken[]
}

/** Returns a token with this secret, of which only the hash is stored. */
export async function newToken(
  label: string | undefined,
  secret: string,
  random: Random,
): Promise<NewToken> {
  const hash = await hashText(secret)
  return { ...(label !== undefined && { label }), hash, manage: newUniqueText(random) }
}

interface DerivedToken {
  readonly token: NewToken
  readonly secret: string
}

/** Derives a token from what the client presented. With the stored salt, a retry derives the same one. */
export async function derivedToken(
  { context: { random } }: GrantingServer,
  derivationKey: string,
  salt: string,
  label: string | undefined,
): Promise<DerivedToken> {
  const secret = await deriveSecret(derivationKey, salt, label)
  return { token: await newToken(label, secret, random), secret }
}

/** Returns the tokens: new ones, or those of an earlier request whose response was lost. */
export async function withSecrets(
  grant: Grant,
  tokens: readonly IssuedToken[],
  derivationKey: string,
  derivation: Derivation | undefined,
  derivedNow: readonly DerivedToken[],
): Promise<GrantAnswer> {
  if (derivation === undefined) return { ok: true, grant, tokens: [] }
  const withSecret = async (token: IssuedToken) => {
    const now = derivedNow.find((derived) => derived.token.hash === token.hash)
    const secret = now?.secret ?? (await deriveSecret(derivationKey, derivation.salt, token.label))
    return { secret, ...token }
  }
  // An amendment may have revoked tokens before the response was repeated.
  const valid = tokens.filter(({ revokedAt }) => revokedAt === undefined)
  return { ok: true, grant, tokens: await Promise.all(valid.map(withSecret)) }
}
