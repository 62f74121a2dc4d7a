import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openShop, type Shop } from '../../examples/demo/shop.js'
import { createIlpWallet } from '../../examples/ilp/wallet.js'
import { type CreatedWallet, startCreatedWallet } from '../support/created-wallet.js'
import { clientOf, failure, tokenWithoutConsent } from '../support/official-client.js'

let hanging: Server
let origin: string
let shop: Shop
let wallet: CreatedWallet
beforeAll(async () => {
  hanging = createServer(() => {})
  hanging.listen(0, 'localhost')
  await once(hanging, 'listening')
  origin = `http://localhost:${(hanging.address() as AddressInfo).port}`
  shop = await openShop()
  wallet = await startCreatedWallet({
    outboundTimeoutMs: 2_000,
    create(settings, database, ports) {
      const limits = { timeoutMs: 2_000, allowLoopback: true }
      const rail = { ilpAddress: 'test.wallet', peers: [], token: 'unused' }
      const assets = [{ assetCode: 'USD', assetScale: 2 }]
      return createIlpWallet(settings, database, { ...limits, ...rail, assets }, ports)
    },
  })
})
afterAll(async () => {
  shop.stop()
  hanging.closeAllConnections()
  hanging.close()
  await wallet.stop()
})

/** Much more than 2 s, so that a busy machine passes, and less than anybody waits. */
const tooLate = () => sleep(15_000, 'too late', { ref: false })

test('A receiver that hangs is refused before clients give up', async () => {
  const client = await clientOf(shop)
  const [url, walletAddress] = [wallet.baseUrl, `${wallet.baseUrl}/alice`]
  const accessToken = await tokenWithoutConsent(client, `${url}/auth`, [
    { type: 'quote', actions: ['create'] },
  ])
  const receiver = `${origin}/incoming-payments/1`
  const quoted = failure(
    client.quote.create({ url, accessToken }, { walletAddress, receiver, method: 'ilp' }),
  )
  expect(await Promise.race([quoted, tooLate()])).toMatchObject({ code: 'invalid_receiver' })
})

test('A client whose key server hangs is refused before clients give up', async () => {
  const client = await clientOf({ ...shop, walletAddress: `${origin}/shop` })
  const granted = failure(
    tokenWithoutConsent(client, `${wallet.baseUrl}/auth`, [
      { type: 'incoming-payment', actions: ['read'] },
    ]),
  )
  expect(await Promise.race([granted, tooLate()])).toMatchObject({ status: 503 })
})
