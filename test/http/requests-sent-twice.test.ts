import { describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import type { HttpRequest } from '../../src/entry-adapter.js'
import { type MayPay, type MayPayAnswer, memoryStore, type Store } from '../../src/index.js'
import { manualClock } from '../support/clock.js'
import { freshPostgres, servers } from '../support/databases.js'
import { seededRandom } from '../support/random.js'
import {
  createSpendingWorld,
  grantToPay,
  newQuote,
  outgoingItem,
  pay,
  quoteToken,
  shopReceiver,
  usd,
} from '../support/spending.js'
import { errorOf } from '../support/spending-client.js'
import { type Answer, alice, answerOf, resourceServer } from '../support/world.js'

/** The stores that two processes share. */
const stores: readonly (readonly [string, boolean])[] = [
  ['memory', true],
  ['PostgreSQL', servers.PostgreSQL !== undefined],
]

const ways = ['neither a quote nor a key', 'a key', 'a quote'] as const

/** Two processes on one store, behind a link that sends each request to both, and a client that may pay 2,500. */
async function twoProcesses(store: Store, mayPay?: MayPay) {
  const clock = manualClock()
  const [one, two] = ['one', 'two'].map((name) => {
    const random = seededRandom(name)
    const resources = {
      random,
      storeTimeoutMs: 1_000,
      ...(mayPay !== undefined && { policy: { mayPay } }),
    }
    const world = createSpendingWorld({ store, clock, auth: { random }, resources })
    return { world, client: world.client() }
  })
  if (one === undefined || two === undefined) throw new Error('there is no process')
  const { client } = one
  const quoting = await quoteToken(client)
  const { token } = await grantToPay(one.world, client, [outgoingItem({ debitAmount: usd(2500) })])

  /** Signs a request for a payment of 1,000. */
  async function payment(way: (typeof ways)[number], hasNonce: boolean): Promise<HttpRequest> {
    const quoted =
      way === 'a quote' && (await newQuote(client, quoting, { debitAmount: usd(1000) }))
    clock.advance(1_000)
    const direct = { incomingPayment: shopReceiver, debitAmount: usd(1000) }
    const about = quoted ? { quoteId: quoted.body.id } : direct
    const created = Math.floor(clock.now() / 1_000)
    return client.sign({
      method: 'POST',
      url: `${resourceServer}/outgoing-payments`,
      token,
      body: JSON.stringify({ walletAddress: alice, ...about }),
      ...(way === 'a key' && { headers: [['Idempotency-Key', 'the-key'] as const] }),
      ...(!hasNonce && { parameters: [`keyid="${client.key.kid}"`, `created=${created}`] }),
    })
  }

  async function payments(): Promise<readonly string[]> {
    const found = one?.world.resources.outgoingPayments.iterate({ walletAddress: alice }) ?? []
    const ids = []
    for await (const { paymentId } of found) ids.push(paymentId)
    return ids
  }

  return {
    clock,
    client,
    token,
    payment,
    payments,
    first: async (request: HttpRequest) => answerOf(await one.world.handle(request)),
    again: async (request: HttpRequest) => answerOf(await two.world.handle(request)),
    outgoingPayments: one.world.resources.outgoingPayments,
  }
}

async function onStore(name: string, work: (store: Store) => Promise<void>): Promise<void> {
  if (name === 'memory') return work(memoryStore())
  const { pool, schema, drop } = await freshPostgres()
  try {
    await work(postgresStore(pool, { schema }))
  } finally {
    await drop()
  }
}

const withoutSpent = ({ status, body }: Answer) => {
  const { grantSpentDebitAmount: _, grantSpentReceiveAmount: __, ...content } = body
  return [status, content]
}

const cases = stores.flatMap(([name, isThere]) =>
  isThere
    ? ways.flatMap((way) => [true, false].map((hasNonce) => [name, way, hasNonce] as const))
    : [],
)

describe.each(cases)('on %s, a payment by %s, with a nonce: %s,', (name, way, hasNonce) => {
  test('that was made, whose answer is lost, and whose bytes arrive at another process, is that payment', () =>
    onStore(name, async (store) => {
      const { payment, first, again, payments } = await twoProcesses(store)
      const request = await payment(way, hasNonce)
      const lost = await first(request)
      expect(lost.status).toBe(201)
      for (let time = 0; time < 2; time++) {
        expect(withoutSpent(await again(request))).toEqual(withoutSpent(lost))
      }
      expect(await payments()).toHaveLength(1)
    }))

  test('whose bytes arrive at two processes at the same time is made once, and both answers are that payment', () =>
    onStore(name, async (store) => {
      const { payment, first, again, payments } = await twoProcesses(store)
      const request = await payment(way, hasNonce)
      const answers = await Promise.all([first(request), again(request), first(request)])
      expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1)
      expect(answers[0]?.status).toBe(201)
      expect(await payments()).toHaveLength(1)
    }))

  test('that the host has yet to decide about is busy, and then the payment', () =>
    onStore(name, async (store) => {
      let decide: (answer: MayPayAnswer) => void = () => {}
      const decision = new Promise<MayPayAnswer>((resolve) => {
        decide = resolve
      })
      let asked = 0
      const processes = await twoProcesses(store, () => {
        asked += 1
        return decision
      })
      const request = await processes.payment(way, hasNonce)
      const first = processes.first(request)
      await expect.poll(() => asked).toBe(1)
      expect(errorOf(await processes.again(request))).toEqual([503, 'busy'])
      const waiting = processes.again(request)
      decide({ ok: true })
      const made = await first
      expect(made.status).toBe(201)
      expect(withoutSpent(await waiting)).toEqual(withoutSpent(made))
      expect([asked, await processes.payments()]).toMatchObject([1, { length: 1 }])
    }))

  test('that was refused is refused again, or by a quote without a nonce decided again', () =>
    onStore(name, async (store) => {
      const { client, token, payment, first, again, ...rest } = await twoProcesses(store)
      const { body } = await pay(client, token, 2_000)
      const request = await payment(way, hasNonce)
      const refused = await first(request)
      expect(errorOf(refused)).toEqual([403, 'insufficient_grant'])
      await rest.outgoingPayments.cancel(body.id.slice(body.id.lastIndexOf('/') + 1))
      const repeated = await again(request)
      if (way === 'a quote' && !hasNonce) expect(repeated.status).toBe(201)
      else expect(repeated).toEqual(refused)
    }))

  test('whose commit took effect without an answer of the store is that payment', () =>
    onStore(name, async (store) => {
      let isLosing = false
      const losing: Store = {
        ...store,
        async commit(commit) {
          const committed = await store.commit(commit)
          if (isLosing) throw new Error('the connection is gone')
          return committed
        },
      }
      const { payment, first, again, payments } = await twoProcesses(losing)
      const request = await payment(way, hasNonce)
      isLosing = true
      const unknown = await first(request)
      isLosing = false
      expect([201, 503]).toContain(unknown.status)
      expect((await again(request)).status).toBe(201)
      expect(await payments()).toHaveLength(1)
    }))

  test('that is no longer authentic is refused as such, and is made once', () =>
    onStore(name, async (store) => {
      const { clock, payment, first, again, payments } = await twoProcesses(store)
      const request = await payment(way, hasNonce)
      expect((await first(request)).status).toBe(201)
      clock.advance(301_000)
      expect(errorOf(await again(request))).toEqual([401, 'invalid_signature'])
      expect(await payments()).toHaveLength(1)
    }))
})
