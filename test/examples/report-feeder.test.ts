import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { reportFeeder, reportTables } from '../../examples/reporting/report-feeder.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { alice, bob, incomingAccess } from '../support/world.js'

let fresh: FreshPostgres
let pool: Pool
beforeAll(async () => {
  if (servers.PostgreSQL === undefined) return
  fresh = await freshPostgres()
  pool = fresh.connect({ options: `-c search_path=${fresh.schema}` })
  await pool.query(reportTables)
})
afterAll(() => fresh?.drop())

test.skipIf(servers.PostgreSQL === undefined)(
  'events feed one row for each payment, with its last status and total, also if delivered twice',
  async () => {
    const world = createSpendingWorld({ store: postgresStore(pool, { schema: fresh.schema }) })
    const { incomingPayments, outgoingPayments, events } = world.resources
    const client = world.client()
    const { token } = await grantToPay(world, client, [outgoingItem()])
    const receiving = (await client.request([incomingAccess])).body.access_token.value
    const invoice = { walletAddress: bob, incomingAmount: usd(40) }
    const { body } = await client.createPayment(receiving, invoice)
    const incomingId = incomingPayments.idOf(body.id) ?? ''
    await incomingPayments.receive(incomingId, { transferId: 'a', amount: usd(15) })
    await incomingPayments.receive(incomingId, { transferId: 'b', amount: usd(25) })
    const paid = await pay(client, token, 100)
    const outgoingId = outgoingPayments.idOf(paid.body.id) ?? ''
    await outgoingPayments.begin(outgoingId)
    await outgoingPayments.fail(outgoingId, { sentAmount: usd(30), deliveredAmount: usd(30) })

    const feed = reportFeeder(pool)
    const delivered: Parameters<typeof feed>[] = []
    await events.drain(async (...delivery) => {
      delivered.push(delivery)
      await feed(...delivery)
      await feed(...delivery)
    })
    // A consumer that stopped after its lease had ended may still deliver an event of the past.
    for (const delivery of delivered) await feed(...delivery)

    const { rows } = await pool.query(
      'SELECT direction, payment_id, account, status, value FROM report_payments ORDER BY direction',
    )
    expect(rows).toEqual([
      { direction: 'in', payment_id: incomingId, account: bob, status: 'completed', value: '40' },
      { direction: 'out', payment_id: outgoingId, account: alice, status: 'failed', value: '30' },
    ])
    const { rows: count } = await pool.query('SELECT count(*)::int AS events FROM report_events')
    expect(count).toEqual([{ events: delivered.length }])
  },
)
