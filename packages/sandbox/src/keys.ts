import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type FullJwk, jwkOf } from 'open-payments-server-testing'

/** A key with which a client signs, in the forms that SDKs take. */
export interface SandboxKey {
  /** The `keyid` of its signatures, and the `kid` in the account's `jwks.json`. */
  readonly keyId: string
  /** PKCS #8. */
  readonly privateKeyPem: string
  /** With the private member `d`. */
  readonly privateKeyJwk: FullJwk & { readonly d: string }
  readonly publicKeyJwk: FullJwk
}

export function sandboxKey(keyId: string, privateKey: KeyObject): SandboxKey {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const { d = '' } = privateKey.export({ format: 'jwk' })
  const publicKeyJwk = jwkOf({ kid: keyId, x })
  return {
    keyId,
    privateKeyPem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    privateKeyJwk: { ...publicKeyJwk, d },
    publicKeyJwk,
  }
}

export function newSandboxKey(keyId: string): SandboxKey {
  return sandboxKey(keyId, generateKeyPairSync('ed25519').privateKey)
}
