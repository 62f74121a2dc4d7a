import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mayPay, pricing } from '../../examples/payment-limits/own-servers.js'
import {
  createAuthorizationServer,
  createResourceServer,
  memoryStore,
  type Store,
} from '../../src/index.js'
import {
  type SpendingPorts,
  type SpendingScene,
  type SpendingServers,
  spendingProperty,
} from '../../src/testing/index.js'
import { runs } from '../support/runs.js'

const usd = { assetCode: 'USD', assetScale: 2 }
const url = 'https://wallet.example/pay/alice'
const scene: SpendingScene = {
  walletAddress: url,
  asset: usd,
  receivers: [
    {
      url: 'https://bank.example/incoming-payments/1',
      asset: { assetCode: 'EUR', assetScale: 2 },
      unitPrice: 2n,
    },
  ],
}

/** Servers behind a proxy that removes a prefix, with tokens that expire after a second. */
function serversOn(store: Store, { clock, clientKeys, failing }: SpendingPorts): SpendingServers {
  const grantEndpoint = 'https://wallet.example/pay/auth'
  const baseUrl = 'https://wallet.example/pay/op'
  const shared = { store: failing(store), clock, grantEndpoint, strippedPrefix: '/pay' }
  const authorizationServer = createAuthorizationServer({
    ...shared,
    clientKeys,
    consentUrl: 'https://wallet.example/pay/consent',
    policy: { accessTokenLifetimeMs: 1_000 },
  })
  const resourceServer = createResourceServer({
    ...shared,
    baseUrl,
    introspect: authorizationServer.introspect,
    walletAddresses: { find: async (each) => (each === url ? { url, ...usd } : undefined) },
    paymentMethods: { detailsOf: async () => [], paymentIdOf: () => undefined },
    pricing,
    policy: { mayPay },
  })
  return { authorizationServer, resourceServer, grantEndpoint, baseUrl, strippedPrefix: '/pay' }
}

describe('the servers of a host', () => {
  test('keep every limit, with one store for all histories, a stripped prefix and short-lived tokens', async () => {
    const store = memoryStore()
    const servers = async (ports: SpendingPorts) => serversOn(store, ports)
    await fc.assert(spendingProperty(fc, { servers, scene }), { numRuns: runs(400) })
  })

  test('are closed after each history', async () => {
    const steps: string[] = []
    const servers = (ports: SpendingPorts) => {
      steps.push('created')
      return { ...serversOn(memoryStore(), ports), close: () => void steps.push('closed') }
    }
    await fc.assert(spendingProperty(fc, { servers, scene }), { numRuns: 2 })
    expect(steps).toEqual(['created', 'closed', 'created', 'closed'])
  })
})

test.each([
  ['store', { store: memoryStore() }],
  ['servers', { servers: {}, scene }],
  ['wallet', { wallet: undefined, scene }],
])('%s must be a function', (name, subject) => {
  expect(() => spendingProperty(fc, subject as never)).toThrow(`${name} must be a function`)
})
