import { describe, expect, test } from 'vitest'
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
  bob,
  incomingAccess,
  type TestClient,
  type World,
} from '../support/world.js'

type Port = 'walletAddresses' | 'paymentMethods' | 'pricing' | 'mayRequest'

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
      walletAddresses: { find: (url) => through('walletAddresses', () => find(url)) },
      paymentMethods: {
        detailsOf: () => through('paymentMethods', async () => []),
        paymentIdOf: () => undefined,
      },
      pricing: { price: (request) => through('pricing', async () => listPrice(request)) },
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
  'a new incoming payment': ['walletAddresses', async (world) => newPayment(world.client())],
  'payment details': ['paymentMethods', async (world) => newPayment(world.client())],
  'a quote': [
    'pricing',
    async (world) => {
      const client = world.client()
      const token = await quoteToken(client)
      return () => newQuote(client, token)
    },
  ],
  'an outgoing payment without a quote': [
    'pricing',
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
