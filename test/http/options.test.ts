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
import { invalidInput } from '../support/invalid-input.js'
import { publishedKeys } from '../support/keys.js'

const authorization = {
  grantEndpoint: 'https://wallet.example/auth',
  consentUrl: 'https://wallet.example/consent',
  store: memoryStore(),
  clientKeys: publishedKeys(),
} satisfies AuthorizationServerOptions

const resource = {
  baseUrl: 'https://wallet.example/op',
  grants: {
    grantEndpoint: 'https://wallet.example/auth',
    introspect: async () => ({ active: false }),
  },
  store: memoryStore(),
  walletAddresses: { find: async () => undefined },
  paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.wallet', secret: Buffer.alloc(32) }),
} satisfies ResourceServerOptions

const wallet = {
  baseUrl: 'https://wallet.example',
  grantEndpoint: 'https://wallet.example/auth',
  resourceServerUrl: 'https://wallet.example/op',
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
    invalidInput(option, { message: expect.stringContaining(option) }),
  )
}

/** Returns the options of which the member at a dotted path has another value. */
function changed(name: Name, path: string, value: unknown): object {
  const set = (good: unknown, names: readonly string[]): unknown => {
    const [first, ...rest] = names
    if (first === undefined) return value
    return { ...(good as object), [first]: set((good as Record<string, unknown>)?.[first], rest) }
  }
  return set(servers[name][1], path.split('.')) as object
}

function expectValueRefused(name: Name, path: string, value: unknown): void {
  expectRefused(name, path, changed(name, path, value))
}

function without(method: string, ...others: readonly string[]): object {
  return Object.fromEntries(
    [method, ...others].map((name) => [name, name === method ? undefined : () => undefined]),
  )
}

/** Every URL is read as target.test.ts tests; each option must read its own. */
const badUrls = [undefined, 17, '/auth', 'http://192.168.0.1/auth', 'https://wallet.example//auth']

const urlOptions: readonly (readonly [Name, string])[] = [
  ['authorization', 'grantEndpoint'],
  ['authorization', 'consentUrl'],
  ['resource', 'baseUrl'],
  ['resource', 'grants.grantEndpoint'],
  ['wallet', 'baseUrl'],
  ['wallet', 'grantEndpoint'],
  ['wallet', 'resourceServerUrl'],
  ['verifier', 'url'],
]

describe('valid options', () => {
  test.each(Object.keys(servers) as Name[])('create the %s server', (name) => {
    expect(() => create(name)).not.toThrow()
  })

  test.each(urlOptions)('may use loopback over http: %s %s', (name, option) => {
    for (const host of ['localhost:3000', '127.0.0.1', '[::1]:8080']) {
      expect(() => create(name, changed(name, option, `http://${host}/x`))).not.toThrow()
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
      accessTokens: { lifetimeMs: 1 },
      interactions: { lifetimeMs: 1 },
      continuation: { waitMs: 0, retryMs: 0 },
      grants: { unusedLifetimeMs: 0, retentionMs: 0 },
      intervals: { windowMinMs: 1 },
      keyBinding: 'bound',
      requiresConsent: () => true,
      requiresFinish: () => true,
      subjectRequiresFinish: true,
      mayRequest: () => ({ ok: false }),
    }
    expect(() => create('authorization', { policy })).not.toThrow()
    const payments = { incomingPayments: { expiryDefaultMs: 5, expiryMaxMs: 5 } }
    expect(() => create('resource', { policy: payments })).not.toThrow()
    const signatures = { ageMaxMs: 1, skewMaxMs: 0 }
    const signed = { repeatedRequests: 'refuse', signatureFields: 'rfc9421' }
    const compatibility = {
      ...signed,
      interactionHash: 'base64url',
      denialRedirect: 'rfc9635',
      intervalCounting: 'repetitions',
    }
    expect(() => create('authorization', { signatures, compatibility })).not.toThrow()
    expect(() => create('resource', { signatures, compatibility: signed })).not.toThrow()
  })

  test('may leave parts of a policy undefined', () => {
    const policy = { continuation: { waitMs: undefined }, grants: undefined }
    expect(() => create('authorization', { policy })).not.toThrow()
    expect(() => create('resource', { policy: undefined, signatures: undefined })).not.toThrow()
    expect(() => create('wallet', { clock: undefined, strippedPrefix: undefined })).not.toThrow()
  })
})

describe('an invalid URL', () => {
  test.each(
    urlOptions.flatMap(([name, option]) => badUrls.map((url) => [name, option, url] as const)),
  )('is rejected by the %s server as %s: %j', (name, option, url) => {
    expectValueRefused(name, option, url)
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
    ['resource', 'grants'],
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
    'for grants must be an authorization server or remoteGrants, not %j',
    (grants) => {
      expectRefused('resource', 'grants', { grants })
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

test('the clock of signatures must have a method now', () => {
  for (const name of ['authorization', 'resource'] as const) {
    for (const clock of [null, {}, Date.now]) expectValueRefused(name, 'signatures.clock', clock)
  }
})

describe('a duration', () => {
  const durations: readonly (readonly [Name, string])[] = [
    ['authorization', 'policy.accessTokens.lifetimeMs'],
    ['authorization', 'policy.interactions.lifetimeMs'],
    ['authorization', 'policy.continuation.waitMs'],
    ['authorization', 'policy.continuation.retryMs'],
    ['authorization', 'policy.grants.unusedLifetimeMs'],
    ['authorization', 'policy.grants.retentionMs'],
    ['authorization', 'policy.intervals.windowMinMs'],
    ['authorization', 'signatures.ageMaxMs'],
    ['authorization', 'signatures.skewMaxMs'],
    ['resource', 'policy.incomingPayments.expiryDefaultMs'],
    ['resource', 'policy.incomingPayments.expiryMaxMs'],
    ['resource', 'policy.incomingPayments.retentionMs'],
    ['resource', 'policy.incomingPayments.unpaidRetentionMs'],
    ['resource', 'policy.quotes.lifetimeMs'],
    ['resource', 'policy.outgoingPayments.holdMs'],
    ['resource', 'policy.outgoingPayments.retentionMs'],
    ['resource', 'signatures.ageMaxMs'],
    ['resource', 'signatures.skewMaxMs'],
    ['verifier', 'signatures.ageMaxMs'],
    ['verifier', 'signatures.skewMaxMs'],
  ]

  test.each(durations)('of the %s server must be a non-negative integer: %s', (name, duration) => {
    for (const value of badDurations) expectValueRefused(name, duration, value)
  })

  test('of the shortest window of an interval must not be zero', () => {
    expectValueRefused('authorization', 'policy.intervals.windowMinMs', 0)
  })

  test('must not be null', () => {
    for (const [name, duration] of durations) expectValueRefused(name, duration, null)
  })

  test('after which an incoming payment expires must not exceed the maximum', () => {
    const option = 'policy.incomingPayments.expiryDefaultMs'
    const policy = { incomingPayments: { expiryDefaultMs: 11, expiryMaxMs: 10 } }
    expectRefused('resource', option, { policy })
    // The default of 30 days must not exceed the maximum either.
    expectRefused('resource', option, { policy: { incomingPayments: { expiryMaxMs: 10 } } })
  })

  test('for which an outgoing payment is kept must exceed the quote lifetime, by any clock', () => {
    const option = 'policy.outgoingPayments.retentionMs'
    const policy = (retentionMs: number) => ({
      outgoingPayments: { retentionMs },
      quotes: { lifetimeMs: 10 },
    })
    expectRefused('resource', option, { policy: policy(300_009) })
    expect(() => create('resource', { policy: policy(300_010) })).not.toThrow()
  })

  test('after which an incoming payment expires must end within the range of dates', () => {
    const longest = Number.MAX_SAFE_INTEGER
    const policy = { incomingPayments: { expiryDefaultMs: longest, expiryMaxMs: longest } }
    expect(() => create('resource', { policy })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_INPUT' }),
    )
  })
})

describe('a misspelt option', () => {
  test.each<[Name, string, string]>([
    ['authorization', 'policy', 'accessToken'],
    ['authorization', 'policy.accessTokens', 'lifeTimeMs'],
    ['authorization', 'policy.continuation', 'waitSeconds'],
    ['authorization', 'policy.interactions', 'hash'],
    ['authorization', 'policy.intervals', 'count'],
    ['authorization', 'policy.grants', 'constructor'],
    ['authorization', 'policy', 'requireConsent'],
    ['authorization', 'policy', 'subjectRequiresConsent'],
    ['authorization', 'policy', 'incomingPayments'],
    ['authorization', 'policy', 'constructor'],
    ['authorization', 'signatures', 'maxAgeMs'],
    ['authorization', 'signatures', 'repeat'],
    ['resource', 'policy.incomingPayments', 'expiryMs'],
    ['resource', 'policy.quotes', 'retentionMs'],
    ['resource', 'policy', 'continuation'],
    ['resource', 'signatures', 'skewMs'],
    ['authorization', 'compatibility', 'hash'],
    ['resource', 'compatibility', 'denialRedirect'],
    ['verifier', 'compatibility', 'repeatedRequests'],
    ['verifier', 'signatures', 'maxAgeMs'],
  ])('of the %s server is rejected: %s.%s', (...row) => {
    const [name, group, option] = row
    expectValueRefused(name, `${group}.${option}`, 1)
    expectValueRefused(name, `${group}.${option}`, undefined)
  })
})

describe('an option of policy or compatibility', () => {
  test.each<[Name, string, string]>([
    ['authorization', 'compatibility', 'interactionHash'],
    ['authorization', 'compatibility', 'denialRedirect'],
    ['authorization', 'compatibility', 'intervalCounting'],
    ['authorization', 'policy', 'keyBinding'],
    ['authorization', 'compatibility', 'repeatedRequests'],
    ['resource', 'compatibility', 'repeatedRequests'],
    ['resource', 'compatibility', 'signatureFields'],
    ['verifier', 'compatibility', 'signatureFields'],
  ])('of the %s server must have a documented value: %s.%s', (name, group, option) => {
    for (const value of ['', 'hex', 'BASE64', 'allow', 'rfc', 'off', 'constructor', 1, true, {}]) {
      expectValueRefused(name, `${group}.${option}`, value)
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

  test.each(['mayPay', 'mayReceive'])('named %s must be a function', (option) => {
    for (const value of [true, false, 'always', {}, null]) {
      expectRefused('resource', `policy.${option}`, { policy: { [option]: value } })
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
