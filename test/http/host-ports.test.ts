import { describe, expect, test } from 'vitest'
import {
  createWalletAddressServer,
  HostAnswerError,
  type IlpPaymentMethod,
  type PublicJwk,
  walletAddressSubjects,
} from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { jwkOf, testKey } from '../support/keys.js'
import {
  createSpendingWorld,
  grantToPay,
  listPrice,
  newQuote,
  pay,
  quoteToken,
} from '../support/spending.js'
import {
  type Answer,
  alice,
  answerOf,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  interactionId,
  origin,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

type Port = 'walletAddresses.find' | 'paymentMethods.detailsOf' | 'pricing.price' | 'mayRequest'

interface Outage {
  port?: Port
  fail: () => never | Promise<never>
}

/** Returns a world whose ports fail as `outage` says. */
function failingWorld() {
  const outage: Outage = { fail: () => Promise.reject(new Error('unused')) }
  const through = <Value>(port: Port, work: () => Value) =>
    outage.port === port ? outage.fail() : work()
  const asset = { assetCode: 'USD', assetScale: 2 }
  const accounts = [alice, bob].map((url) => ({ url, ...asset }))
  const find = async (url: string) => accounts.find((account) => account.url === url)
  const world = createSpendingWorld({
    auth: { policy: { mayRequest: () => through('mayRequest', () => ({ ok: true })) } },
    resources: {
      walletAddresses: { find: (url) => through('walletAddresses.find', () => find(url)) },
      paymentMethods: {
        detailsOf: () => through('paymentMethods.detailsOf', async () => []),
        paymentIdOf: () => undefined,
      },
      pricing: { price: (request) => through('pricing.price', async () => listPrice(request)) },
    },
  })
  return { world, outage }
}

/** Each operation that needs a port, up to the request that does. */
const operations: Record<string, [Port, (world: World) => Promise<() => Promise<Answer>>]> = {
  'a grant request': [
    'mayRequest',
    async (world) => {
      const client = world.client()
      return () => client.request([incomingAccess])
    },
  ],
  'a new incoming payment': ['walletAddresses.find', async (world) => newPayment(world.client())],
  'payment details': ['paymentMethods.detailsOf', async (world) => newPayment(world.client())],
  'a quote': [
    'pricing.price',
    async (world) => {
      const client = world.client()
      const token = await quoteToken(client)
      return () => newQuote(client, token)
    },
  ],
  'an outgoing payment without a quote': [
    'pricing.price',
    async (world) => {
      const client = world.client()
      const { token } = await grantToPay(world, client)
      return () => pay(client, token, 1)
    },
  ],
}

async function newPayment(client: TestClient) {
  const { body } = await client.request([incomingAccess])
  return () => client.createPayment(body.access_token.value, { walletAddress: bob })
}

const failures: [string, () => never | Promise<never>][] = [
  ['rejects', () => Promise.reject(new Error('hunter2: connection refused'))],
  ['rejects with an error of its driver', () => Promise.reject(new TypeError('hunter2'))],
  ['rejects with text', () => Promise.reject('hunter2')],
  [
    'throws',
    () => {
      throw new Error('hunter2')
    },
  ],
]

describe.each(Object.entries(operations))('%s', (_, [port, prepare]) => {
  test.each(failures)(
    `gets 503 with Retry-After if ${port} %s, and then succeeds`,
    async (_, fail) => {
      const { world, outage } = failingWorld()
      const send = await prepare(world)
      Object.assign(outage, { port, fail })
      const answer = await send()
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
      expect(answer.body.error.description).toBe('Temporarily unavailable')
      expect(JSON.stringify(answer.body)).not.toContain('hunter2')
      expect(world.refusals.at(-1)).toMatchObject({ refusal: 'busy', reason: `${port} failed` })
      expect(world.errors).toHaveLength(1)
      delete outage.port
      expect((await send()).status).toBeLessThan(300)
    },
  )
})

test('a wrong price is not an outage, so the client gets 500', async () => {
  const price = { debitAmount: { value: '1', assetCode: 'EUR', assetScale: 2 } }
  const pricing = {
    price: async () => ({ ok: true as const, ...price, receiveAmount: price.debitAmount }),
  }
  const world = createSpendingWorld({ resources: { pricing } })
  const client = world.client()
  const { status, headers } = await newQuote(client, await quoteToken(client))
  expect([status, headers['retry-after']]).toEqual([500, undefined])
})

const dollars = { assetCode: 'USD', assetScale: 2 }
const { kid, x } = jwkOf(testKey('shop'))

/** Expects that a client got 500 without details, and that `onError` learned what is wrong. */
function expectWrong(answer: Answer, errors: readonly unknown[], source: string, problem: string) {
  expect([answer.status, answer.headers['retry-after']]).toEqual([500, undefined])
  expect(answer.body.error.description).toBe('Internal server error')
  expect(errors).toEqual([new HostAnswerError(source, problem)])
}

describe('an account', () => {
  const wrong: [string, object, string][] = [
    ['no asset', { assetCode: undefined }, 'assetCode is missing'],
    ['a scale that is text', { assetScale: '2' }, 'assetScale has the wrong type'],
    ['a negative scale', { assetScale: -1 }, 'assetScale must be an integer from 0 to 255'],
    ['the boolean of a table that has none', { active: 0 }, 'active has the wrong type'],
    ['a name that is null', { publicName: null }, 'publicName has the wrong type'],
    ['a URL in another spelling', { url: `${bob}/` }, 'url must be canonical'],
    ...['id', 'publicName', 'assetCode', 'assetScale', 'authServer', 'resourceServer'].map(
      (name): [string, object, string] => [
        `the standard member ${name} among its own`,
        { publicProperties: { [name]: 'mine' } },
        `publicProperties must not contain ${name}`,
      ],
    ),
    ...[
      ['a list', ['mine'], 'must be an object of JSON'],
      ['a date', { since: new Date(0) }, 'must be an object of JSON'],
      ['a bigint', { balance: 1n }, 'must be an object of JSON'],
      ['an absent member', { since: undefined }, 'must be an object of JSON'],
      ['a prototype', JSON.parse('{"a":{"__proto__":1}}'), 'must be an object of JSON'],
      ['too many bytes', { text: 'x'.repeat(9_000) }, 'must not be larger than 8192 bytes'],
      [
        'too many levels',
        JSON.parse(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`),
        'must not be nested more than 8 levels deep',
      ],
    ].map(([what, publicProperties, problem]): [string, object, string] => [
      `${what} in place of public properties`,
      { publicProperties },
      `publicProperties ${problem}`,
    ]),
    [
      'a key that is not on the curve',
      { keys: [{ kid: 'key', x: 'A'.repeat(43) }] },
      'the key must have a canonical x that is not of small order',
    ],
  ]

  /** A wallet address server and a resource server on one table of accounts. */
  function setUp(find: (url: string) => Promise<unknown>) {
    const walletAddresses = { find: find as never }
    const world = createWorld({ resources: { walletAddresses } })
    const onError = (error: unknown) => void world.errors.push(error)
    const servers = { baseUrl: origin, grantEndpoint, resourceServerUrl: resourceServer }
    const wallets = createWalletAddressServer({ ...servers, walletAddresses, onError })
    const get = async (url: string) => {
      const body = new Uint8Array()
      return answerOf(await wallets.handle({ method: 'GET', url, headers: [], body }))
    }
    return { world, get }
  }

  test.each(wrong)(
    'with %s is a mistake of the host at both servers',
    async (_, change, problem) => {
      const { world, get } = setUp(async () => ({ url: bob, ...dollars, ...change }))
      expectWrong(await get('/bob'), world.errors, 'walletAddresses.find', problem)
      world.errors.length = 0
      const send = await newPayment(world.client())
      expectWrong(await send(), world.errors, 'walletAddresses.find', problem)
    },
  )

  test('that a table without case finds by another spelling does not exist', async () => {
    const rows = [{ url: alice, ...dollars }]
    const { world, get } = setUp(async (asked) =>
      rows.find(({ url }) => url.toLowerCase() === asked.toLowerCase()),
    )
    const upper = alice.replace('alice', 'ALICE')
    expect((await get('/alice')).status).toBe(200)
    expect((await get('/ALICE')).status).toBe(404)
    expect((await get('/ALICE/jwks.json')).status).toBe(404)
    const client = world.client()
    const asked = await client.request([{ ...incomingAccess, identifier: upper }])
    const token = asked.body.access_token.value
    const created = await client.createPayment(token, { walletAddress: upper })
    expect(created.body.error.code).toBe('unknown_wallet_address')
    expect(world.errors).toEqual([])
  })

  test('that is null does not exist', async () => {
    const { world, get } = setUp(async () => null)
    expect((await get('/bob')).status).toBe(404)
    const { body } = await (await newPayment(world.client()))()
    expect(body.error.code).toBe('unknown_wallet_address')
    expect(world.errors).toEqual([])
  })
})

describe('the key of a client', () => {
  /** A world whose host finds keys as given, and from which a client has a token already. */
  async function setUp(found: { key?: unknown }) {
    const find = async () => ('key' in found ? found.key : { kid, x })
    const world = createWorld({ auth: { clientKeys: { find: find as never } } })
    const client = world.client()
    const { body } = await client.request([incomingAccess])
    return { world, client, granted: body }
  }

  test.each<[string, unknown, string]>([
    ['no x', { kid }, 'x is missing'],
    [
      'a point that is not on the curve',
      { kid, x: 'A'.repeat(43) },
      'the key must have a canonical x that is not of small order',
    ],
  ])('with %s is a mistake of the host', async (_, key, problem) => {
    const found: { key?: unknown } = {}
    const { world, client, granted } = await setUp(found)
    found.key = key
    const requests = [
      () => client.request([incomingAccess]),
      () => client.rotate(granted.access_token),
      () => client.createPayment(granted.access_token.value, { walletAddress: bob }),
    ]
    for (const send of requests) {
      world.errors.length = 0
      expectWrong(await send(), world.errors, 'clientKeys.find', problem)
    }
  })

  test.each<[string, PublicJwk | null]>([
    ['has another kid, which a table without case finds,', { kid: kid.toUpperCase(), x }],
    ['is null', null],
  ])('that %s does not exist', async (_, key) => {
    const found: { key?: unknown } = {}
    const { world, client, granted } = await setUp(found)
    found.key = key
    const refused = await client.request([incomingAccess])
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_client'])
    const { value } = granted.access_token
    expect((await client.createPayment(value, { walletAddress: bob })).status).toBe(401)
    expect(world.errors).toEqual([])
  })
})

describe('payment details', () => {
  const secret = 'c2VjcmV0LW9mLXRoZS1ob3N0LW5vdC1mb3ItbG9ncyE'
  const good: IlpPaymentMethod = { type: 'ilp', ilpAddress: 'g.wallet.1', sharedSecret: secret }

  test.each<[string, unknown, string]>([
    ['no array', good, ' has the wrong type'],
    [
      'another method',
      [{ ...good, type: 'lightning' }],
      '0.type must be one of the allowed values',
    ],
    ['no address', [{ ...good, ilpAddress: '' }], '0.ilpAddress must be an ILP address'],
    [
      'an address of another scheme',
      [good, { ...good, ilpAddress: 'wallet.1' }],
      '1.ilpAddress must be an ILP address',
    ],
    [
      'an address with a space',
      [{ ...good, ilpAddress: 'g.wallet 1' }],
      '0.ilpAddress must be an ILP address',
    ],
    [
      'an address with an empty segment',
      [{ ...good, ilpAddress: 'g.wallet..1' }],
      '0.ilpAddress must be an ILP address',
    ],
    [
      'an address of 1024 characters',
      [{ ...good, ilpAddress: `g.${'a'.repeat(1_022)}` }],
      '0.ilpAddress must have at most 1023 characters',
    ],
    ...[`${secret}=`, `${secret}+`, 'A', '', Buffer.from(secret)].map(
      (sharedSecret): [string, unknown, string] => [
        `the secret ${JSON.stringify(sharedSecret).slice(0, 60)}`,
        [{ ...good, sharedSecret }],
        typeof sharedSecret === 'string'
          ? '0.sharedSecret must be base64url without padding'
          : '0.sharedSecret has the wrong type',
      ],
    ),
  ])('with %s are a mistake of the host', async (_, methods, problem) => {
    const paymentMethods = { detailsOf: async () => methods as never, paymentIdOf: () => undefined }
    const world = createWorld({ resources: { paymentMethods } })
    const answer = await (await newPayment(world.client()))()
    expectWrong(answer, world.errors, 'paymentMethods.detailsOf', problem)
    expect(String(world.errors)).not.toContain(secret)
    expect(JSON.stringify(world.refusals)).not.toContain(secret)
  })

  test('at the limits are passed on, without members that the specification does not know', async () => {
    const longest = { ...good, ilpAddress: `test3.${'a'.repeat(1_017)}`, sharedSecret: 'ab' }
    const paymentMethods = {
      detailsOf: async () => [good, { ...longest, internalId: 7 }],
      paymentIdOf: () => undefined,
    }
    const world = createWorld({ resources: { paymentMethods } })
    const { body } = await (await newPayment(world.client()))()
    expect(body.methods).toEqual([good, longest])
  })
})

describe('a subject', () => {
  async function approved(resolve: () => Promise<unknown>) {
    const world = createWorld({ auth: { subjects: { resolve: resolve as never } } })
    const client = world.client()
    const subject = { sub_ids: [{ id: alice, format: 'uri' }] }
    const asked = await client.post(grantEndpoint, {
      client: client.client,
      subject,
      interact: withFinish,
    })
    const id = interactionId(asked.body.interact.redirect)
    return world.auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [alice] })
  }

  test.each<[string, unknown, string]>([
    ['another format', { id: alice, format: 'email' }, 'format must be one of the allowed values'],
    [
      'a relative URI',
      { id: 'alice', format: 'uri' },
      'id must be an absolute URI without userinfo',
    ],
    ['no id', { format: 'uri' }, 'id is missing'],
  ])(
    'with %s is a mistake of the host, and the request stays open',
    async (_, subject, problem) => {
      await expect(approved(async () => subject)).rejects.toEqual(
        new HostAnswerError('subjects.resolve', problem),
      )
    },
  )

  test('that is null is another person', async () => {
    expect(await approved(async () => null)).toMatchObject({ refusal: 'not_the_owner' })
  })
})

test.each(['requiresConsent', 'requiresFinish'])(
  'a rule %s that returns no boolean grants nothing',
  async (rule) => {
    for (const answer of [undefined, null, 0, Promise.resolve(false)]) {
      const auth = { policy: { [rule]: () => answer }, subjects: walletAddressSubjects }
      const world = createWorld({ auth, clock: manualClock() })
      const refused = await world.client().request([outgoingAccess], withFinish)
      expectWrong(refused, world.errors, `policy.${rule}`, 'it must be a boolean')
    }
  },
)

test('A request that waits until its signature has expired gets 503, and the reason says so', async () => {
  const clock = manualClock()
  const mayRequest = () => {
    clock.advance(600_000)
    return { ok: true } as const
  }
  const world = createWorld({
    clock,
    auth: { policy: { mayRequest }, compatibility: { repeatedRequests: 'refuse' } },
  })
  const { status, body } = await world.client().request([incomingAccess])
  expect([status, body.error.code]).toEqual([503, 'request_denied'])
  expect(world.refusals.at(-1)).toMatchObject({
    refusal: 'busy',
    reason: 'the signature expired before its operation was committed',
  })
})
