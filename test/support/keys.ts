import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { ClientKeyQuery, ClientKeys, PublicJwk } from '../../src/index.js'

/** A key pair of a client instance. */
export interface TestKey extends PublicJwk {
  readonly privateKey: KeyObject
  readonly thumbprint: string
}

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The key pair that a seed of 32 bytes leads to (RFC 8032 section 5.1.5). */
export function keyFromSeed(seed: Uint8Array, kid: string): TestKey {
  const der = Buffer.concat([pkcs8Prefix, seed])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const canonical = `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`
  const thumbprint = createHash('sha256').update(canonical).digest('base64url')
  return { kid, x, privateKey, thumbprint }
}

/** A key pair by name: the same name is the same key. */
export function testKey(name: string): TestKey {
  return keyFromSeed(createHash('sha256').update(name).digest(), `${name}-key`)
}

/** The full JWK of a public key, as a client instance publishes it or brings it along. */
export function jwkOf({ kid, x }: PublicJwk) {
  return { kid, kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', x }
}

/** Client keys without a network: what is published can be changed, and can be made unavailable. */
export interface PublishedKeys extends ClientKeys {
  publish(walletAddress: string, ...keys: readonly PublicJwk[]): void
  unavailable: boolean
  /** Every question that was asked. */
  readonly asked: ClientKeyQuery[]
}

export function publishedKeys(): PublishedKeys {
  const sets = new Map<string, readonly PublicJwk[]>()
  const asked: ClientKeyQuery[] = []
  return {
    unavailable: false,
    asked,
    publish: (walletAddress, ...keys) => void sets.set(walletAddress, keys),
    async find(query) {
      asked.push(query)
      if (this.unavailable) throw new Error('the key server does not answer')
      const key = sets.get(query.walletAddress)?.find(({ kid }) => kid === query.kid)
      return key && { kid: key.kid, x: key.x }
    },
  }
}
