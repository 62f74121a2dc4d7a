import { freePort } from 'open-payments-programs'
import { keyPairOf } from 'open-payments-server-testing'
import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { type FaultyProxy, startFaultyProxy } from 'open-payments-test-support/faulty-proxy'
import { jwkOf, testKey } from 'open-payments-test-support/keys'
import { allDeployments, startDeployment } from 'open-payments-test-support/official-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serverConformance } from '../src/index.js'
import { conformanceShop } from './support/conformance-wallet.js'
import { type Resign, resigner, serverFaults } from './support/server-faults.js'

let shop: Awaited<ReturnType<typeof conformanceShop>>

beforeAll(async () => {
  shop = await conformanceShop()
})
afterAll(() => shop.stop())

describe.each(allDeployments)('the suite for servers passes on %s', (deployment) => {
  test('with a client and an owner', async () => {
    const running = await startDeployment(deployment)
    const { alice: walletAddress, bob: receiver } = running
    const cases = serverConformance({ walletAddress, receiver, ...shop.settings })
    for (const { run } of cases) await run()
    await running.stop()
  })
})

describe('the suite for servers finds a server that', () => {
  let proxy: FaultyProxy
  let wallet: CreatedWallet
  let sign: Resign

  beforeAll(async () => {
    proxy = await startFaultyProxy()
    const port = await freePort()
    wallet = await startCreatedWallet({ port, baseUrl: proxy.origin, create: plainWallet })
    proxy.upstream = port
    await wallet.publish(`${proxy.origin}/alice`, jwkOf(testKey('alice')))
    sign = resigner(proxy.origin, keyPairOf(shop.privateKey, shop.keyId))
  })
  afterAll(async () => {
    await wallet.stop()
    await proxy.stop()
  })

  function cases() {
    const { origin } = proxy
    return serverConformance({
      walletAddress: `${origin}/alice`,
      receiver: `${origin}/bob`,
      ...shop.settings,
    })
  }

  test.each(serverFaults)('$name', async ({ found, create }) => {
    for (const id of found) {
      const wanted = cases().find((each) => each.id === id)
      if (wanted === undefined) throw new Error(`no case has the id ${id}`)
      proxy.fault = undefined
      await wanted.run()
      proxy.fault = create(sign)
      const problem = await wanted.run().then(
        () => undefined,
        (error: Error) => error.message,
      )
      proxy.fault = undefined
      expect(problem, `"${wanted.name}" does not find the fault`).toBeDefined()
      expect(problem?.startsWith(`${wanted.rule}: `), problem).toBe(true)
      expect(problem).not.toMatch(/time|fetch failed/i)
    }
  })

  test('has a fault for every case', () => {
    const found = new Set(serverFaults.flatMap((fault) => fault.found))
    expect(cases().flatMap(({ id }) => (found.has(id) ? [] : [id]))).toEqual([])
  })
})
