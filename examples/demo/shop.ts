import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An app that acts as a client instance, with a wallet address and a published key. */
export interface Shop {
  readonly walletAddress: string
  readonly keyId: string
  readonly privateKey: KeyObject
  readonly finishUri: string
  stop(): void
}

/** Serves the shop's wallet address and key set, where the wallet finds the key. */
export async function openShop(): Promise<Shop> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const keyId = 'shop-2026'
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'EdDSA', use: 'sig' }
  const server = createServer((request, response) => {
    const found = request.url === '/shop/jwks.json'
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ? { keys: [jwk] } : {}))
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const { port } = server.address() as AddressInfo
  return {
    walletAddress: `http://localhost:${port}/shop`,
    keyId,
    privateKey,
    finishUri: `http://localhost:${port}/thank-you?order=17`,
    stop: () => void server.close(),
  }
}
