import fc from 'fast-check'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { payOwn, priceOfOwn } from '../../examples/frameworks/nest/src/own-accounts.js'
import { holdFunds, releaseFunds } from '../../examples/host-transaction/hold-funds.js'
import { moveFunds } from '../../examples/host-transaction/move-funds.js'
import type { MayReceive } from '../../src/index.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'
import { runs } from '../support/runs.js'
import { createSpendingWorld, grantToPay, outgoingItem, pay, usd } from '../support/spending.js'
import { alice, bob, type TestClient, type World } from '../support/world.js'

const { PostgreSQL: server } = servers

describe.skipIf(server === undefined)('payments between the accounts of a wallet', () => {
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  let pool: Pool
  let world: World
  let client: TestClient
  let mayReceive: MayReceive = () => ({ ok: true })
  beforeAll(async () => {
    database = await createHostDatabase(server ?? '')
    pool = database.pool
    for (const id of [alice, bob, 'fees']) {
      await pool.query('INSERT INTO ledger_accounts VALUES ($1, $2, 2)', [id, 'USD'])
    }
    world = createSpendingWorld({
      store: postgresStore(pool),
      resources: {
        policy: { mayPay: holdFunds(pool), mayReceive: (...asked) => mayReceive(...asked) },
        pricing: { price: (request) => priceOfOwn(world.resources, request) },
      },
    })
    client = world.client()
  })
  afterAll(() => database?.drop())

  /** Handles the events that are due, each of a payment twice, as after a crash before its acknowledgement. */
  async function handleEvents() {
    const release = releaseFunds(pool)
    const { failed } = await world.resources.events.drain(
      async (event, delivery) => {
        if (event.type !== 'outgoing-payment.created') return release(event, delivery)
        await payOwn(pool, world.resources, event, moveFunds)
        return payOwn(pool, world.resources, event, moveFunds)
      },
      { limit: 1_000 },
    )
    expect(failed).toBe(0)
  }

  const balanceOf = async (account: string) => {
    const sum = 'SELECT coalesce(sum(amount), 0) AS sum FROM ledger_entries WHERE account_id = $1'
    return BigInt((await pool.query(sum, [account])).rows[0].sum)
  }

  const account = fc.constantFrom(alice, bob)
  const payment = fc.record({ from: account, to: account, value: fc.bigInt(1n, 600n) })
  const histories = fc.array(fc.array(payment, { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  })

  test('all end, move what was sent, change nothing if an account pays itself, and leave no hold', async () => {
    const access = [outgoingItem(undefined, alice), outgoingItem(undefined, bob)]
    const { token } = await grantToPay(world, client, access)
    const property = fc.asyncProperty(histories, async (history) => {
      await pool.query('TRUNCATE ledger_holds, ledger_entries')
      const deposit = "INSERT INTO ledger_entries VALUES ('deposit', $1, 1000)"
      for (const id of [alice, bob]) await pool.query(deposit, [id])
      const expected = new Map([alice, bob].map((id) => [id, 1_000n]))
      for (const atOnce of history) {
        const sent = atOnce.map(async ({ from, to, value }) => {
          const idempotencyKey = crypto.randomUUID()
          const asked = { walletAddress: to, idempotencyKey }
          const invoice = await world.resources.incomingPayments.create(asked)
          if (!invoice.ok) throw new Error(invoice.reason)
          const more = { walletAddress: from, incomingPayment: invoice.url }
          const { status, body } = await pay(client, token, value, more)
          expect([201, 403]).toContain(status)
          if (status === 403) return undefined
          expected.set(from, (expected.get(from) ?? 0n) - value)
          expected.set(to, (expected.get(to) ?? 0n) + value)
          return { id: world.resources.outgoingPayments.idOf(body.id) ?? '', value }
        })
        const created = (await Promise.all(sent)).filter((each) => each !== undefined)
        await handleEvents()
        for (const { id, value } of created) {
          const ended = await world.resources.outgoingPayments.get(id)
          expect(ended).toMatchObject({ status: 'completed', sentAmount: usd(value) })
        }
      }
      expect((await pool.query('SELECT * FROM ledger_holds WHERE NOT released')).rows).toEqual([])
      for (const [id, balance] of expected) expect(await balanceOf(id)).toBe(balance)
    })
    const example = [[{ from: alice, to: alice, value: 600n }]]
    await fc.assert(property, { numRuns: runs(20, 4), examples: [[example]] })
  })

  test('leave to the account for fees what is debited and not credited', async () => {
    await pool.query('TRUNCATE ledger_holds, ledger_entries')
    const client = await pool.connect()
    const transfer = { paymentId: 'with a fee', debit: '1010', credit: '1000' }
    await moveFunds(client, { ...transfer, from: alice, to: bob })
    client.release()
    expect([await balanceOf(alice), await balanceOf(bob), await balanceOf('fees')]).toEqual([
      -1_010n,
      1_000n,
      10n,
    ])
  })

  test('fail with nothing sent rather than overpay an incoming payment', async () => {
    const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1_000) })])
    await pool.query('TRUNCATE ledger_holds, ledger_entries')
    await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, 1000)", [alice])
    const { incomingPayments, outgoingPayments } = world.resources
    const asked = { walletAddress: bob, idempotencyKey: 'part', incomingAmount: usd(500) }
    const invoice = await incomingPayments.create(asked)
    if (!invoice.ok) throw new Error(invoice.reason)
    const ids: string[] = []
    for (const value of [400, 300]) {
      const { body } = await pay(client, token, value, { incomingPayment: invoice.url })
      ids.push(outgoingPayments.idOf(body.id) ?? '')
    }
    await handleEvents()
    const ended = await Promise.all(ids.map((id) => outgoingPayments.get(id)))
    const sent = ended.reduce((sum, each) => sum + BigInt(each?.sentAmount.value ?? 0), 0n)
    expect(ended.map((each) => each?.status).toSorted()).toEqual(['completed', 'failed'])
    expect([300n, 400n]).toContain(sent)
    expect([await balanceOf(alice), await balanceOf(bob)]).toEqual([1_000n - sent, sent])
    const { receivedAmount, status } = (await incomingPayments.get(invoice.payment.paymentId)) ?? {}
    expect([receivedAmount, status]).toEqual([usd(sent), 'open'])
    expect((await pool.query('SELECT * FROM ledger_holds WHERE NOT released')).rows).toEqual([])
  })

  test.each([
    ['completed', 'is allowed', 3_600_000, 300n],
    ['failed', 'is refused', 3_600_000, 0n],
    ['failed', 'ends after the incoming payment', 31 * 86_400_000, 0n],
  ] as const)(
    'are begun while the arrival is reviewed, and %s if it %s',
    async (status, end, afterMs, moved) => {
      const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1_000) })])
      await pool.query('TRUNCATE ledger_holds, ledger_entries')
      await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, 1000)", [alice])
      const { incomingPayments, outgoingPayments } = world.resources
      const invoice = await incomingPayments.create({
        walletAddress: bob,
        idempotencyKey: `to review ${end}`,
      })
      if (!invoice.ok) throw new Error(invoice.reason)
      const retryAt = world.clock.now() + Math.min(afterMs, 30 * 86_400_000)
      const waits = { ok: false, refusal: 'review_required', retryAt } as const
      const allows = { ok: true } as const
      mayReceive = () => waits
      const { body } = await pay(client, token, 300, { incomingPayment: invoice.url })
      const id = outgoingPayments.idOf(body.id) ?? ''
      const holds = async () =>
        (await pool.query('SELECT * FROM ledger_holds WHERE NOT released')).rows.length
      for (const pauseMs of [0, 1_000]) {
        world.clock.advance(pauseMs)
        await handleEvents()
        expect([(await outgoingPayments.get(id))?.status, await holds()]).toEqual(['begun', 1])
      }
      mayReceive = () =>
        end === 'is refused' ? { ok: false, refusal: 'payment_not_allowed' } : allows
      world.clock.advance(afterMs)
      await handleEvents()
      await handleEvents()
      mayReceive = () => allows
      expect([(await outgoingPayments.get(id))?.status, await holds()]).toEqual([status, 0])
      expect([await balanceOf(alice), await balanceOf(bob)]).toEqual([1_000n - moved, moved])
    },
  )

  test('that the host ends during a review are told and released in order, when their event comes again', async () => {
    const { token } = await grantToPay(world, client, [outgoingItem({ debitAmount: usd(1_000) })])
    await pool.query('TRUNCATE ledger_holds, ledger_entries')
    await pool.query("INSERT INTO ledger_entries VALUES ('deposit', $1, 1000)", [alice])
    const { incomingPayments, outgoingPayments } = world.resources
    const asked = { walletAddress: bob, idempotencyKey: 'ended during its review' }
    const invoice = await incomingPayments.create(asked)
    if (!invoice.ok) throw new Error(invoice.reason)
    const retryAt = world.clock.now() + 600_000
    mayReceive = () => ({ ok: false, refusal: 'review_required', retryAt })
    const { body } = await pay(client, token, 300, { incomingPayment: invoice.url })
    const id = outgoingPayments.idOf(body.id) ?? ''
    await handleEvents()
    expect(await outgoingPayments.fail(id, { reason: 'refused' })).toMatchObject({ changed: true })
    const holds = async () =>
      (await pool.query('SELECT * FROM ledger_holds WHERE NOT released')).rows.length
    for (const [at, held] of [
      [retryAt - 1, 1],
      [retryAt, 0],
    ] as const) {
      world.clock.set(at)
      for (const _ of ['created', 'failed']) await handleEvents()
      expect([(await outgoingPayments.get(id))?.status, await holds()]).toEqual(['failed', held])
    }
    mayReceive = () => ({ ok: true })
    expect([await balanceOf(alice), await balanceOf(bob)]).toEqual([1_000n, 0n])
  })
})
