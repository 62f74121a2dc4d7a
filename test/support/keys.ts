import { createHash, createPrivateKey } from 'node:crypto'
import type { ClientKeyQuery, ClientKeys, PublicJwk } from 'open-payments-server'
import { type KeyPair, keyPairOf } from 'open-payments-server-testing'

export { jwkOf, type KeyPair, type KeyPair as TestKey } from 'open-payments-server-testing'

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Derives the key pair from a seed of 32 bytes (RFC 8032 section 5.1.5). */
export function keyFromSeed(seed: Uint8Array, kid: string): KeyPair {
  const der = Buffer.concat([pkcs8Prefix, seed])
  return keyPairOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }), kid)
}

/** Derives a key pair from a text: the same text gives the same key on every machine. */
export function keyFromText(text: string, kid: string): KeyPair {
  return keyFromSeed(createHash('sha256').update(text).digest(), kid)
}

const testKeys = new Map<string, KeyPair>()

/** Returns a key pair for a name: the same name always gives the same key. */
export function testKey(name: string): KeyPair {
  const key = testKeys.get(name) ?? keyFromText(name, `${name}-key`)
  testKeys.set(name, key)
  return key
}

/** Client keys without a network. A test can change the published keys and make them unavailable. */
export interface PublishedKeys extends ClientKeys {
  publish(walletAddress: string, ...keys: readonly PublicJwk[]): void
  unavailable: boolean
  /** Every lookup that was made. */
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
