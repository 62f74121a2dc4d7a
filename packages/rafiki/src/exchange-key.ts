import { createHash, createHmac } from 'node:crypto'

/** A grant of Rafiki as its client names it: by its token and the last segment of its management URI. */
export interface OldToken {
  readonly token: string
  readonly managementId: string
}

/** Derives the parts of an imported grant. */
export interface ExchangeKey {
  /** What the ids of the records of the authorization server begin with. */
  readonly namespace: string
  readonly grantId: (managementId: string) => string
  /** The secret that the holder of the old token can derive with this key. */
  readonly proof: (old: OldToken) => string
  /** The secret of the token that replaces the old one. */
  readonly newSecret: (old: OldToken) => string
  /** The random part of its management URI. */
  readonly newPath: (old: OldToken) => string
}

/**
 * Derives what an imported grant consists of from its old token, so that the old token need not be stored. All of it
 * depends on one secret of 32 bytes or more, which you delete when the migration is over.
 *
 * @param grantEndpoint that of the authorization server, with the tenant of Rafiki.
 * @throws `RangeError` for a shorter secret.
 *
 * @example
 * ```ts
 * import { exchangeKey } from 'open-payments-rafiki'
 *
 * const secret = Buffer.from(process.env['EXCHANGE_SECRET'] ?? '', 'hex')
 * const key = exchangeKey(secret, 'https://auth.wallet.example/cf5fd7d3')
 * ```
 */
export function exchangeKey(secret: Uint8Array, grantEndpoint: string): ExchangeKey {
  if (secret.length < 32) throw new RangeError('secret: must have at least 32 bytes')
  // The library finds a record by an id that begins so: see "Move to another URL" in docs/mounting.md.
  const namespace = hash(grantEndpoint.replace(/\/$/, '')).slice(0, 8)
  const derive = (...parts: readonly string[]) =>
    createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url')
  return {
    namespace,
    grantId: (managementId: string) => namespace + derive('grant', managementId).slice(0, 22),
    proof: ({ managementId, token }: OldToken) => derive('proof', managementId, token),
    newSecret: ({ managementId, token }: OldToken) => derive('token', managementId, token),
    newPath: ({ managementId, token }: OldToken) =>
      derive('path', managementId, token).slice(0, 22),
  }
}

/** Returns the SHA-256 in base64url, in which the library stores secrets. */
export function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
