import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  randomUUID,
} from 'node:crypto'
import type { PublicJwk } from 'open-payments-server'

/** The key pair of a client. */
export interface KeyPair extends PublicJwk {
  readonly privateKey: KeyObject
  /** The JWK thumbprint of the public key (RFC 7638), base64url. */
  readonly thumbprint: string
}

/** A public key as a client publishes it or sends it in a request. Plain JSON. */
export type FullJwk = {
  readonly kid: string
  /** The public key, base64url. */
  readonly x: string
  readonly kty: 'OKP'
  readonly crv: 'Ed25519'
  readonly alg: 'EdDSA'
  readonly use: 'sig'
}

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Derives the key pair from a seed of 32 bytes (RFC 8032 section 5.1.5). */
export function keyFromSeed(seed: Uint8Array, kid: string): KeyPair {
  const der = Buffer.concat([pkcs8Prefix, seed])
  return keyPairOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }), kid)
}

/**
 * Returns the key pair of an Ed25519 private key.
 *
 * @example
 * ```ts
 * import { readFileSync } from 'node:fs'
 * import { createPrivateKey } from 'node:crypto'
 * import { keyPairOf } from 'open-payments-server-testing'
 *
 * const key = keyPairOf(createPrivateKey(readFileSync('key.pem')), 'key-1')
 * ```
 */
export function keyPairOf(privateKey: KeyObject, kid: string): KeyPair {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const canonical = `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`
  const thumbprint = createHash('sha256').update(canonical).digest('base64url')
  return { kid, x, privateKey, thumbprint }
}

/** Derives a key pair from a text: the same text gives the same key on every machine. */
export function keyFromText(text: string, kid: string): KeyPair {
  return keyFromSeed(createHash('sha256').update(text).digest(), kid)
}

/**
 * Returns the public key as a client publishes it.
 *
 * @example
 * ```ts
 * import { jwkOf, throwAwayKey } from 'open-payments-server-testing'
 *
 * const jwks = { keys: [jwkOf(throwAwayKey())] }
 * ```
 */
export function jwkOf({ kid, x }: PublicJwk): FullJwk {
  return { kid, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x }
}

/**
 * Returns a new key pair, which nothing else uses.
 *
 * @example
 * ```ts
 * import { signedRequest, throwAwayKey } from 'open-payments-server-testing'
 *
 * const key = throwAwayKey()
 * const url = 'https://wallet.example/quotes/1'
 * const { headers } = signedRequest({ method: 'GET', url, key, created: 1_700_000_000 })
 * ```
 */
export function throwAwayKey(): KeyPair {
  return keyFromSeed(randomBytes(32), randomUUID())
}
