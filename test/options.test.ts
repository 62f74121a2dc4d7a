import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import {
  arbitraries,
  expectedSpending,
  spendingProperty,
  startOfTests,
  storeConformance,
  testClient,
} from 'open-payments-server-testing'
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
  InvalidInputError,
  ilpPaymentMethods,
  memoryStore,
  type PrivateJwk,
  remoteClientKeys,
  remoteGrants,
} from '../src/index.js'
import { invalidInput } from './support/invalid-input.js'

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
  store,
  grants: { grantEndpoint, introspect: async () => ({ active: false }) as const },
  walletAddresses,
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.wallet', secret: Buffer.alloc(32) }),
}
const wallet = {
  baseUrl: 'https://wallet.example',
  grantEndpoint,
  resourceServerUrl: 'https://wallet.example/op',
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

/** Every options object of the library: a function that takes it, and an option that it does not know. */
const optionsOf: readonly (readonly [
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: a host without types passes any value
  take: (options: any) => unknown,
  misspelled: string,
])[] = [
  [
    'createAuthorizationServer',
    (options) => createAuthorizationServer({ ...authorization, ...options }),
    'consentURL',
  ],
  [
    'createAuthorizationServer: policy',
    (policy) => createAuthorizationServer({ ...authorization, policy }),
    'policy.requireConsent',
  ],
  [
    'createAuthorizationServer: signatures',
    (signatures) => createAuthorizationServer({ ...authorization, signatures }),
    'signatures.repeat',
  ],
  [
    'createAuthorizationServer: resourceServers',
    (server) => createAuthorizationServer({ ...authorization, resourceServers: [server] }),
    'resourceServers.0.key',
  ],
  [
    'createResourceServer',
    (options) => createResourceServer({ ...resource, ...options }),
    'prices',
  ],
  [
    'createResourceServer, the options of the authorization server',
    (options) => createResourceServer({ ...resource, ...options }),
    'consentUrl',
  ],
  [
    'createResourceServer: policy',
    (policy) => createResourceServer({ ...resource, policy }),
    'policy.quote',
  ],
  [
    'createWalletAddressServer',
    (options) => createWalletAddressServer({ ...wallet, ...options }),
    'resourceServerURL',
  ],
  [
    'createSignatureVerifier',
    (options) => createSignatureVerifier({ url: 'https://wallet.example', ...options }),
    'strippedPrefixes',
  ],
  [
    'createSignatureVerifier: signatures',
    (signatures) => createSignatureVerifier({ url: 'https://wallet.example', signatures }),
    'signatures.repeats',
  ],
  ['remoteClientKeys', remoteClientKeys, 'timeout'],
  ['remoteClientKeys, with its own fetch', remoteClientKeys, 'fecth'],
  [
    'remoteClientKeys: ownAccounts',
    (ownAccounts) => remoteClientKeys({ ownAccounts }),
    'ownAccounts.walletAddress',
  ],
  ['guardedFetch', guardedFetch, 'port'],
  ['guardedFetch, an option of remoteClientKeys', guardedFetch, 'clock'],
  ['remoteGrants', (options) => remoteGrants({ ...introspection, ...options }), 'resourceServerID'],
  [
    'remoteGrants: key',
    (key) => remoteGrants({ ...introspection, key: { ...introspection.key, ...key } }),
    'key.kId',
  ],
  [
    'remoteGrants: cache',
    (cache) => remoteGrants({ ...introspection, cache: { ttlMs: 1_000, ...cache } }),
    'cache.entryMax',
  ],
  ['ilpPaymentMethods', ilpPaymentMethods, 'adressPrefix'],
  ['consumeEvents', (options) => consumeEvents([], () => {}, options), 'poolMs'],
  [
    'consumeEvents, an option of drain',
    (options) => consumeEvents([], () => {}, options),
    'signal',
  ],
  ['events.drain', (options) => auth.events.drain(() => {}, options), 'maxAttempts'],
  ['auth.sweep', auth.sweep, 'limits'],
  ['resources.sweep', resources.sweep, 'signals'],
  ['postgresStore', (options) => postgresStore(database, options), 'prepared'],
  [
    'postgresStore.inTransaction',
    (options) => postgresStore.inTransaction(database, options),
    'shema',
  ],
  ['migrate', (options) => migrate(database as unknown as PostgresPool, options), 'prepare'],
  ['openTelemetry', openTelemetry, 'tracers'],
  ['testClient', testClient, 'walletAdress'],
  [
    'testClient: a request',
    (request) => testClient({ seed: 'seed', kid: 'key' }).sign(request),
    'request.nounce',
  ],
  ['storeConformance', (options) => storeConformance(() => store, options), 'dueLag'],
  [
    'spendingProperty of a store',
    (subject) => spendingProperty(fc, { store: () => store, ...subject }),
    'stepMax',
  ],
  [
    'spendingProperty of a wallet',
    (subject) => spendingProperty(fc, { wallet: () => Promise.reject(), ...subject }),
    'mayRefuses',
  ],
  ['arbitraries: limits', arbitraries(fc).limits, 'assets'],
  ['arbitraries: accessItem', arbitraries(fc).accessItem, 'arround'],
  ['arbitraries: history', arbitraries(fc).history, 'steps'],
  ['expectedSpending', (options) => expectedSpending(history as never, options), 'intervalCount'],
]

async function thrownBy(work: () => unknown): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    return error
  }
}

describe('an unknown option', () => {
  test.each(optionsOf)('of %s is refused', async (_, take, misspelled) => {
    const name = misspelled.slice(misspelled.lastIndexOf('.') + 1)
    for (const value of [1, undefined]) {
      const error = await thrownBy(() => take({ [name]: value }))
      expect(error).toBeInstanceOf(InvalidInputError)
      const message = expect.stringContaining(`${misspelled} is not known: the options are `)
      expect(error).toEqual(invalidInput(misspelled, { message }))
    }
  })
})
