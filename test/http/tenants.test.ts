import {
  type ClientRequest,
  type ClientResponse,
  clientKeysOf,
  manualClock,
  type TestClient,
  testClient,
} from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import {
  type AccessItem,
  createAuthorizationServer,
  createResourceServer,
  ilpPaymentMethods,
  memoryStore,
  type Store,
} from '../../src/index.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { priceList, shopReceiver, usd } from '../support/spending.js'

const shop = () =>
  testClient({ seed: 'shop', kid: 'shop-1', walletAddress: 'https://shop.example', clock })

const clock = manualClock()

/** One of several brands that share a store. */
function createTenant(origin: string, store: Store, client: TestClient) {
  const [grantEndpoint, baseUrl] = [`${origin}/auth`, `${origin}/op`]
  const account = { url: `${origin}/alice`, assetCode: 'USD', assetScale: 2 }
  const auth = createAuthorizationServer({
    grantEndpoint,
    store,
    clock,
    recordsEvents: true,
    consentUrl: `${origin}/consent`,
    clientKeys: clientKeysOf(client),
  })
  const resources = createResourceServer({
    baseUrl,
    store,
    clock,
    recordsEvents: true,
    grants: auth,
    walletAddresses: { find: async (url) => (url === account.url ? account : undefined) },
    paymentMethods: ilpPaymentMethods({ addressPrefix: 'test.bank', secret: new Uint8Array(32) }),
    pricing: priceList,
  })
  const ask = (request: ClientRequest): Promise<ClientResponse> =>
    client.send(request.url.startsWith(`${origin}/auth`) ? auth.handle : resources.handle, request)

  async function request(access: readonly AccessItem[], interact?: object, nonce?: string) {
    const body = { client: client.client, access_token: { access }, interact }
    const answer = await ask({ method: 'POST', url: grantEndpoint, body, ...(nonce && { nonce }) })
    // biome-ignore lint/suspicious/noExplicitAny: the bodies are what the test is about
    return { status: answer.status, body: answer.body as any }
  }

  /** Requests a token for all access of a client to the only account. */
  async function tokenForAll(): Promise<string> {
    const identifier = account.url
    const interaction = await request(
      [
        { type: 'incoming-payment', actions: ['create', 'read-all', 'list-all'], identifier },
        { type: 'outgoing-payment', actions: ['create', 'read-all', 'list-all'], identifier },
        { type: 'quote', actions: ['create', 'read'] },
      ],
      { start: ['redirect'] },
    )
    const { interact, continue: continuation } = interaction.body
    const id = interact.redirect.slice(`${origin}/consent/`.length)
    await auth.interactions.approve(id, { resourceOwner: 'alice', walletAddresses: [identifier] })
    clock.advance(5_000)
    const { uri: url, access_token } = continuation
    const { body } = await ask({ method: 'POST', url, token: access_token.value })
    return (body as { access_token: { value: string } }).access_token.value
  }

  return { origin, account, auth, resources, ask, request, tokenForAll, grantEndpoint, baseUrl }
}

type Tenant = ReturnType<typeof createTenant>

function createTenants(store: Store = memoryStore()) {
  const client = shop()
  const tenants = ['https://one.example', 'https://two.example/brand'].map((origin) =>
    createTenant(origin, store, client),
  )
  const [one, two] = tenants
  if (one === undefined || two === undefined) throw new Error('there are two')
  return { store, one, two }
}

async function create(tenant: Tenant, token: string, collection: string, body: object) {
  const url = `${tenant.baseUrl}/${collection}`
  const answer = await tenant.ask({ method: 'POST', url, token, body })
  return { status: answer.status, body: answer.body as { id: string } }
}

/** Creates one record of each kind for a tenant. */
async function lived(tenant: Tenant) {
  const token = await tenant.tokenForAll()
  const walletAddress = tenant.account.url
  const incoming = await create(tenant, token, 'incoming-payments', { walletAddress })
  const asked = { walletAddress, receiver: shopReceiver, method: 'ilp', debitAmount: usd(100) }
  const quote = await create(tenant, token, 'quotes', asked)
  const outgoing = await create(tenant, token, 'outgoing-payments', {
    walletAddress,
    quoteId: quote.body.id,
  })
  return { token, incoming: incoming.body.id, quote: quote.body.id, outgoing: outgoing.body.id }
}

const lastSegment = (url: string) => url.slice(url.lastIndexOf('/') + 1)

describe('two servers on one store with different URLs', () => {
  test('list only their own payments, even for the same wallet address', async () => {
    const { one, two } = createTenants()
    const mine = await lived(one)
    await lived(two)
    const { url: walletAddress } = one.account
    const [ours, theirs] = await Promise.all(
      [one, two].map(({ resources }) => resources.incomingPayments.list({ walletAddress })),
    )
    expect(ours?.result.map(({ paymentId }) => paymentId)).toEqual([lastSegment(mine.incoming)])
    expect(theirs?.result).toEqual([])
  })

  test('count equal nonces and transfer ids separately', async () => {
    const { one, two } = createTenants()
    const access: AccessItem[] = [{ type: 'quote', actions: ['create'] }]
    expect((await one.request(access, undefined, 'nonce')).status).toBe(200)
    expect((await two.request(access, undefined, 'nonce')).status).toBe(200)
    expect((await one.request(access, undefined, 'nonce')).status, 'the second time').toBe(409)
    for (const tenant of [one, two]) {
      const { incoming } = await lived(tenant)
      const paymentId = lastSegment(incoming)
      const { incomingPayments } = tenant.resources
      const funds = { transferId: 'transfer-1', amount: usd(5) }
      expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({ ok: true })
      expect(await incomingPayments.receive(paymentId, funds)).toMatchObject({
        payment: { receivedAmount: { value: '5' } },
      })
    }
  })

  test('sweep and deliver only their own records', async () => {
    const { one, two } = createTenants()
    const mine = await lived(one)
    await lived(two)
    clock.advance(400 * 86_400_000)
    expect(await two.resources.sweep()).toMatchObject({ expired: 1, lapsed: 1 })
    await two.auth.sweep()
    expect(await one.resources.incomingPayments.get(lastSegment(mine.incoming))).toBeDefined()
    expect(
      await one.resources.outgoingPayments.getRecord(lastSegment(mine.outgoing)),
    ).toMatchObject({
      state: 'created',
    })
    const heard: string[] = []
    const hear = ({ type, at: _at, ...event }: { type: string; at: number }) =>
      void heard.push(`${type} ${JSON.stringify(event)}`)
    await two.resources.events.drain(hear)
    await two.auth.events.drain(hear)
    expect(heard.length).toBeGreaterThan(5)
    expect(heard.join()).not.toContain(lastSegment(mine.outgoing))
    expect(heard.join()).not.toContain('one.example')
  })

  test('count only their own records in a sweep', async () => {
    const { one, two } = createTenants()
    await lived(one)
    clock.advance(1_000 * 86_400_000)
    const nothing = { expired: 0, lapsed: 0, removed: 0, more: false }
    expect(await two.resources.sweep()).toEqual(nothing)
    expect(await two.auth.sweep()).toEqual(nothing)
    expect((await one.resources.sweep()).removed).toBeGreaterThan(0)
  })

  test('do not find grants and payments of each other by their ids', async () => {
    const { one, two } = createTenants()
    const mine = await lived(one)
    const { token } = await lived(two)
    const [grantId = ''] = mine.token.replace('opa_', '').split('.')
    expect(await one.auth.grants.getRecord(grantId)).toBeDefined()
    expect(await two.auth.grants.getRecord(grantId)).toBeUndefined()
    expect(await two.auth.grants.revoke(grantId)).toMatchObject({ refusal: 'grant_unknown' })
    for (const [collection, url] of [
      ['incoming-payments', mine.incoming],
      ['outgoing-payments', mine.outgoing],
      ['quotes', mine.quote],
    ] as const) {
      const foreign = `${two.baseUrl}/${collection}/${lastSegment(url)}`
      expect((await two.ask({ method: 'GET', url: foreign, token })).status, collection).toBe(404)
      const own = `${one.baseUrl}/${collection}/${lastSegment(url)}`
      expect((await one.ask({ method: 'GET', url: own, token: mine.token })).status).toBe(200)
    }
    const { incomingPayments, outgoingPayments } = two.resources
    expect(await incomingPayments.get(lastSegment(mine.incoming))).toBeUndefined()
    expect(await outgoingPayments.begin(lastSegment(mine.outgoing))).toMatchObject({
      refusal: 'payment_unknown',
    })
    const spent = { walletAddress: two.account.url, quoteId: mine.quote }
    expect((await create(two, token, 'outgoing-payments', spent)).status).toBe(404)
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('a payment from one server to the other', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh.drop())

  test('settles on both in one transaction, or on neither', async () => {
    const options = { schema: fresh.schema }
    const { one, two } = createTenants(postgresStore(fresh.pool, options))
    const outgoing = lastSegment((await lived(one)).outgoing)
    const { incoming: receiver } = await lived(two)
    expect(one.resources.incomingPayments.idOf(receiver)).toBeUndefined()
    const incoming = two.resources.incomingPayments.idOf(receiver) ?? ''
    await one.resources.outgoingPayments.begin(outgoing)
    const totals = { sentAmount: usd(100), deliveredAmount: usd(100), final: true }

    const settle = (received: number) =>
      postgresStore.transaction(
        fresh.pool,
        async (_client, store) => {
          const { outgoingPayments } = one.resources.within(store)
          const sent = await outgoingPayments.reportSent(outgoing, totals)
          if (!sent.ok) return sent
          const funds = { transferId: outgoing, amount: usd(received) }
          return two.resources.within(store).incomingPayments.receive(incoming, funds)
        },
        options,
      )
    const states = async () => [
      (await one.resources.outgoingPayments.get(outgoing))?.status,
      (await two.resources.incomingPayments.get(incoming))?.receivedAmount.value,
    ]

    expect(await settle(0)).toMatchObject({ refusal: 'amount_invalid' })
    expect(await states()).toEqual(['begun', '0'])
    expect(await settle(100)).toMatchObject({ ok: true })
    expect(await states()).toEqual(['completed', '100'])
  })
})
