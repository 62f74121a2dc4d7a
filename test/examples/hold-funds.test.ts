import fc from 'fast-check'
import type { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrate, postgresStore } from '../../adapters/postgres.js'
import { holdFunds, releaseHolds } from '../../examples/host-transaction/hold-funds.js'
import { settleOutgoing } from '../../examples/host-transaction/settle-outgoing.js'
import { ledgerTables } from '../../examples/host-transaction/tables.js'
import { type FreshPostgres, freshPostgres, servers } from '../support/databases.js'
import { balanceProperty, type HoldingHost, repeatWithMore } from '../support/held-balances.js'
import { pay, shopReceiver, usd } from '../support/spending.js'
import { errorOf, payingClient } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'

describe.skipIf(servers.PostgreSQL === undefined)('the hold on PostgreSQL', () => {
  let fresh: FreshPostgres
  let pool: Pool
  let host: HoldingHost
  beforeAll(async () => {
    fresh = await freshPostgres({ migrated: false })
    pool = fresh.connect({ options: `-c search_path=${fresh.schema}` })
    await migrate(pool)
    await pool.query(ledgerTables)
    for (const id of [alice, bob, 'settlement:USD']) {
      await pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
    }
    host = { mayPay: holdFunds(pool), reset }
  })
  afterAll(() => fresh?.drop())
  beforeEach(async () => {
    // Each test has a world of its own, with the same ids.
    await pool.query('TRUNCATE open_payments_records CASCADE')
    await reset(1_000n)
  })

  async function reset(balance: bigint) {
    await pool.query('TRUNCATE ledger_holds, ledger_entries')
    for (const account of [alice, bob]) {
      await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, $2)", [account, balance])
    }
  }

  const payment = {
    holdId: 'hold-1' as const,
    outgoingPaymentId: 'none',
    walletAddress: alice,
    client: 'https://shop.example',
    grantId: 'grant',
    receiver: shopReceiver,
    debitAmount: usd(700),
    receiveAmount: usd(700),
  }
  const refused = { ok: false, refusal: 'funds_insufficient' }
  const held = async () => (await pool.query('SELECT hold_id FROM ledger_holds')).rows.length
  const endAll = () => pool.query("UPDATE ledger_holds SET ends_at = now() - interval '1 second'")
  const worldOf = () =>
    payingClient({ store: postgresStore(pool), resources: { policy: { mayPay: host.mayPay } } })

  test('never pays more than the balance, whatever keys and amounts are repeated', async () => {
    await fc.assert(balanceProperty(host, { store: postgresStore(pool) }), { numRuns: 25 })
  })

  test('refuses a repeated key with an amount that is not covered', async () => {
    const { repeated, asked } = await repeatWithMore(host, { store: postgresStore(pool) })
    expect(errorOf(repeated)).toEqual([403, 'insufficient_funds'])
    expect(new Set(asked.map(({ outgoingPaymentId }) => outgoingPaymentId)).size).toBe(1)
  })

  test('covers each amount once for concurrent calls, without a deadlock', async () => {
    const counted = fresh.connect({ options: `-c search_path=${fresh.schema}` })
    let locks = 0
    counted.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<never>
      client.query = ((text: string, ...rest: unknown[]) => {
        if (/FOR UPDATE$/.test(text)) locks++
        return query(text, ...rest)
      }) as typeof client.query
    })
    const mayPay = holdFunds(counted)
    const calls = Array.from({ length: 30 }, (_, index) =>
      mayPay({ ...payment, holdId: `hold-${index % 3}` }),
    )
    const covered = (await Promise.all(calls)).filter(({ ok }) => ok)
    expect(covered).toHaveLength(10)
    expect(await held()).toBe(1)
    expect(locks).toBe(30) // a deadlock would repeat a call
  })

  test('refuses an account that it does not know, and the largest amount', async () => {
    expect(await host.mayPay({ ...payment, walletAddress: `${alice}2` })).toEqual(refused)
    const debitAmount = usd('18446744073709551615')
    expect(await host.mayPay({ ...payment, debitAmount })).toEqual(refused)
  })

  test('releases what has ended without a payment, and not what a repeat has extended', async () => {
    const { world } = await worldOf()
    await host.mayPay(payment)
    await releaseHolds(pool, world.resources)
    expect(await held()).toBe(1)
    await endAll()
    await host.mayPay(payment)
    await releaseHolds(pool, world.resources)
    expect(await held()).toBe(1)
    await endAll()
    const get = async () => {
      await host.mayPay(payment) // between the look-up and the release
      return undefined
    }
    const { outgoingPayments } = world.resources
    await releaseHolds(pool, { ...world.resources, outgoingPayments: { ...outgoingPayments, get } })
    expect(await held()).toBe(1)
    await endAll()
    await releaseHolds(pool, world.resources)
    expect(await held()).toBe(0)
  })

  test('releases the other holds if one look-up fails, and reports the failure', async () => {
    const { world } = await worldOf()
    await host.mayPay(payment)
    await host.mayPay({ ...payment, holdId: 'hold-another', outgoingPaymentId: 'another payment' })
    await endAll()
    const get = async (id: string) => {
      if (id === payment.outgoingPaymentId) throw new Error('the store is down')
      return undefined
    }
    const resources = {
      ...world.resources,
      outgoingPayments: { ...world.resources.outgoingPayments, get },
    }
    await expect(releaseHolds(pool, resources)).rejects.toThrow('the store is down')
    expect(await held()).toBe(1)
  })

  test('keeps the hold of a payment until it is settled, and then the balance is what was not sent', async () => {
    const { world, client, token } = await worldOf()
    const { body } = await pay(client, token, 700)
    const id = world.resources.outgoingPayments.idOf(body.id) ?? ''
    await endAll()
    await releaseHolds(pool, world.resources)
    expect(errorOf(await pay(client, token, 301))).toEqual([403, 'insufficient_funds'])
    await world.resources.outgoingPayments.begin(id)
    const totals = { sentAmount: usd(500), deliveredAmount: usd(500) }
    await settleOutgoing(pool, world.resources, id, totals)
    expect(await held()).toBe(0)
    expect(errorOf(await pay(client, token, 501))).toEqual([403, 'insufficient_funds'])
    expect((await pay(client, token, 500)).status).toBe(201)
  })

  test('releases the hold of a payment that has failed', async () => {
    const { world, client, token } = await worldOf()
    const { body } = await pay(client, token, 700)
    const id = world.resources.outgoingPayments.idOf(body.id) ?? ''
    await world.resources.outgoingPayments.cancel(id)
    await endAll()
    await releaseHolds(pool, world.resources)
    expect(await held()).toBe(0)
  })
})
