import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openTelemetry } from '../adapters/opentelemetry.js'
import { migrate, type PostgresPool, postgresStore } from '../adapters/postgres.js'
import {
  consumeEvents,
  createAuthorizationServer,
  createResourceServer,
  createSignatureVerifier,
  createWalletAddressServer,
  guardedFetch,
  ilpPaymentMethods,
  memoryStore,
  OptionError,
  type PrivateJwk,
  remoteClientKeys,
  remoteIntrospection,
} from '../src/index.js'
import {
  arbitraries,
  expectedSpending,
  spendingProperty,
  startOfTests,
  storeConformance,
  testClient,
} from '../src/testing/index.js'

const store = memoryStore()
const walletAddresses = { find: async () => undefined }
const grantEndpoint = 'https://wallet.example/auth'
const authorization = {
  grantEndpoint,
  consentUrl: 'https://wallet.example/consent',
  store,
  clientKeys: { find: async () => undefined },
}
const resource = {
  baseUrl: 'https://wallet.example/op',
  grantEndpoint,
  store,
  introspect: async () => ({ active: false }) as const,
  walletAddresses,
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.wallet', secret: Buffer.alloc(32) }),
}
const wallet = {
  baseUrl: 'https://wallet.example',
  grantEndpoint,
  resourceServer: 'https://wallet.example/op',
  walletAddresses,
}
const introspection = {
  grantEndpoint,
  resourceServerId: 'resource server',
  key: {
    kid: 'key',
    privateKey: generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) as PrivateJwk,
  },
}
const auth = createAuthorizationServer(authorization)
const resources = createResourceServer(resource)
const database = { query: () => Promise.reject(new Error('no statement is expected')) }
const history = { start: startOfTests, scene: undefined, steps: [] }

/** Every options object of the library: a function that takes it, and a misspelled option with its hint. */
const optionsOf: readonly (readonly [
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a host without types passes any value
  take: (options: any) => unknown,
  misspelled: string,
  hint: string | undefined,
])[] = [
  [
    'createAuthorizationServer',
    (options) => createAuthorizationServer({ ...authorization, ...options }),
    'consentURL',
    'consentUrl',
  ],
  [
    'createAuthorizationServer: policy',
    (policy) => createAuthorizationServer({ ...authorization, policy }),
    'policy.requireConsent',
    'requiresConsent',
  ],
  [
    'createAuthorizationServer: signatures',
    (signatures) => createAuthorizationServer({ ...authorization, signatures }),
    'signatures.repeat',
    'repeats',
  ],
  [
    'createAuthorizationServer: resourceServers',
    (server) => createAuthorizationServer({ ...authorization, resourceServers: [server] }),
    'resourceServers.0.key',
    'keys',
  ],
  [
    'createResourceServer',
    (options) => createResourceServer({ ...resource, ...options }),
    'prices',
    'pricing',
  ],
  [
    'createResourceServer, the options of the authorization server',
    (options) => createResourceServer({ ...resource, ...options }),
    'consentUrl',
    undefined,
  ],
  [
    'createResourceServer: policy',
    (policy) => createResourceServer({ ...resource, policy }),
    'policy.quoteLifetime',
    'quoteLifetimeMs',
  ],
  [
    'createWalletAddressServer',
    (options) => createWalletAddressServer({ ...wallet, ...options }),
    'resourceServerUrl',
    'resourceServer',
  ],
  [
    'createSignatureVerifier',
    (options) => createSignatureVerifier({ url: 'https://wallet.example', ...options }),
    'strippedPrefixes',
    'strippedPrefix',
  ],
  [
    'createSignatureVerifier: signatures',
    (signatures) => createSignatureVerifier({ url: 'https://wallet.example', signatures }),
    'signatures.repeats',
    undefined,
  ],
  ['remoteClientKeys', remoteClientKeys, 'timeout', 'timeoutMs'],
  ['remoteClientKeys, with its own fetch', remoteClientKeys, 'fecth', 'fetch'],
  ['guardedFetch', guardedFetch, 'port', 'ports'],
  ['guardedFetch, an option of remoteClientKeys', guardedFetch, 'clock', undefined],
  [
    'remoteIntrospection',
    (options) => remoteIntrospection({ ...introspection, ...options }),
    'resourceServerID',
    'resourceServerId',
  ],
  [
    'remoteIntrospection: key',
    (key) => remoteIntrospection({ ...introspection, key: { ...introspection.key, ...key } }),
    'key.kId',
    'kid',
  ],
  [
    'remoteIntrospection: cache',
    (cache) => remoteIntrospection({ ...introspection, cache: { ttlMs: 1_000, ...cache } }),
    'cache.entryMax',
    'entriesMax',
  ],
  ['ilpPaymentMethods', ilpPaymentMethods, 'adressPrefix', 'addressPrefix'],
  ['consumeEvents', (options) => consumeEvents([], () => {}, options), 'poolMs', 'pollMs'],
  [
    'consumeEvents, an option of drain',
    (options) => consumeEvents([], () => {}, options),
    'signal',
    undefined,
  ],
  ['events.drain', (options) => auth.events.drain(() => {}, options), 'maxAttempts', undefined],
  ['auth.sweep', auth.sweep, 'limits', 'limit'],
  ['resources.sweep', resources.sweep, 'signals', 'signal'],
  ['postgresStore', (options) => postgresStore(database, options), 'prepared', 'prepare'],
  [
    'postgresStore.inTransaction',
    (options) => postgresStore.inTransaction(database, options),
    'shema',
    'schema',
  ],
  [
    'migrate',
    (options) => migrate(database as unknown as PostgresPool, options),
    'prepare',
    undefined,
  ],
  ['openTelemetry', openTelemetry, 'tracers', 'tracer'],
  ['testClient', testClient, 'walletAdress', 'walletAddress'],
  [
    'testClient: a request',
    (request) => testClient({ seed: 'seed', kid: 'key' }).sign(request),
    'request.nounce',
    'nonce',
  ],
  ['storeConformance', (options) => storeConformance(() => store, options), 'dueLag', 'dueLagMs'],
  [
    'spendingProperty of a store',
    (subject) => spendingProperty(fc, { store: () => store, ...subject }),
    'stepMax',
    'stepsMax',
  ],
  [
    'spendingProperty of a wallet',
    (subject) => spendingProperty(fc, { wallet: () => Promise.reject(), ...subject }),
    'mayRefuses',
    'mayRefuse',
  ],
  ['arbitraries: limits', arbitraries(fc).limits, 'assets', 'asset'],
  ['arbitraries: accessItem', arbitraries(fc).accessItem, 'arround', 'around'],
  ['arbitraries: history', arbitraries(fc).history, 'steps', 'stepsMax'],
  [
    'expectedSpending',
    (options) => expectedSpending(history as never, options),
    'intervalCount',
    'intervalCounting',
  ],
]

async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    return error
  }
}

describe('an unknown option', () => {
  test.each(optionsOf)('of %s is refused', async (_, take, misspelled, nearest) => {
    const name = misspelled.slice(misspelled.lastIndexOf('.') + 1)
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
    for (const value of [1, undefined]) {
      const error = await thrownBy(() => take({ [name]: value }))
      expect(error).toBeInstanceOf(OptionError)
      expect(error).toMatchObject({
        option: misspelled,
        message: `${misspelled} is not an option${hint}`,
      })
    }
  })
})
