import type { ClientKeys, PublicJwk } from 'open-payments-server'
import { type KeyPair, keyFromText } from '../../packages/testing/src/key.js'
import type { ClientKeyQuery } from '../../src/ports/host.js'

export { jwkOf, type KeyPair as TestKey, keyFromSeed } from '../../packages/testing/src/key.js'

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
