import { beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/stored.js'
import type { Wallet } from '../../src/index.js'
import { freshPostgres, servers } from '../support/databases.js'
import {
  createSpendingWorld,
  grantToPay,
  outgoingItem,
  pay,
  payByQuote,
  quoteToken,
  shopReceiver,
  usd,
  withKey,
} from '../support/spending.js'
import { withoutNonce } from '../support/spending-client.js'
import { alice, bob, incomingAccess, resourceServer } from '../support/world.js'

/** All texts of a JSON value. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

/** Everything that the servers gave out while payments were made in every way. */
async function givenOut() {
  const asked: string[] = []
  const world = createSpendingWorld({
    resources: {
      policy: {
        async mayPay({ outgoingPaymentId }) {
          asked.push(outgoingPaymentId)
          return { ok: true }
        },
        async mayReceive({ incomingPaymentId }) {
          asked.push(incomingPaymentId)
          return { ok: true }
        },
      },
    },
  })
  const { resources } = world
  const client = world.client()
  const bodies: unknown[] = []
  async function said<Answer extends { readonly body: unknown }>(answer: Answer): Promise<Answer> {
    bodies.push(answer.body)
    return answer
  }
  const access = [{ ...incomingAccess, actions: ['create', 'read', 'list', 'complete'] as const }]
  const granted = await said(await client.request(access))
  const receiving = granted.body.access_token.value
  const granting = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1e9) })])
  const { token } = granting
  bodies.push(granting)
  const quoting = await quoteToken(client)
  const asksConsent = { start: ['redirect'] }
  await said(await client.request([outgoingItem({ debitAmount: usd(1) })], asksConsent))
  for (let second = 0; second < 20; second++) {
    world.clock.advance(1_000)
    const invoice = await said(await client.createPayment(receiving, { walletAddress: bob }))
    await said(await client.getPayment(receiving, invoice.body.id))
    const quoted = {
      walletAddress: alice,
      receiver: shopReceiver,
      method: 'ilp',
      debitAmount: usd(10),
    }
    const quote = await said(await client.post(`${resourceServer}/quotes`, quoted, quoting))
    await said(await payByQuote(client, token, quote.body.id))
    await said(await pay(client, token, 10))
    await said(await pay(client, token, 10, {}, withKey(`key-${second}`)))
    await said(await pay(client, token, 10, {}, withoutNonce(world, client)))
    const { incomingPayments } = resources
    const forHost = { walletAddress: bob, idempotencyKey: `${second}` }
    bodies.push(await incomingPayments.create(forHost))
  }
  const list = `${resourceServer}/incoming-payments?wallet-address=${encodeURIComponent(bob)}`
  await said(await client.getPayment(receiving, list))
  const events: JsonObject[] = []
  await resources.events.drain(async ({ id: _, ...event }) => {
    events.push(event as never)
  })
  return { bodies, asked, events, resources }
}

/** The ids that hosts are told: in calls of their ports, views and events. */
function idsFor(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    /(?:[pP]ayment|quote)Id$/.test(name) && !String(member).includes('/')
      ? [String(member)]
      : idsFor(member),
  )
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const lastSegment = (url: string) => url.slice(url.lastIndexOf('/') + 1)

/** How deployed wallets look up the URL of an incoming payment: whether they read it as a payment that they can pay. */
const lookUps: Readonly<Record<string, (url: string) => boolean>> = {
  'a Rafiki, which looks up a last segment of 36 characters as a UUID of its own': (url) =>
    lastSegment(url).length !== 36 || uuid.test(lastSegment(url)),
  'a Rafiki before 1.0.0-alpha.16, whose last segment must have 36 characters': (url) =>
    lastSegment(url).length === 36,
  'the web wallet of the test network, whose URLs end in a UUID': (url) =>
    /\/[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(url),
}

describe('an id that a resource server gives out', () => {
  let given: Awaited<ReturnType<typeof givenOut>>
  let urls: readonly string[]
  let resourceUrls: readonly string[]
  let ids: readonly string[]

  beforeAll(async () => {
    given = await givenOut()
    urls = given.bodies.flatMap(textsIn).filter((text) => /^https?:/.test(text))
    const isResource = new RegExp(
      `^${resourceServer}/(?:incoming-payments|outgoing-payments|quotes)/`,
    )
    resourceUrls = urls.filter((url) => isResource.test(url))
    ids = [
      ...new Set([
        ...resourceUrls.map(lastSegment),
        ...given.asked,
        ...idsFor(given.bodies),
        ...idsFor(given.events),
      ]),
    ]
  })

  test('is in the URLs of payments and quotes of every origin', () => {
    for (const collection of ['incoming-payments', 'outgoing-payments', 'quotes']) {
      const some = resourceUrls.filter((url) => url.includes(`/${collection}/`))
      expect(new Set(some).size).toBeGreaterThanOrEqual(20)
    }
    expect(given.events.length).toBeGreaterThanOrEqual(100)
    expect(given.asked.length).toBeGreaterThanOrEqual(100)
  })

  test.each(Object.entries(lookUps))('is found by %s', (_, accepts) => {
    expect(resourceUrls.filter((url) => !accepts(url))).toEqual([])
  })

  test('alone has 36 characters at the end of a URL: others would be looked up as UUIDs', () => {
    const looked = urls.filter((url) => lastSegment(url).length === 36)
    expect(looked.filter((url) => !uuid.test(lastSegment(url)))).toEqual([])
  })

  test('is a UUID in lower case, in URLs, views, events and calls of the host', () => {
    expect(ids.filter((id) => !uuid.test(id))).toEqual([])
  })

  test('ascends with the second of its creation, and repeats none of 74 bits', () => {
    const random = ids.map((id) => id.replaceAll('-', '').slice(13))
    expect(new Set(random).size).toBe(ids.length)
    expect(ids.every((id) => /^[0-9a-f-]{14}7[0-9a-f]{3}-[89ab]/.test(id))).toBe(true)
  })

  test('is the id by which the host finds the payment', async () => {
    const {
      incomingPayments,
      outgoingPayments,
    }: Pick<Wallet['resources'], 'incomingPayments' | 'outgoingPayments'> = given.resources
    for (const [collection, payments] of [
      ['incoming-payments', incomingPayments],
      ['outgoing-payments', outgoingPayments],
    ] as const) {
      for (const url of resourceUrls.filter((each) => each.includes(`/${collection}/`))) {
        const id = payments.idOf(url)
        expect(id).toBe(lastSegment(url))
        expect(await payments.get(id ?? '')).toMatchObject({ paymentId: id })
        expect(await payments.getRecord(id ?? '')).toMatchObject({ id })
      }
    }
  })

  test.skipIf(servers.PostgreSQL === undefined)(
    'fits a column of the type uuid on PostgreSQL, and is read from it unchanged',
    async () => {
      const fresh = await freshPostgres()
      try {
        const text =
          'SELECT id::text FROM unnest($1::uuid[]) WITH ORDINALITY AS given (id, n) ORDER BY n'
        const { rows } = await fresh.pool.query(text, [ids])
        expect(rows.map(({ id }) => id)).toEqual(ids)
      } finally {
        await fresh.drop()
      }
    },
  )
})
