import fc from 'fast-check'
import { type HoldSubject, holdConformance } from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { releaseFunds } from '../../examples/host-transaction/hold-funds.js'
import type { MayPay, ResourceServer } from '../../src/index.js'
import { balanceProperty, type LedgerHost, ledgerProperty } from '../support/held-balances.js'
import { hostCall } from '../support/host-call.js'
import { createHostDatabase, type Example, examples } from '../support/host-databases.js'
import { runs } from '../support/runs.js'
import { pay, shopReceiver, usd, withKey } from '../support/spending.js'
import { errorOf, payingClient } from '../support/spending-client.js'
import { alice, bob } from '../support/world.js'

/** Handles all events that are due, as a consumer does. */
async function handleEvents({ events }: ResourceServer, pool: Pool) {
  const { failed } = await events.drain(releaseFunds(pool), { limit: 1_000 })
  expect(failed).toBe(0)
}

// #region account
/** An account of the ledger, with the functions of the host. */
function accountOf(
  walletAddress: string,
  { pool, holdFunds, settleOutgoing }: Example,
): HoldSubject {
  const sumOf = async (table: string) => {
    const sum = `SELECT coalesce(sum(amount), 0) AS sum FROM ${table}`
    const { rows } = await pool.query(`${sum} WHERE account_id = $1`, [walletAddress])
    return BigInt(rows[0].sum)
  }
  return {
    walletAddress,
    asset: { assetCode: 'USD', assetScale: 2 },
    mayPay: holdFunds,
    onEvent: releaseFunds(pool),
    async settle(event) {
      const { outgoingPaymentId, type, sentAmount, deliveredAmount } = event
      const arrived = type === 'outgoing-payment.completed'
      const outcome = { arrived, sentAmount, deliveredAmount }
      await settleOutgoing(recording(event), outgoingPaymentId, outcome)
    },
    balance: () => sumOf('ledger_entries'),
    held: () => sumOf('ledger_holds'),
  }
}
// #endregion account

// #region recording
/** The library as `settleOutgoing` calls it: it records the end of a payment. */
function recording(event: PaymentEnd) {
  const payment = { ...event, paymentId: event.outgoingPaymentId, endedAt: event.at }
  const debit = BigInt(event.sentAmount.value)
  const credit = BigInt(event.deliveredAmount.value)
  const report = async () => ({ ok: true, changed: true, payment, debit, credit })
  const outgoingPayments = { reportSent: report, fail: report }
  return { within: () => ({ outgoingPayments }) } as never
}

type PaymentEnd = Parameters<NonNullable<HoldSubject['settle']>>[0]
// #endregion recording

describe.each(examples)('the hold of %s', (_, installed) => {
  if (installed === undefined) return test.skip('skipped: run .ci/transactions', () => {})

  const { server, open } = installed
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  let pool: Pool
  let example: Example
  let host: LedgerHost
  beforeAll(async () => {
    database = await createHostDatabase(server)
    pool = database.pool
    for (const id of [alice, bob, 'settlement:USD']) {
      await pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
    }
    example = await open({ connectionString: database.url.href })
    host = {
      mayPay: example.holdFunds,
      reset,
      settle: example.settleOutgoing,
      release: (resources) => handleEvents(resources, example.pool),
      async balanceOf(account) {
        const sum = 'SELECT sum(amount)::text FROM ledger_entries WHERE account_id = $1'
        return BigInt((await pool.query(sum, [account])).rows[0].sum)
      },
      async holds() {
        const { rows } = await pool.query('SELECT * FROM ledger_holds WHERE NOT released')
        return rows.map(({ payment_id: paymentId, account_id: account, amount }) => ({
          paymentId,
          account,
          amount: BigInt(amount),
        }))
      },
    }
  })
  afterAll(async () => {
    await example?.close()
    await database?.drop()
  })
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

  /** The sessions that have found deadlocks report them when they end. */
  async function deadlocksSoFar() {
    await example.close()
    const deadlocks = await database.deadlocks()
    example = await open({ connectionString: database.url.href })
    host = { ...host, mayPay: example.holdFunds, settle: example.settleOutgoing }
    return deadlocks
  }

  const payment = {
    outgoingPaymentId: 'payment-1',
    walletAddress: alice,
    client: 'https://shop.example',
    grantId: 'grant',
    receiver: shopReceiver,
    debitAmount: usd(700),
    receiveAmount: usd(700),
  }
  const refused = { ok: false, refusal: 'funds_insufficient' }
  const held = async () =>
    (await pool.query('SELECT payment_id FROM ledger_holds WHERE NOT released')).rows.length
  const worldOf = () =>
    payingClient({
      store: postgresStore(example.pool),
      resources: { policy: { mayPay: host.mayPay } },
    })

  describe('keeps the rules of a hold:', () => {
    let accounts = 0
    let other: Example
    beforeAll(async () => {
      other = await open({ connectionString: database.url.href })
    })
    afterAll(() => other?.close())

    const cases = holdConformance(
      async (balance) => {
        const walletAddress = `https://wallet.example/${++accounts}`
        await pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [walletAddress, 'USD'])
        const deposit = "INSERT INTO ledger_entries VALUES ('deposit', $1, $2)"
        await pool.query(deposit, [walletAddress, balance])
        return accountOf(walletAddress, example)
      },
      { reopen: (walletAddress) => accountOf(walletAddress, other) },
    )
    for (const { name, run, timeoutMs } of cases) test(name, run, timeoutMs)
  })

  test('never pays more than the balance, whatever keys and amounts are repeated', async () => {
    const property = balanceProperty(host, { store: postgresStore(example.pool) })
    await fc.assert(property, { numRuns: runs(25, 4) })
  })

  test('leaves no negative balance and no hold without a payment, in any interleaving', async () => {
    const property = ledgerProperty(host, { store: postgresStore(example.pool) })
    await fc.assert(property, { numRuns: runs(25, 4) })
  })

  test('shares one connection with the store, without waiting for another', async () => {
    const single = await open({ connectionString: database.url.href, max: 1 })
    const { holdFunds: mayPay, settleOutgoing: settle } = single
    const property = ledgerProperty(
      { ...host, mayPay, settle, release: (resources) => handleEvents(resources, single.pool) },
      { store: postgresStore(single.pool) },
    )
    await fc.assert(property, { numRuns: 5 })
    expect(single.pool.totalCount).toBe(1)
    await single.close()
  })

  test('covers each amount once for concurrent calls, without a deadlock', async () => {
    const before = await deadlocksSoFar()
    const calls = Array.from({ length: 30 }, (_, index) =>
      host.mayPay({ ...payment, outgoingPaymentId: `payment-${index % 3}` }, hostCall),
    )
    const covered = (await Promise.all(calls)).filter(({ ok }) => ok)
    expect(covered).toHaveLength(10)
    expect(await held()).toBe(1)
    expect(await deadlocksSoFar()).toBe(before)
  })

  test('refuses an account that it does not know, and the largest amount', async () => {
    expect(await host.mayPay({ ...payment, walletAddress: `${alice}2` }, hostCall)).toEqual(refused)
    const debitAmount = usd('18446744073709551615')
    expect(await host.mayPay({ ...payment, debitAmount }, hostCall)).toEqual(refused)
  })

  test('holds a payment again that it has held, and releases it once it is declined', async () => {
    let isLost = true
    const mayPay: MayPay = async (payment) => {
      const answer = await host.mayPay(payment, hostCall)
      if (isLost) throw new Error('the answer was lost')
      return answer
    }
    const store = postgresStore(example.pool)
    const { world, client, token } = await payingClient({
      store,
      resources: { policy: { mayPay } },
    })
    const request = () => pay(client, token, 700, {}, withKey('k'))
    expect((await request()).status).toBe(503)
    expect(await held()).toBe(1)
    expect((await request()).status).toBe(503)
    expect(await held()).toBe(1)
    world.clock.advance(5 * 60_000)
    expect(await world.resources.sweep()).toMatchObject({ lapsed: 1 })
    await handleEvents(world.resources, example.pool)
    expect(await held()).toBe(0)
    isLost = false
    expect(errorOf(await request())).toEqual([403, 'payment_denied'])
    expect(await held()).toBe(0)
  })

  test('keeps the hold of a payment until it is settled, and then the balance is what was not sent', async () => {
    const { world, client, token } = await worldOf()
    const { body } = await pay(client, token, 700)
    const id = world.resources.outgoingPayments.idOf(body.id) ?? ''
    await handleEvents(world.resources, example.pool)
    expect(errorOf(await pay(client, token, 301))).toEqual([403, 'insufficient_funds'])
    await world.resources.outgoingPayments.begin(id)
    const totals = { sentAmount: usd(500), deliveredAmount: usd(500) }
    await example.settleOutgoing(world.resources, id, { ...totals, arrived: true })
    expect(await held()).toBe(0)
    expect(errorOf(await pay(client, token, 501))).toEqual([403, 'insufficient_funds'])
    expect((await pay(client, token, 500)).status).toBe(201)
  })

  test('releases the hold of a payment that has failed', async () => {
    const { world, client, token } = await worldOf()
    const { body } = await pay(client, token, 700)
    const id = world.resources.outgoingPayments.idOf(body.id) ?? ''
    await world.resources.outgoingPayments.cancel(id)
    await handleEvents(world.resources, example.pool)
    expect(await held()).toBe(0)
  })
})
