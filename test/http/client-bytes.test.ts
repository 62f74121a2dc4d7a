import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../src/entry-adapter.js'
import type { WalletAddress } from '../../src/index.js'
import {
  dialects,
  dotnet,
  go,
  php,
  published,
  python,
  rust,
  typescript,
} from '../support/clients/all.js'
import type { Dialect } from '../support/clients/dialect.js'
import { type Signing, type Unwritten, written } from '../support/clients/write.js'
import { createSpendingWorld, grantToPay, shopReceiver, usd } from '../support/spending.js'
import {
  type Answer,
  alice,
  answerOf,
  approvedGrant,
  bob,
  finishUri,
  grantEndpoint,
  incomingAccess,
  interactionId,
  issuedGrant,
  outgoingAccess,
  resourceServer,
  type TestClient,
  type World,
  withFinish,
} from '../support/world.js'

/** Text that encoders escape in different ways, and names that look like numbers. */
const metadata = {
  order: 'Fish & chips <large>',
  'café/zoë': 'naïve 🐟 日本 "quoted" \\ \u2028 \u0007',
  invoice: 'https://shop.example/invoices/17?lines=1&total=2',
  10: 'ten',
  9: 'nine',
  amounts: [0.5, 1e21, 12, true, null, '', [], {}],
  nested: { '<b>': { '&': '/' } },
}

/** A request to send, and a check that the server understood it. */
interface Case {
  readonly request: Unwritten
  /** The value of the body; absent for a request without content. */
  readonly value?: unknown
  readonly status: number
  readonly check: (answer: Answer) => void | Promise<void>
}

type Stage = { readonly world: World; readonly client: TestClient }

const operations: Readonly<Record<string, (stage: Stage) => Promise<Case>>> = {
  'a grant request': async ({ world, client }) => ({
    request: { method: 'POST', url: grantEndpoint },
    value: {
      client: client.client,
      access_token: { access: [outgoingAccess] },
      interact: withFinish,
    },
    status: 200,
    async check({ body }) {
      const id = interactionId(body.interact.redirect)
      expect((await world.auth.interactions.get(id))?.access).toEqual([outgoingAccess])
      const approval = { resourceOwner: 'alice', walletAddresses: [alice] }
      const approved = await world.auth.interactions.approve(id, approval)
      expect(finishUri).toContain('?')
      expect(approved).toMatchObject({ redirect: expect.stringContaining(finishUri) })
    },
  }),
  'a continuation': async ({ world, client }) => {
    const { body, interactRef } = await approvedGrant(world, client)
    const { uri, access_token } = body.continue
    return {
      request: { method: 'POST', url: uri, token: access_token.value },
      value: { interact_ref: interactRef },
      status: 200,
      check: (answer) => expect(answer.body.access_token.access).toEqual([outgoingAccess]),
    }
  },
  'a rotation with an empty object': async ({ world, client }) => ({
    ...(await rotation(world, client)),
    value: {},
  }),
  'a rotation without content': ({ world, client }) => rotation(world, client),
  'an incoming payment': async ({ world, client }) => {
    const { body } = await client.request([incomingAccess])
    const { incomingPayments } = world.resources
    return {
      request: {
        method: 'POST',
        url: `${resourceServer}/incoming-payments`,
        token: body.access_token.value,
      },
      value: { walletAddress: bob, incomingAmount: usd(100), metadata },
      status: 201,
      async check(answer) {
        expect(answer.body.metadata).toEqual(metadata)
        const id = incomingPayments.idOf(answer.body.id) ?? ''
        expect((await incomingPayments.get(id))?.metadata).toEqual(metadata)
      },
    }
  },
  'an outgoing payment': async ({ world, client }) => {
    const { token } = await grantToPay(world, client)
    const { outgoingPayments } = world.resources
    return {
      request: { method: 'POST', url: `${resourceServer}/outgoing-payments`, token },
      value: {
        walletAddress: alice,
        incomingPayment: shopReceiver,
        debitAmount: usd(100),
        metadata,
      },
      status: 201,
      async check(answer) {
        expect(answer.body.metadata).toEqual(metadata)
        const id = outgoingPayments.idOf(answer.body.id) ?? ''
        expect((await outgoingPayments.get(id))?.metadata).toEqual(metadata)
      },
    }
  },
}

async function rotation(world: World, client: TestClient): Promise<Case> {
  const { token } = await issuedGrant(world, client)
  return {
    request: { method: 'POST', url: token.manage, token: token.value },
    status: 200,
    check: (answer) => expect(answer.body.access_token.value).not.toBe(token.value),
  }
}

function setUp(): Stage {
  const world = createSpendingWorld()
  return { world, client: world.client() }
}

function writeAs(
  dialect: Dialect,
  { world, client }: Stage,
  request: Unwritten,
  signing: Pick<Signing, 'digest' | 'digestOf'> = {},
): HttpRequest {
  const created = world.clock.now() / 1000
  return written(dialect, request, { key: client.key, created, ...signing })
}

/** Returns the same JSON with one more space. */
const respaced = (text: string) => text.replace('{', '{ ')

const digests = ['sha-256', 'sha-512'] as const

describe.each(dialects)('a client that encodes like $name', (dialect) => {
  const cases = Object.entries(operations).flatMap(([name, prepare]) =>
    digests.map((digest) => ({ name, digest, prepare })),
  )

  test.each(cases)('can send $name with $digest', async ({ digest, prepare }) => {
    const stage = setUp()
    const { request, value, status, check } = await prepare(stage)
    const body = value === undefined ? {} : { body: dialect.json(value) }
    const good = writeAs(dialect, stage, { ...request, ...body }, { digest })
    const answer = answerOf(await stage.world.handle(good))
    expect([answer.status, answer.body.error]).toEqual([status, undefined])
    await check(answer)
  })

  test.each(cases.filter(({ name }) => name !== 'a rotation without content'))(
    'cannot send $name with $digest if a byte differs, and can then send the valid request',
    async ({ digest, prepare }) => {
      const stage = setUp()
      const { request, value, status } = await prepare(stage)
      const body = dialect.json(value)
      const good = writeAs(dialect, stage, { ...request, body }, { digest })
      const wrong = [
        // A server that compares the JSON instead of the bytes would accept this request.
        { ...good, body: Buffer.from(respaced(body)) },
        writeAs(dialect, stage, { ...request, body }, { digest, digestOf: respaced(body) }),
      ]
      for (const each of wrong) {
        expect(JSON.parse(Buffer.from(each.body).toString())).toEqual(value)
        expect((await stage.world.handle(each)).status).toBe(401)
      }
      expect((await stage.world.handle(good)).status).toBe(status)
    },
  )
})

test('the clients encode the same content in different ways', () => {
  const body = { url: 'https://shop.example/?a=1&b=é', n: 1e21, none: undefined }
  expect(typescript.json(body)).toBe('{"url":"https://shop.example/?a=1&b=é","n":1e+21}')
  expect(go.json(body)).toBe('{"n":1e+21,"url":"https://shop.example/?a=1\\u0026b=é"}')
  expect(php.json(body)).toBe('{"url":"https://shop.example/?a=1&b=\\u00e9","n":1.0e+21}')
  expect(python.json(body)).toBe('{"url":"https://shop.example/?a=1&b=é","n":1e+21,"none":null}')
  expect(dotnet.json(body)).toBe('{"url":"https://shop.example/?a=1&b=é","n":1E+21}')
  expect(rust.json(body)).toBe('{"url":"https://shop.example/?a=1&b=é","n":1e21}')
  for (const { json } of dialects) expect(JSON.parse(json(metadata))).toEqual(metadata)
  expect(go.json(metadata)).toMatch(/"10":"ten","9":"nine"/)
})

test.each([
  [typescript, '2026-11-22T06:36:18.400Z', '2026-11-22T06:36:18.425Z'],
  [go, '2026-11-22T06:36:18.4Z', '2026-11-22T06:36:18.425456789Z'],
  [php, '2026-11-22T06:36:18.400Z', '2026-11-22T06:36:18.425Z'],
  [python, '2026-11-22T06:36:18.400000+00:00', '2026-11-22T06:36:18.425456+00:00'],
  [dotnet, '2026-11-22T06:36:18.4+00:00', '2026-11-22T06:36:18.4254567+00:00'],
  [rust, '2026-11-22T06:36:18.400000000Z', '2026-11-22T06:36:18.425456789Z'],
])('$name encodes instants with its own number of digits', ({ instant }, tenths, nanoseconds) => {
  const second = BigInt(Date.parse('2026-11-22T06:36:18Z')) * 1_000_000n
  expect(instant(second + 400_000_000n)).toBe(tenths)
  expect(instant(second + 425_456_789n)).toBe(nanoseconds)
})

test.each(published)(
  'a strict server accepts $name only if it signs according to RFC 9421',
  async (dialect) => {
    const compatibility = { signatureFields: 'rfc9421' } as const
    const world = createSpendingWorld({ auth: { compatibility }, resources: { compatibility } })
    const stage = { world, client: world.client() }
    const access = { access: [incomingAccess] }
    const body = dialect.json({ access_token: access, client: stage.client.client })
    const request = writeAs(dialect, stage, { method: 'POST', url: grantEndpoint, body })
    const answer = answerOf(await world.handle(request))
    const code = answer.body.error?.code
    const standard = dialect.signatureForm === 'standard'
    expect([answer.status, code]).toEqual(standard ? [200, undefined] : [401, 'invalid_client'])
  },
)

describe('metadata', () => {
  test.each([
    ['numbers with a zero fraction or an exponent', '{"n":1.0,"e":1e2,"m":-0.0}'],
    [
      'escapes in uppercase and of printable characters',
      '{"\\u00E9":"\\u002F\\u0041\\uD83D\\uDC1F"}',
    ],
    ['a lone surrogate', '{"half":"\\ud83d"}'],
    ['all kinds of white space', '{\r\n\t"a" :\n[ 1 ,\t2 ] }'],
    ['names of object properties', '{"constructor":1,"toString":{"length":2},"":3}'],
  ])('keeps its value for JSON with %s', async (_, text) => {
    const { world, client } = setUp()
    const { body } = await client.request([incomingAccess])
    const url = `${resourceServer}/incoming-payments`
    const token: string = body.access_token.value
    const content = `{"walletAddress":"${bob}","metadata":${text}}`
    const request = client.sign({ method: 'POST', url, token, body: content })
    const created = answerOf(await world.handle(request))
    expect(created.status).toBe(201)
    expect(JSON.stringify(created.body.metadata)).toBe(JSON.stringify(JSON.parse(text)))
    const read = await client.getPayment(token, created.body.id)
    expect(JSON.stringify(read.body.metadata)).toBe(JSON.stringify(JSON.parse(text)))
  })
})

describe('a wallet address in a query', () => {
  const odd = "https://wallet.example/~caf%C3%A9+*(1)'!"
  const account: WalletAddress = { url: odd, assetCode: 'USD', assetScale: 2 }

  /** Creates a payment at that wallet address, and returns its id and a token to list it. */
  async function listing() {
    const walletAddresses = { find: async (url: string) => (url === odd ? account : undefined) }
    const world = createSpendingWorld({ resources: { walletAddresses } })
    const client = world.client()
    const actions = ['create', 'list'] as const
    const { body } = await client.request([{ ...incomingAccess, actions, identifier: odd }])
    const token: string = body.access_token.value
    const { body: payment } = await client.createPayment(token, { walletAddress: odd })
    return { stage: { world, client }, token, id: payment.id as string }
  }

  const collection = `${resourceServer}/incoming-payments`
  const urlIn = ({ query }: Dialect) => `${collection}?first=1&wallet-address=${query(odd)}`

  test('is escaped in different ways', () => {
    expect(new Set(dialects.map(urlIn)).size).toBe(4)
  })

  test.each(dialects)('is understood as $name escapes it', async (dialect) => {
    const { stage, token, id } = await listing()
    const request = writeAs(dialect, stage, { method: 'GET', url: urlIn(dialect), token })
    const { status, body } = answerOf(await stage.world.handle(request))
    expect([status, body.result.map((payment: { id: string }) => payment.id)]).toEqual([200, [id]])
  })

  test('is understood without escapes if it needs none', async () => {
    const { client } = setUp()
    const { body } = await client.request([{ ...incomingAccess, actions: ['create', 'list'] }])
    const token: string = body.access_token.value
    const { body: payment } = await client.createPayment(token, { walletAddress: bob })
    const url = `${collection}?wallet-address=${bob}`
    const listed = await client.send({ method: 'GET', url, token })
    expect(listed.body.result).toMatchObject([{ id: payment.id }])
  })

  test('is a different target with different escapes, and no signature is valid for both', async () => {
    const { stage, token } = await listing()
    for (const dialect of dialects) {
      const request = writeAs(dialect, stage, { method: 'GET', url: urlIn(dialect), token })
      for (const other of dialects.filter((each) => urlIn(each) !== urlIn(dialect))) {
        const url = urlIn(other).slice('https://wallet.example'.length)
        expect((await stage.world.handle({ ...request, url })).status).toBe(401)
      }
    }
  })
})
