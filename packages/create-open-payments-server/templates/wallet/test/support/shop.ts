import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A client with a wallet address, whose key the wallet fetches. */
export interface Shop {
  readonly client: {
    readonly walletAddress: string
    readonly keyId: string
    readonly privateKey: KeyObject
  }
  /** Where owners return after consent. */
  readonly finishUri: string
  close(): void
}

export async function openShop(): Promise<Shop> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const keyId = 'shop-1'
  const key = { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'EdDSA', use: 'sig' }
  const server = createServer((request, response) => {
    const found = request.url === '/shop/jwks.json'
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ? { keys: [key] } : {}))
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    client: { walletAddress: `http://localhost:${port}/shop`, keyId, privateKey },
    finishUri: `http://localhost:${port}/thank-you?order=17`,
    close: () => void server.close(),
  }
}
