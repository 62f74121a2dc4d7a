import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { postgresStore } from '../../../adapters/postgres.js'
import { anyPostgres } from '../../support/databases.js'
import {
  bob,
  createWorld,
  incomingAccess,
  issuedGrant,
  type TestClient,
  type World,
} from '../../support/world.js'

describe('after the restore of a backup', () => {
  let database: Awaited<ReturnType<typeof anyPostgres>>
  let world: World
  let client: TestClient
  beforeAll(async () => {
    database = await anyPostgres()
  })
  afterAll(() => database.close())
  beforeEach(async () => {
    await run('TRUNCATE records')
    world = createWorld({ store: postgresStore(database.client, database.options) })
    client = world.client()
  })

  const run = (statement: string) => {
    const text = statement.replaceAll('records', `${database.prefix}open_payments_records`)
    return database.client.query({ text, values: [] })
  }
  const backUp = async () => {
    await run('DROP TABLE IF EXISTS records_backup')
    await run('CREATE TABLE records_backup AS SELECT * FROM records')
  }
  const restore = async () => {
    await run('TRUNCATE records')
    await run('INSERT INTO records SELECT * FROM records_backup')
  }

  test('a token that was issued later is unknown, and a rotated one is valid again', async () => {
    const { token } = await issuedGrant(world, client)
    await backUp()
    const rotated = await client.rotate(token)
    expect(rotated.status).toBe(200)
    const later = await client.request([incomingAccess])
    const create = (value: string) => client.createPayment(value, { walletAddress: bob })
    expect((await create(later.body.access_token.value)).status).toBe(201)
    await restore()
    expect((await create(later.body.access_token.value)).status).toBe(401)
    expect((await client.rotate(rotated.body.access_token)).status).not.toBe(200)
    expect((await client.rotate(token)).status).toBe(200)
  })

  test('a request can be repeated until its signature has expired, 300 s after it', async () => {
    await backUp()
    const body = JSON.stringify({
      client: client.client,
      access_token: { access: [incomingAccess] },
    })
    const signed = client.sign({ method: 'POST', url: 'https://wallet.example/auth', body })
    const send = async () => (await world.handle(signed)).status
    expect(await send()).toBe(200)
    expect(await send()).toBe(409)
    await restore()
    expect(await send()).toBe(200)
    await restore()
    world.clock.advance(301_000)
    expect(await send()).toBe(401)
  })

  test('an event that was delivered later is delivered again, with the same id', async () => {
    const { events, incomingPayments } = world.resources
    const creation = { walletAddress: bob, idempotencyKey: 'invoice-17' }
    const created = await incomingPayments.create(creation)
    await backUp()
    const delivered: string[] = []
    await events.drain(({ id }) => void delivered.push(id))
    await restore()
    await events.drain(({ id }) => void delivered.push(id))
    expect(delivered).toHaveLength(2)
    expect(new Set(delivered).size).toBe(1)
    expect(await incomingPayments.create(creation)).toMatchObject({ ...created, changed: false })
  })

  test('funds that are reported again count once, and those received later count', async () => {
    const { incomingPayments } = world.resources
    const created = await incomingPayments.create({ walletAddress: bob, idempotencyKey: 'a' })
    if (!created.ok) throw new Error(created.reason)
    const receive = (transferId: string) =>
      incomingPayments.receive(created.payment.paymentId, {
        transferId,
        amount: { value: '100', assetCode: 'USD', assetScale: 2 },
      })
    await receive('transfer-1')
    await backUp()
    await receive('transfer-2')
    await restore()
    expect(await receive('transfer-1')).toMatchObject({ ok: true, changed: false })
    expect(await receive('transfer-2')).toMatchObject({ ok: true, changed: true })
    expect(await incomingPayments.get(created.payment.paymentId)).toMatchObject({
      receivedAmount: { value: '200' },
    })
  })
})
