import { describe, expect, test } from 'vitest'
import {
  type AuthorizationServerOptions,
  createAuthorizationServer,
  createResourceServer,
  createSignatureVerifier,
  createWalletAddressServer,
  ilpPaymentMethods,
  memoryStore,
  type ResourceServerOptions,
  type WalletAddressServerOptions,
} from '../../src/index.js'
import { publishedKeys } from '../support/keys.js'

const authorization = {
  grantEndpoint: 'https://wallet.example/auth',
  consentUrl: 'https://wallet.example/consent',
  store: memoryStore(),
  clientKeys: publishedKeys(),
} satisfies AuthorizationServerOptions

const resource = {
  baseUrl: 'https://wallet.example/op',
  grantEndpoint: 'https://wallet.example/auth',
  store: memoryStore(),
  introspect: async () => ({ active: false }),
  walletAddresses: { find: async () => undefined },
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.wallet', secret: Buffer.alloc(32) }),
} satisfies ResourceServerOptions

const wallet = {
  baseUrl: 'https://wallet.example',
  grantEndpoint: 'https://wallet.example/auth',
  resourceServer: 'https://wallet.example/op',
  walletAddresses: { find: async () => undefined },
} satisfies WalletAddressServerOptions

const verifier = { url: 'https://wallet.example' }

/** The servers by name. Each accepts options of any type, as from a host without types. */
const servers = {
  authorization: [createAuthorizationServer, authorization],
  resource: [createResourceServer, resource],
  wallet: [createWalletAddressServer, wallet],
  verifier: [createSignatureVerifier, verifier],
} as const
type Name = keyof typeof servers

function create(name: Name, change: object = {}): unknown {
  const [make, good] = servers[name]
  return (make as (options: object) => unknown)({ ...good, ...change })
}

function expectRefused(name: Name, option: string, change: object): void {
  expect(() => create(name, change)).toThrow(
    expect.objectContaining({
      name: 'TypeError',
      code: 'ERR_INVALID_OPTION',
      option,
      message: expect.stringContaining(option),
    }),
  )
}

function without(method: string, ...others: readonly string[]): object {
  return Object.fromEntries(
    [method, ...others].map((name) => [name, name === method ? undefined : () => undefined]),
  )
}

const badUrls: readonly unknown[] = [
  undefined,
  null,
  '',
  17,
  '/auth',
  'wallet.example/auth',
  'http://wallet.example/auth',
  'http://192.168.0.1/auth',
  'ws://localhost/auth',
  'https://wallet.example/auth?tenant=1',
  'https://wallet.example/auth?',
  'https://wallet.example/auth#',
  'https://user:secret@wallet.example/auth',
  'https://wallet.example//auth',
  'https://wallet.example/au th',
]

const urlOptions: readonly (readonly [Name, string])[] = [
  ['authorization', 'grantEndpoint'],
  ['authorization', 'consentUrl'],
  ['resource', 'baseUrl'],
  ['resource', 'grantEndpoint'],
  ['wallet', 'baseUrl'],
  ['wallet', 'grantEndpoint'],
  ['wallet', 'resourceServer'],
  ['verifier', 'url'],
]

describe('valid options', () => {
  test.each(Object.keys(servers) as Name[])('create the %s server', (name) => {
    expect(() => create(name)).not.toThrow()
  })

  test.each(urlOptions)('may use loopback over http: %s %s', (name, option) => {
    for (const host of ['localhost:3000', '127.0.0.1', '[::1]:8080']) {
      expect(() => create(name, { [option]: `http://${host}/x` })).not.toThrow()
    }
  })

  test.each<[Name, string]>([
    ['authorization', '/api'],
    ['authorization', '/a/b-c_d~1.2'],
    ['authorization', ''],
    ['resource', '/api'],
    ['wallet', '/api'],
    ['verifier', '/api'],
  ])('may specify the prefix that a proxy strips: %s %j', (name, strippedPrefix) => {
    const url = `https://wallet.example${strippedPrefix}/auth`
    const change = { authorization: 'grantEndpoint', resource: 'baseUrl', wallet: 'baseUrl' }
    const option = name === 'verifier' ? 'url' : change[name]
    expect(() => create(name, { strippedPrefix, [option]: url })).not.toThrow()
  })

  test('may set every policy, including durations of zero', () => {
    const policy = {
      accessTokenLifetimeMs: 1,
      interactionLifetimeMs: 1,
      waitMs: 0,
      retryMs: 0,
      unusedLifetimeMs: 0,
      retentionMs: 0,
      requiresConsent: () => true,
      requiresFinish: () => true,
      subjectRequiresFinish: true,
      mayRequest: () => ({ ok: false }),
      interactionHash: 'base64url',
      denialRedirect: 'rfc9635',
      intervalCounting: 'repetitions',
      intervalMinMs: 1,
    }
    expect(() => create('authorization', { policy })).not.toThrow()
    const payments = { incomingPaymentExpiryDefaultMs: 5, incomingPaymentExpiryMaxMs: 5 }
    expect(() => create('resource', { policy: payments })).not.toThrow()
    const signatures = { ageMaxMs: 1, skewMaxMs: 0, repeats: 'refuse-repeat', strict: true }
    expect(() => create('authorization', { signatures })).not.toThrow()
  })

  test('may leave parts of a policy undefined', () => {
    expect(() => create('authorization', { policy: { waitMs: undefined } })).not.toThrow()
    expect(() => create('resource', { policy: undefined, signatures: undefined })).not.toThrow()
    expect(() => create('wallet', { clock: undefined, strippedPrefix: undefined })).not.toThrow()
  })
})

describe('an invalid URL', () => {
  test.each(
    urlOptions.flatMap(([name, option]) => badUrls.map((url) => [name, option, url] as const)),
  )('is rejected by the %s server as %s: %j', (name, option, url) => {
    expectRefused(name, option, { [option]: url })
  })
})

describe('an implementation by the host', () => {
  const store = ['load', 'commit', 'list', 'due', 'remove']
  const parts: readonly (readonly [Name, string, readonly string[]])[] = [
    ['authorization', 'store', store],
    ['authorization', 'clientKeys', ['find']],
    ['authorization', 'subjects', ['resolve']],
    ['authorization', 'clock', ['now']],
    ['authorization', 'random', ['getRandomValues']],
    ['resource', 'store', store],
    ['resource', 'walletAddresses', ['find']],
    ['resource', 'paymentMethods', ['detailsOf', 'paymentIdOf']],
    ['resource', 'clock', ['now']],
    ['resource', 'random', ['getRandomValues']],
    ['wallet', 'walletAddresses', ['find']],
    ['wallet', 'clock', ['now']],
    ['verifier', 'clock', ['now']],
  ]

  test('of loadAll must be a function, if there is one', () => {
    for (const name of ['authorization', 'resource'] as const) {
      expectRefused(name, 'store', { store: { ...memoryStore(), loadAll: 17 } })
    }
  })

  test.each(parts)('for the %s server must be an object with methods: %s', (name, option) => {
    for (const value of [null, 17, 'text', {}, () => undefined]) {
      expectRefused(name, option, { [option]: value })
    }
  })

  test.each(
    parts.flatMap(([name, option, methods]) =>
      methods.map((method) => [name, option, method, methods] as const),
    ),
  )('for the %s server must have the method %s.%s', (name, option, method, methods) => {
    const others = methods.filter((other) => other !== method)
    expectRefused(name, option, { [option]: without(method, ...others) })
    expectRefused(name, option, { [option]: { ...without(method, ...others), [method]: true } })
  })

  test.each<[Name, string]>([
    ['authorization', 'store'],
    ['authorization', 'clientKeys'],
    ['resource', 'store'],
    ['resource', 'introspect'],
    ['resource', 'walletAddresses'],
    ['resource', 'paymentMethods'],
    ['wallet', 'walletAddresses'],
  ])('for the %s server is required: %s', (name, option) => {
    expectRefused(name, option, { [option]: undefined })
  })

  test('may inherit its methods', () => {
    class Clock {
      now() {
        return 0
      }
    }
    expect(() => create('authorization', { clock: new Clock() })).not.toThrow()
  })

  test('allows receivers on loopback by true or false', () => {
    expect(() => create('resource', { allowLoopback: true })).not.toThrow()
    for (const allowLoopback of [null, 'yes', 1]) {
      expectRefused('resource', 'allowLoopback', { allowLoopback })
    }
  })

  test.each([null, {}, 'https://auth.example/introspect', true])(
    'to introspect tokens must be a function, not %j',
    (introspect) => {
      expectRefused('resource', 'introspect', { introspect })
    },
  )

  test.each<[Name, string]>([
    ['authorization', 'onRefusal'],
    ['authorization', 'onError'],
    ['authorization', 'rateLimit'],
    ['resource', 'onRefusal'],
    ['resource', 'onError'],
    ['resource', 'rateLimit'],
    ['wallet', 'onRefusal'],
    ['wallet', 'onError'],
    ['wallet', 'rateLimit'],
  ])('to observe the %s server must be a function: %s', (name, option) => {
    for (const value of [{}, 'log', console]) expectRefused(name, option, { [option]: value })
  })
})

const badDurations: readonly unknown[] = [
  -1,
  0.5,
  1_000.000_1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  2 ** 53,
  '600000',
  '10m',
  true,
  10n,
  {},
]

describe('a duration', () => {
  const durations: readonly (readonly [Name, string, string])[] = [
    ['authorization', 'policy', 'accessTokenLifetimeMs'],
    ['authorization', 'policy', 'interactionLifetimeMs'],
    ['authorization', 'policy', 'waitMs'],
    ['authorization', 'policy', 'retryMs'],
    ['authorization', 'policy', 'unusedLifetimeMs'],
    ['authorization', 'policy', 'retentionMs'],
    ['authorization', 'policy', 'intervalMinMs'],
    ['authorization', 'signatures', 'ageMaxMs'],
    ['authorization', 'signatures', 'skewMaxMs'],
    ['resource', 'policy', 'incomingPaymentExpiryDefaultMs'],
    ['resource', 'policy', 'incomingPaymentExpiryMaxMs'],
    ['resource', 'signatures', 'ageMaxMs'],
    ['resource', 'signatures', 'skewMaxMs'],
    ['verifier', 'signatures', 'ageMaxMs'],
    ['verifier', 'signatures', 'skewMaxMs'],
  ]

  test.each(durations)('of the %s server must be a non-negative integer: %s.%s', (...row) => {
    const [name, group, duration] = row
    for (const value of badDurations) {
      expectRefused(name, `${group}.${duration}`, { [group]: { [duration]: value } })
    }
  })

  test('of the shortest window of an interval must not be zero', () => {
    expectRefused('authorization', 'policy.intervalMinMs', { policy: { intervalMinMs: 0 } })
  })

  test('must not be null', () => {
    for (const [name, group, duration] of durations) {
      expectRefused(name, `${group}.${duration}`, { [group]: { [duration]: null } })
    }
  })

  test('after which an incoming payment expires must not exceed the maximum', () => {
    const option = 'policy.incomingPaymentExpiryDefaultMs'
    const policy = { incomingPaymentExpiryDefaultMs: 11, incomingPaymentExpiryMaxMs: 10 }
    expectRefused('resource', option, { policy })
    // The default of 30 days must not exceed the maximum either.
    expectRefused('resource', option, { policy: { incomingPaymentExpiryMaxMs: 10 } })
  })

  test('for which an outgoing payment is kept must not be shorter than the quote lifetime', () => {
    const option = 'policy.outgoingPaymentRetentionMs'
    const policy = { outgoingPaymentRetentionMs: 9, quoteLifetimeMs: 10 }
    expectRefused('resource', option, { policy })
  })

  test('after which an incoming payment expires must end within the range of dates', () => {
    const longest = Number.MAX_SAFE_INTEGER
    const policy = {
      incomingPaymentExpiryDefaultMs: longest,
      incomingPaymentExpiryMaxMs: longest,
    }
    expect(() => create('resource', { policy })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    )
  })
})

describe('a misspelt option', () => {
  test.each<[Name, string, string]>([
    ['authorization', 'policy', 'accessTokenLifetime'],
    ['authorization', 'policy', 'accessTokenLifeTimeMs'],
    ['authorization', 'policy', 'waitSeconds'],
    ['authorization', 'policy', 'requireConsent'],
    ['authorization', 'policy', 'subjectRequiresConsent'],
    ['authorization', 'policy', 'interactionHashEncoding'],
    ['authorization', 'policy', 'incomingPaymentExpiryMaxMs'],
    ['authorization', 'policy', 'constructor'],
    ['authorization', 'signatures', 'maxAgeMs'],
    ['authorization', 'signatures', 'repeat'],
    ['resource', 'policy', 'incomingPaymentExpiryMs'],
    ['resource', 'policy', 'waitMs'],
    ['resource', 'signatures', 'skewMs'],
    ['verifier', 'signatures', 'maxAgeMs'],
  ])('of the %s server is rejected: %s.%s', (...row) => {
    const [name, group, option] = row
    expectRefused(name, `${group}.${option}`, { [group]: { [option]: 1 } })
    expectRefused(name, `${group}.${option}`, { [group]: { [option]: undefined } })
  })
})

describe('a policy or signature option', () => {
  test.each<[Name, string, string]>([
    ['authorization', 'policy', 'interactionHash'],
    ['authorization', 'policy', 'denialRedirect'],
    ['authorization', 'policy', 'intervalCounting'],
    ['authorization', 'signatures', 'repeats'],
    ['resource', 'signatures', 'repeats'],
  ])('of the %s server must have a documented value: %s.%s', (name, group, option) => {
    for (const value of ['', 'hex', 'BASE64', 'accept', 'rfc', 'off', 'constructor', 1, true, {}]) {
      expectRefused(name, `${group}.${option}`, { [group]: { [option]: value } })
    }
  })

  test.each(['requiresConsent', 'requiresFinish', 'mayRequest'])(
    'named %s must be a function',
    (option) => {
      for (const value of [true, false, 'always', {}, null]) {
        expectRefused('authorization', `policy.${option}`, { policy: { [option]: value } })
      }
    },
  )

  test('named mayPay must be a function', () => {
    for (const value of [true, false, 'always', {}, null]) {
      expectRefused('resource', 'policy.mayPay', { policy: { mayPay: value } })
    }
  })

  test.each<Name>(['authorization', 'resource', 'verifier'])(
    'for strict signatures must be a boolean on the %s server',
    (name) => {
      for (const value of ['yes', 1, 0, null, () => true, {}]) {
        expectRefused(name, 'signatures.strict', { signatures: { strict: value } })
      }
    },
  )

  test('for the finish method of subjects must be a boolean', () => {
    for (const value of ['yes', 1, null, () => true, {}]) {
      const policy = { subjectRequiresFinish: value }
      expectRefused('authorization', 'policy.subjectRequiresFinish', { policy })
    }
  })
})

describe('a stripped prefix', () => {
  const names: readonly Name[] = ['authorization', 'resource', 'wallet', 'verifier']

  test.each<[string, unknown]>([
    ['does not start with a slash', 'api'],
    ['ends with a slash', '/api/'],
    ['is only a slash', '/'],
    ['is two slashes', '//'],
    ['contains two adjacent slashes', '/a//b'],
    ['contains white space', '/a b'],
    ['ends with white space', '/api '],
    ['ends with a line break', '/api\n'],
    ['contains letters beyond ASCII', '/café'],
    ['contains a query', '/api?x'],
    ['contains a fragment', '/api#x'],
    ['contains dot segments', '/api/../x'],
    ['contains escaped dot segments', '/api/%2e%2e'],
    ['is a URL', 'https://wallet.example/api'],
    ['is a number', 17],
    ['is a boolean', true],
  ])('that %s is rejected', (_, strippedPrefix) => {
    for (const name of names) expectRefused(name, 'strippedPrefix', { strippedPrefix })
  })

  test.each(names)('that the URL of the %s server does not start with is rejected', (name) => {
    // With such a prefix, the restored path would be outside the configured path, and every request
    // would get a 404.
    const options = {
      authorization: 'grantEndpoint',
      resource: 'baseUrl',
      wallet: 'baseUrl',
      verifier: 'url',
    }
    const url = 'https://wallet.example/open/auth'
    const [option, strippedPrefix] = [options[name], '/api']
    expectRefused(name, 'strippedPrefix', { [option]: url, strippedPrefix })
    expectRefused(name, 'strippedPrefix', { [option]: url, strippedPrefix: '/op' })
  })
})
