import { randomUUID } from 'node:crypto'
import type { Limits } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import { type FreshPostgres, freshPostgres, servers } from 'open-payments-test-support/databases'
import {
  createSpendingWorld,
  euroReceiver,
  outgoingItem,
  pay,
  shopReceiver,
  usd,
} from 'open-payments-test-support/spending'
import { errorOf, spentUnder } from 'open-payments-test-support/spending-client'
import {
  alice,
  answerOf,
  bob,
  grantEndpoint,
  type TestClient,
  type World,
} from 'open-payments-test-support/world'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exchangeKey, importGrants, rafikiWalletAddresses, tokenExchange } from '../src/index.js'
import { type OldGrant, type OldPayment, type RafikiTables, rafikiTables } from './rafiki-tables.js'

const day = 86_400_000
const oldServer = 'https://auth.wallet.example'
const key = exchangeKey(Buffer.alloc(32, 9), grantEndpoint)
const owner = { resourceOwner: 'alice', walletAddresses: [alice] }

describe.skipIf(servers.PostgreSQL === undefined)('migrating from Rafiki on PostgreSQL', () => {
  let database: FreshPostgres
  let rafiki: RafikiTables
  let world: World
  let client: TestClient
  let exchange: ReturnType<typeof tokenExchange>

  beforeAll(async () => {
    database = await freshPostgres()
    const { schema } = database
    const tables = database.connect({ options: `-c search_path=${schema}`, max: 1 })
    rafiki = await rafikiTables(tables)
    const store = postgresStore(database.pool, { schema })
    world = createSpendingWorld({ store })
    client = world.client()
    const { clientKeys, clock, auth } = world
    const { grants } = auth
    exchange = tokenExchange({ oldServer, grantEndpoint, store, clientKeys, grants, key, clock })
    old = tables
  })
  afterAll(() => database?.drop())

  let old: ReturnType<FreshPostgres['connect']>
  const now = () => world.clock.now()
  const ago = (ms: number) => new Date(now() - ms)

  /** Limits whose window has been open for ten days. */
  const monthly = (value: number): Limits => ({
    debitAmount: usd(value),
    interval: `R11/${ago(40 * day).toISOString()}/P30D`,
  })

  /** Creates a grant in Rafiki with payments, and imports all that is open. */
  async function imported(
    given: Partial<OldGrant> = {},
    payments: readonly Partial<OldPayment>[] = [],
  ) {
    const grant = await rafiki.grant({
      client: `${client.client}`,
      createdAt: ago(40 * day),
      access: [outgoingItem(monthly(10_000))],
      ...given,
    })
    for (const payment of payments) {
      const defaults = { value: 1_000, createdAt: ago(day), receiver: shopReceiver }
      await rafiki.payment(grant.id, { ...defaults, ...payment })
    }
    const options = { store: world.store, key, ownerOf: async () => owner }
    const results = await importGrants({ auth: old, backend: old }, now(), options)
    return { ...grant, result: results.get(grant.id) }
  }

  type Old = Pick<Awaited<ReturnType<typeof imported>>, 'token' | 'managementId'>

  /** The client rotates its old token where Rafiki told it to. */
  async function exchanged({ token, managementId }: Old, by = client, method = 'POST') {
    const url = `${oldServer}/token/${managementId}`
    return answerOf(await exchange(by.sign({ method, url, token })))
  }

  test('gives a client a token of the library for its old one, which it rotates and uses', async () => {
    const grant = await imported()
    const { status, body } = await exchanged(grant)
    expect(status).toBe(200)
    expect(body.access_token).toEqual({
      value: expect.stringMatching(/^opa_[\w-]+\.[\w-]{43}$/),
      manage: expect.stringContaining(`${grantEndpoint}/token/`),
      expires_in: 600,
      access: [outgoingItem(monthly(10_000))],
    })
    expect((await pay(client, body.access_token.value, 1_000)).status).toBe(201)

    const rotated = await client.rotate(body.access_token)
    expect(rotated.status).toBe(200)
    const { value } = rotated.body.access_token
    expect((await pay(client, value, 1_000)).status).toBe(201)
    expect(await spentUnder(client, value)).toMatchObject({ spentDebitAmount: usd(2_000) })
  })

  test('gives the same token again while the client has not rotated it', async () => {
    const grant = await imported()
    const first = await exchanged(grant)
    expect((await exchanged(grant)).body).toEqual(first.body)
    expect((await client.rotate(first.body.access_token)).status).toBe(200)
    expect(errorOf(await exchanged(grant))).toEqual([404, 'invalid_rotation'])
  })

  test('gives concurrent exchanges the same token', async () => {
    const grant = await imported()
    const answers = await Promise.all([1, 2, 3, 4].map(() => exchanged(grant)))
    expect(new Set(answers.map(({ body }) => body.access_token?.value)).size).toBe(1)
  })

  test('exchanges nothing without the token, or without the key of the client', async () => {
    const grant = await imported()
    const { token, managementId } = grant
    const other = world.client('other')
    const unknown = [
      await exchanged({ token: 'A'.repeat(20), managementId }),
      await exchanged({ token, managementId: randomUUID() }),
    ]
    expect(unknown.map(errorOf)).toEqual([
      [404, 'invalid_rotation'],
      [404, 'invalid_rotation'],
    ])
    expect(errorOf(await exchanged(grant, other))).toEqual([401, 'invalid_client'])
    const elsewhere = client.sign({ method: 'POST', url: `${oldServer}/token/x`, token })
    const moved = { ...elsewhere, url: `/token/${managementId}` }
    expect(errorOf(answerOf(await exchange(moved)))).toEqual([401, 'invalid_client'])
    expect((await exchanged(grant)).status).toBe(200)
  })

  test('revokes the grant when the client deletes its old token', async () => {
    const grant = await imported()
    const token = (await exchanged(grant)).body.access_token
    expect((await exchanged(grant, client, 'DELETE')).status).toBe(204)
    expect(errorOf(await pay(client, token.value, 1))).toEqual([401, 'invalid_token'])
    expect(errorOf(await exchanged(grant))).toEqual([404, 'invalid_rotation'])
  })

  test('shows the grant to its owner, who revokes it before the client returns', async () => {
    const grant = await imported()
    const grantId = grant.result?.ok ? grant.result.value : ''
    const listed = []
    for await (const each of world.auth.grants.iterate({ resourceOwner: 'alice' })) {
      if (each.grantId === grantId) listed.push(each)
    }
    expect(listed).toMatchObject([{ client: client.client, status: 'approved' }])
    expect(await world.auth.grants.revokeAll({ client: `${client.client}` })).toBeGreaterThan(0)
    expect(errorOf(await exchanged(grant))).toEqual([404, 'invalid_rotation'])
  })

  test.each([
    ['what was paid in the open window', [{ value: 7_000 }], 3_000],
    ['payments in progress', [{ value: 7_000, state: 'SENDING' }], 3_000],
    ['payments that are not funded', [{ value: 7_000, state: 'FUNDING' }], 3_000],
    ['failed payments, of which a part may have been sent', [{ state: 'FAILED' }], 9_000],
    ['several payments', [{ value: 4_000 }, { value: 2_500 }], 3_500],
    ['payments to receivers in other assets', [{ receivedIn: 'EUR' as const }, {}], 8_000],
    ['no cancelled payments', [{ value: 7_000, state: 'CANCELLED' }], 10_000],
    ['everything, if more was spent than the limit', [{ value: 9_000 }, { value: 9_000 }], 0],
  ])('counts %s', async (_, payments, left) => {
    const grant = await imported({}, payments)
    const { value } = (await exchanged(grant)).body.access_token
    expect(errorOf(await pay(client, value, left + 1))).toEqual([403, 'insufficient_grant'])
    if (left > 0) expect((await pay(client, value, left)).status).toBe(201)
    expect(errorOf(await pay(client, value, 1))).toEqual([403, 'insufficient_grant'])
  })

  test('counts nothing of earlier windows', async () => {
    const grant = await imported({}, [
      { value: 9_000, createdAt: ago(15 * day) },
      { value: 6_000, createdAt: ago(5 * day) },
    ])
    const { access_token } = (await exchanged(grant)).body
    expect((await pay(client, access_token.value, 4_000)).status).toBe(201)
    expect(errorOf(await pay(client, access_token.value, 1))).toEqual([403, 'insufficient_grant'])
  })

  test('counts the days by which a month of Rafiki began earlier', async () => {
    // Rafiki adds a month to the start of the window before: from 30 September it comes to 30 October.
    const interval = 'R11/2026-07-31T00:00:00Z/P1M'
    const access = [outgoingItem({ debitAmount: usd(10_000), interval })]
    const createdAt = new Date('2026-10-30T12:00:00Z')
    const grant = await imported({ access }, [{ value: 9_000, createdAt }])
    const { value } = (await exchanged(grant)).body.access_token
    expect(errorOf(await pay(client, value, 1_001))).toEqual([403, 'insufficient_grant'])
    expect((await pay(client, value, 1_000)).status).toBe(201)
  })

  test('counts all payments under a limit for the life of the grant', async () => {
    const access = [outgoingItem({ debitAmount: usd(10_000) })]
    const payments = [{ value: 6_000, createdAt: ago(39 * day) }, { value: 3_000 }]
    const { value } = (await exchanged(await imported({ access }, payments))).body.access_token
    expect(errorOf(await pay(client, value, 1_001))).toEqual([403, 'insufficient_grant'])
    expect((await pay(client, value, 1_000)).status).toBe(201)
  })

  test('treats what was spent in another asset than that of the limit as all of it', async () => {
    const access = [outgoingItem({ receiveAmount: { ...usd(10_000), assetCode: 'EUR' } })]
    const { value } = (await exchanged(await imported({ access }, [{}]))).body.access_token
    const answer = await pay(client, value, 2, { incomingPayment: euroReceiver })
    expect(errorOf(answer)).toEqual([403, 'insufficient_grant'])
  })

  test.each<[string, Partial<OldGrant>, string | undefined]>([
    ['a pending grant', { state: 'PENDING', finalizationReason: null }, undefined],
    ['a revoked grant', { finalizationReason: 'REVOKED' }, undefined],
    ['a grant whose token was revoked', { revoked: true }, undefined],
    ['a grant without consent', { interactive: false }, undefined],
    [
      'a grant whose items share what was spent',
      { access: [outgoingItem({ debitAmount: usd(1) }), outgoingItem({ debitAmount: usd(2) })] },
      'it has several items for outgoing payments',
    ],
    [
      'a grant that names no account to debit',
      { access: [{ type: 'outgoing-payment', actions: ['create'] }] },
      'an item for outgoing payments names no wallet address',
    ],
    [
      'an account of another owner',
      { access: [outgoingItem({}, bob)] },
      `${bob} is not a wallet address of this owner`,
    ],
    [
      'an interval that is none',
      { access: [outgoingItem({ interval: 'P1M' })] },
      'its interval is invalid',
    ],
    [
      'a grant whose last window has ended',
      { access: [outgoingItem({ interval: 'R1/2020-01-01T00:00:00Z/P1D' })] },
      'it is expired',
    ],
  ])('does not import %s', async (_, given, reason) => {
    const grant = await imported(given)
    expect(grant.result).toEqual(reason === undefined ? undefined : { ok: false, reason })
    expect(errorOf(await exchanged(grant))).toEqual([404, 'invalid_rotation'])
  })

  test('changes nothing when it runs again', async () => {
    const grant = await imported({}, [{ value: 7_000 }])
    const { value } = (await exchanged(grant)).body.access_token
    expect((await pay(client, value, 3_000)).status).toBe(201)
    await imported()
    expect(errorOf(await pay(client, value, 1))).toEqual([403, 'insufficient_grant'])
  })

  test('reads the wallet addresses with their asset, name and current keys', async () => {
    const id = randomUUID()
    const [assetId, address] = [rafiki.assets.EUR, 'https://wallet.example/carol']
    await rafiki.insert('walletAddresses', { id, address, publicName: 'Carol', assetId })
    const published = { walletAddressId: id, kid: 'carol-1', x: 'A'.repeat(43) }
    await rafiki.insert('walletAddressKeys', { id: randomUUID(), ...published })
    const revoked = { id: randomUUID(), ...published, kid: 'carol-0', revoked: true }
    await rafiki.insert('walletAddressKeys', revoked)
    expect(await rafikiWalletAddresses(old)).toEqual([
      {
        id,
        url: address,
        publicName: 'Carol',
        assetCode: 'EUR',
        assetScale: 2,
        active: true,
        keys: [{ kid: 'carol-1', x: 'A'.repeat(43) }],
      },
    ])
  })
})
