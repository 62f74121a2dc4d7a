import { describe, expect, test } from 'vitest'
import { publicReasons, resourceUrlForm } from '../../src/core/public-reasons.js'
import type {
  Limits,
  MayPayAnswer,
  MayReceiveAnswer,
  PriceAnswer,
  Pricing,
} from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'
import { bytesOf, contentDigest } from '../support/sign.js'
import {
  createSpendingWorld,
  eur,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { payingClient, quoteUrl } from '../support/spending-client.js'
import {
  type Answer,
  alice,
  answerOf,
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  resourceServer,
  type WorldOptions,
} from '../support/world.js'

const second = 1_000
const day = 86_400_000
const privateReceiver = 'https://10.0.0.1/incoming-payments/1'

async function asClient(client: unknown, key = testKey('shop')): Promise<Answer> {
  const world = createWorld()
  const shop = world.client()
  const access_token = { access: [{ type: 'quote', actions: ['create'] }] }
  return shop.post(grantEndpoint, { client, access_token }, undefined, { key })
}

const jwk = (changes: object) => asClient({ jwk: { ...jwkOf(testKey('shop')), ...changes } })

async function incoming(body: object): Promise<Answer> {
  const world = createWorld()
  const client = world.client()
  const { body: granted } = await client.request([incomingAccess])
  const asked = { walletAddress: bob, ...body }
  return client.createPayment(granted.access_token.value, asked)
}

/** The `expiresAt` of a payment that is created at the start of the tests. */
const at = (ms: number) => new Date(createWorld().clock.now() + ms).toISOString()

async function quote(asked: object, options: WorldOptions = {}): Promise<Answer> {
  const client = createSpendingWorld(options).client()
  return newQuote(client, await quoteToken(client), asked)
}

async function direct(more: object, options: WorldOptions = {}): Promise<Answer> {
  const { client, token } = await payingClient(options)
  return pay(client, token, 10, more)
}

/** Pays under these limits, as often as there are values, and returns the last answer. */
async function under(limits: Limits, ...values: readonly number[]): Promise<Answer> {
  const world = createSpendingWorld()
  const client = world.client()
  const { token } = await grantToPay(world, client, [outgoingItem(limits)])
  let answer: Answer | undefined
  for (const value of values) answer = await pay(client, token, value)
  if (answer === undefined) throw new Error('there is no payment')
  return answer
}

async function byQuote(arrange: 'expired' | 'foreign'): Promise<Answer> {
  const { world, client, token } = await payingClient()
  const walletAddress = arrange === 'foreign' ? bob : alice
  const quoteId = await quoteUrl(client, { walletAddress })
  if (arrange === 'expired') world.clock.advance(300 * second)
  return payByQuote(client, token, quoteId)
}

async function listed(): Promise<Answer> {
  const { client, token } = await payingClient()
  const url = `${resourceServer}/outgoing-payments?wallet-address=${encodeURIComponent(bob)}`
  return client.getPayment(token, url)
}

const tomorrow = `R/${at(day)}/P1D`
const amount400 = '400 invalid_amount Invalid amount'
const body400 = '400 invalid_request Invalid request body'
const client400 = '400 invalid_client Could not determine client'
const expiry400 = '400 invalid_expiry Invalid expiresAt'
const limits403 = '403 insufficient_grant unauthorized'
const foreign403 = '403 insufficient_access Insufficient Grant'
const receiver400 = '400 invalid_receiver invalid receiver'

/** How each public reason comes up: the status, code and description, which clients match, and the request. */
const causes: Readonly<Record<string, readonly [error: string, ask: () => Promise<Answer>]>> = {
  [`client ${resourceUrlForm}`]: [client400, () => asClient('https://shop.example/?app=1')],
  'client.jwk must be a JSON object': [client400, () => asClient({ jwk: 'key' })],
  'client.jwk must not contain a private key': [client400, () => jwk({ d: 'secret' })],
  'client.jwk must have kty OKP and crv Ed25519': [client400, () => jwk({ kty: 'RSA' })],
  'client.jwk must have alg EdDSA': [client400, () => jwk({ alg: undefined })],
  'client.jwk must have use sig, or no use': [client400, () => jwk({ use: 'enc' })],
  'client.jwk must have a kid of 1 to 256 characters': [client400, () => jwk({ kid: '' })],
  'client.jwk must have a canonical x that is not of small order': [
    client400,
    () => jwk({ x: 'A'.repeat(43) }),
  ],
  'client is missing': [body400, () => asClient(undefined)],
  'client must have either walletAddress or jwk': [
    body400,
    () => asClient({ walletAddress: alice, jwk: jwkOf(testKey('shop')) }),
  ],
  'walletAddress must be the identifier in the access of the token': [
    foreign403,
    () => direct({ walletAddress: bob }),
  ],
  'wallet-address must be the identifier in the access of the token': [foreign403, listed],
  'incomingAmount must be in the asset of the wallet address': [
    amount400,
    () => incoming({ incomingAmount: eur(1) }),
  ],
  'incomingAmount must be positive': [amount400, () => incoming({ incomingAmount: usd(0) })],
  'debitAmount must be in the asset of the wallet address': [
    amount400,
    () => quote({ debitAmount: eur(1) }),
  ],
  'debitAmount must be positive': [amount400, () => direct({ debitAmount: usd(0) })],
  'receiveAmount must be positive': [amount400, () => quote({ receiveAmount: usd(0) })],
  'expiresAt must be in the future': [expiry400, () => incoming({ expiresAt: at(-1) })],
  'expiresAt must be earlier': [expiry400, () => incoming({ expiresAt: at(31 * day) })],
  'receiver must be on the public internet': [
    receiver400,
    () => quote({ receiver: privateReceiver }),
  ],
  'incomingPayment must be on the public internet': [
    receiver400,
    () => direct({ incomingPayment: privateReceiver }),
  ],
  'walletAddress must be the wallet address of the quote': [
    '400 invalid_quote invalid quote',
    () => byQuote('foreign'),
  ],
  'quoteId has expired': ['400 invalid_quote invalid quote', () => byQuote('expired')],
  'limits.receiver is another receiver': [
    limits403,
    () => under({ receiver: `${shopReceiver}0`, debitAmount: usd(9) }, 1),
  ],
  'limits.interval has no window at this time': [limits403, () => under({ interval: tomorrow }, 1)],
  'limits has paid in 32 assets already': [
    limits403,
    async () => {
      let paid = 0
      const pricing: Pricing = {
        async price({ debitAmount = usd(1) }) {
          paid += 1
          const receiveAmount = { ...usd(1), assetCode: `A${paid}` }
          return { ok: true, debitAmount, receiveAmount }
        },
      }
      const { client, token } = await payingClient({ resources: { pricing } })
      for (let count = 1; count <= 32; count++) {
        expect((await pay(client, token, 1)).status).toBe(201)
      }
      return pay(client, token, 1)
    },
  ],
  'limits.debitAmount is in another asset': [limits403, () => under({ debitAmount: eur(9) }, 1)],
  'limits.debitAmount is less than this payment': [
    limits403,
    () => under({ debitAmount: usd(9) }, 10),
  ],
  'limits.debitAmount leaves less than this payment': [
    limits403,
    () => under({ debitAmount: usd(9) }, 5, 5),
  ],
  'limits.receiveAmount is in another asset': [
    limits403,
    () => under({ receiveAmount: eur(9) }, 1),
  ],
  'limits.receiveAmount is less than this payment': [
    limits403,
    () => under({ receiveAmount: usd(9) }, 10),
  ],
  'limits.receiveAmount leaves less than this payment': [
    limits403,
    () => under({ receiveAmount: usd(9) }, 5, 5),
  ],
}

const errorOf = ({ status, body }: Answer) =>
  `${status} ${body.error.code} ${body.error.description}`

describe('a public reason', () => {
  test.each(publicReasons)(
    'is in details, beside what clients match: %s, %s %s',
    async (refusal, path, problem) => {
      const [error, ask] = causes[`${path} ${problem}`] ?? []
      const answer = await ask?.()
      if (answer === undefined) throw new Error(`${refusal} is not tried`)
      expect(errorOf(answer)).toBe(error)
      expect(answer.body.error.details).toMatchObject({ path, problem })
    },
  )

  test('is in the table: none is tried that is not', () => {
    const listed = publicReasons.map(([, path, problem]) => `${path} ${problem}`)
    expect(Object.keys(causes).toSorted()).toEqual(listed.toSorted())
  })
})

describe('a part of a request that is invalid', () => {
  test('is in details, also if it is the whole body or a header', async () => {
    const { client, token } = await payingClient()
    const url = `${resourceServer}/outgoing-payments`
    const torn = await client.send({ method: 'POST', url, token, body: '{' })
    const problem = 'the body is not JSON, or exceeds a limit for JSON'
    expect(torn.body.error.details).toStrictEqual({ problem })
    const key = await pay(client, token, 1, {}, { headers: [['Idempotency-Key', 'a b']] })
    expect(key.body.error.details.problem).toContain('Idempotency-Key must be')
  })
})

const mayPay = (answer: MayPayAnswer) => ({ resources: { policy: { mayPay: () => answer } } })
const mayReceive = (answer: MayReceiveAnswer) => ({
  resources: { policy: { mayReceive: () => answer } },
})
const price = (answer: PriceAnswer) => ({ resources: { pricing: { price: async () => answer } } })

async function receive(answer: MayReceiveAnswer): Promise<Answer> {
  const client = createWorld(mayReceive(answer)).client()
  const { body } = await client.request([incomingAccess])
  return client.createPayment(body.access_token.value, { walletAddress: bob })
}

async function request(reasons: { readonly reason?: string; readonly publicReason?: string }) {
  const policy = { mayRequest: () => ({ ok: false, ...reasons }) as const }
  return createWorld({ auth: { policy } }).client().request([incomingAccess])
}

const no = { ok: false } as const
const told = { reason: 'score 12', publicReason: 'not on Sundays' }
const untold = { reason: 'score 12' }

describe('a signature that is refused before a key is looked up', () => {
  const signing: readonly (readonly [string, Parameters<ReturnType<typeof sender>>[0]])[] = [
    ['created is missing', { parameters: ['keyid="shop-key"'] }],
    ['created is too long ago', { created: 0 }],
    ['keyid is missing', { parameters: ['created=1795262400'] }],
    ['@target-uri is not covered', { components: ['"@method"'] }],
    ['Content-Digest is missing', { digest: 'none', components: ['"@method"', '"@target-uri"'] }],
  ]

  const body = JSON.stringify({
    client: 'https://shop.example',
    access_token: { access: [incomingAccess] },
  })

  function sender() {
    const { client, handle } = createWorld()
    const shop = client()
    return async (options: Partial<Parameters<typeof shop.sign>[0]>) =>
      answerOf(await handle(shop.sign({ method: 'POST', url: grantEndpoint, body, ...options })))
  }

  /** The value of the digest in the signature base, as its line in bytes. */
  const inBytes = (component: string) => ({
    [component]: `:${Buffer.from(contentDigest(bytesOf(body), 'sha-512')).toString('base64')}:`,
  })

  test.each(signing)('tells the client that %s', async (problem, options) => {
    const { status, body } = await sender()(options)
    expect(status).toBe(401)
    expect(body.error).toEqual({
      code: 'invalid_client',
      description: 'Invalid signature',
      details: { problem },
    })
  })

  test.each(['sf', 'bs'])('is none if the digest is covered by ;%s alone', async (parameter) => {
    const digest = `"content-digest";${parameter}`
    const { status, body } = await sender()({
      ...(parameter === 'bs' && { override: inBytes(digest) }),
      components: ['"@method"', '"@target-uri"', digest, '"content-length"', '"content-type"'],
    })
    expect([status, body.error]).toEqual([200, undefined])
  })
})

describe('a refusal of the host', () => {
  const refusals = {
    'mayRequest: request_not_allowed': [request, {}],
    'mayReceive: amount_too_large': [
      (own: object) => receive({ ...no, refusal: 'amount_too_large', ...own }),
      {},
    ],
    'mayReceive: payment_not_allowed': [
      (own: object) => receive({ ...no, refusal: 'payment_not_allowed', ...own }),
      {},
    ],
    'mayPay: payment_not_allowed': [
      (own: object) => direct({}, mayPay({ ...no, refusal: 'payment_not_allowed', ...own })),
      {},
    ],
    'mayPay: funds_insufficient': [
      (own: object) => direct({}, mayPay({ ...no, refusal: 'funds_insufficient', ...own })),
      {},
    ],
    'price: receiver_invalid': [
      (own: object) => quote({}, price({ ...no, refusal: 'receiver_invalid', ...own })),
      { path: 'receiver' },
    ],
    'price: receiver_invalid, of a payment without a quote': [
      (own: object) => direct({}, price({ ...no, refusal: 'receiver_invalid', ...own })),
      { path: 'incomingPayment' },
    ],
    'price: amount_missing': [
      (own: object) => quote({}, price({ ...no, refusal: 'amount_missing', ...own })),
      {},
    ],
    'price: amount_invalid': [
      (own: object) =>
        quote({ receiveAmount: usd(1) }, price({ ...no, refusal: 'amount_invalid', ...own })),
      { path: 'receiveAmount' },
    ],
  } as const

  test.each(Object.entries(refusals))(
    'is explained to the client only if the host publishes a reason: %s',
    async (_, [ask, path]) => {
      const answer = await ask(told)
      const problem = 'not on Sundays'
      expect(answer.body.error.details).toStrictEqual({ ...path, problem })
      const unexplained = await ask(untold)
      expect(errorOf(unexplained)).toBe(errorOf(answer))
      expect(unexplained.body.error).not.toHaveProperty('details')
      expect(JSON.stringify([answer.body, unexplained.body])).not.toContain('score')
    },
  )

  test('keeps minSendAmount beside its public reason', async () => {
    const tooSmall = { ...no, refusal: 'amount_too_small', minDebitAmount: usd(2) } as const
    const answer = await quote({ debitAmount: usd(1) }, price({ ...tooSmall, ...told }))
    const details = { path: 'debitAmount', problem: 'not on Sundays', minSendAmount: usd(2) }
    expect(answer.body.error.details).toStrictEqual(details)
  })

  test.each([[''], ['x'.repeat(257)], [7], [null]])(
    'with a public reason that is no text of 1 to 256 characters gets 500: %j',
    async (publicReason) => {
      const own = { publicReason } as { publicReason: string }
      const asked = [
        await request(own),
        await receive({ ...no, refusal: 'payment_not_allowed', ...own }),
        await direct({}, mayPay({ ...no, refusal: 'payment_not_allowed', ...own })),
        await quote({}, price({ ...no, refusal: 'receiver_invalid', ...own })),
      ]
      expect(asked.map(({ status }) => status)).toEqual([500, 500, 500, 500])
    },
  )
})

/** Reasons about the owner, other clients and keys: no client learns them. */
const secrets: Readonly<Record<string, () => Promise<Answer>>> = {
  'the owner paused payments': () => amended({ pausedUntil: createWorld().clock.now() + day }),
  'the owner lowered the most that a payment may debit': () => amended({ paymentMax: usd(1) }),
  'the owner chose other receivers': () => amended({ receivers: [bob] }),
  'the account lacks funds': () =>
    direct({}, mayPay({ ...no, refusal: 'funds_insufficient', reason: 'balance 9' })),
  'a quote is of another client': async () => {
    const { world, client, token } = await payingClient()
    return payByQuote(client, token, await quoteUrl(world.client('other')))
  },
  'a payment is of another client': async () => {
    const { world, client, token } = await payingClient()
    const other = await payingClientOf(world)
    return client.getPayment(token, (await pay(other.client, other.token, 1)).body.id)
  },
  'a token is revoked': async () => {
    const { world, client, grantId, token } = await payingClient()
    await world.auth.grants.revoke(grantId)
    return pay(client, token, 1)
  },
  'a client does not publish the key': () => asClient('https://shop.example', testKey('other')),
  'a client is on a private address': () => asClient('https://10.0.0.1/app'),
  'a signature is by another key': async () => {
    const { client, token } = await payingClient()
    return pay(client, token, 1, {}, { key: testKey('other') })
  },
}

async function payingClientOf(world: ReturnType<typeof createSpendingWorld>) {
  const client = world.client('other')
  return { client, ...(await grantToPay(world, client)) }
}

async function amended(conditions: Parameters<typeof amend>[1]): Promise<Answer> {
  const paying = await payingClient()
  await amend(paying, conditions)
  return pay(paying.client, paying.token, 10)
}

async function amend(
  { world, grantId }: Awaited<ReturnType<typeof payingClient>>,
  conditions: NonNullable<
    Parameters<ReturnType<typeof createSpendingWorld>['auth']['grants']['amend']>[1]['conditions']
  >,
) {
  const amendment = await world.auth.grants.amend(grantId, { conditions })
  if (!amendment.ok) throw new Error(amendment.reason)
}

describe('a private reason', () => {
  test.each(Object.entries(secrets))('is not in the response: %s', async (_, ask) => {
    const { status, body } = await ask()
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.error).not.toHaveProperty('details')
  })

  test('about the owner is one text, whatever the owner has set, and not that of a spent budget', async () => {
    const exhausted = errorOf(await under({ debitAmount: usd(9) }, 10))
    const notNow = '403 not_permitted_now The account owner does not permit this payment now'
    expect(exhausted).not.toBe(notNow)
    const accountLimits = () => [{ debitAmount: usd(9) }]
    const { client, token } = await payingClient({ resources: { policy: { accountLimits } } })
    const answers = [
      await amended({ paymentMax: usd(1) }),
      await amended({ receivers: ['https://wallet.example/bob'] }),
      await amended({ pausedUntil: 2 ** 42 }),
      await amended({ limits: [{ debitAmount: usd(9) }] }),
      await amended({ limits: [{ payments: 1, interval: tomorrow }] }),
      await pay(client, token, 10),
    ]
    for (const answer of answers) {
      expect(errorOf(answer)).toBe(notNow)
      expect(answer.body.error).not.toHaveProperty('details')
    }
  })
})
