import { createPrivateKey, type KeyObject } from 'node:crypto'

/** Reads an Ed25519 private key, which is text in PEM or a JWK. Returns `undefined` for anything else. */
export function privateKeyIn(content: unknown): KeyObject | undefined {
  try {
    const key =
      typeof content === 'string'
        ? createPrivateKey(content)
        : createPrivateKey({ key: content as Record<string, unknown>, format: 'jwk' })
    return key.asymmetricKeyType === 'ed25519' ? key : undefined
  } catch {
    return undefined
  }
}
