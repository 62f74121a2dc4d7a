import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ShopKey {
  readonly keyId: string
  readonly privateKey: KeyObject
}

/** An app that acts as a client, with a wallet address and a published key. */
export interface Shop extends ShopKey {
  readonly walletAddress: string
  readonly finishUri: string
  /** Publishes a new key in the place of the first one. */
  replaceKey(keyId: string): ShopKey
  stop(): void
}

/** Serves the shop's wallet address and key set, where the wallet finds the key. */
export async function openShop(): Promise<Shop> {
  let published: object
  const newKey = (keyId: string): ShopKey => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    published = { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'EdDSA', use: 'sig' }
    return { keyId, privateKey }
  }
  const key = newKey('shop-2026')
  const server = createServer((request, response) => {
    const found = request.url === '/shop/jwks.json'
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ? { keys: [published] } : {}))
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const { port } = server.address() as AddressInfo
  return {
    walletAddress: `http://localhost:${port}/shop`,
    ...key,
    finishUri: `http://localhost:${port}/thank-you?order=17`,
    replaceKey: newKey,
    stop: () => void server.close(),
  }
}
