import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { settlementAccount } from '../../examples/host-transaction/tables.js'
import { attempts, reportSettled, type Settled } from '../../src/entry-attempts.js'
import type { OutgoingPaymentView, ResourceServices, Store } from '../../src/index.js'
import { type Bank, openBank, unknownToTheLedger, usd } from '../support/bank.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'

const server = servers.PostgreSQL
const title = (text: string) => (server === undefined ? `${text} (skipped: no PostgreSQL)` : text)

type Reported = Awaited<ReturnType<typeof reportSettled>>
type Outgoing = ResourceServices['outgoingPayments']

describe('a doubt that is decided in the transaction of the host', () => {
  let database: Awaited<ReturnType<typeof createHostDatabase>>
  let bank: Bank
  let store: Store
  beforeAll(async () => {
    if (server === undefined) return
    database = await createHostDatabase(server)
    store = postgresStore(database.pool)
    bank = await openBank(database.pool, store)
  })
  afterAll(() => database?.drop())

  const debitedOf = (result: Reported) =>
    result.ok && result.payment.endedAt !== undefined ? BigInt(result.payment.sentAmount.value) : 0n

  /** Reports in a transaction, and writes what the debit has changed by. */
  function inTransaction(
    paymentId: string,
    report: (payments: Outgoing) => Promise<Reported>,
    seen: (result: Reported) => Reported = (result) => result,
  ) {
    return postgresStore.transaction(database.pool, async (client: PoolClient, inside: Store) => {
      const { outgoingPayments } = bank.world.resources.within(inside)
      const before = (await outgoingPayments.get(paymentId)) as OutgoingPaymentView
      const result = seen(await report(outgoingPayments))
      if (!result.ok || !result.changed) return result
      const was = before.endedAt === undefined ? 0n : BigInt(before.sentAmount.value)
      const amount = debitedOf(result) - was
      if (amount === 0n) return result
      const { walletAddress } = result.payment
      await client.query(
        `INSERT INTO ledger_entries (transfer_id, account_id, amount)
          VALUES ($1, $2, -$3::numeric), ($1, $4, $3::numeric)`,
        [
          `${paymentId}${was === 0n ? '' : ' refund'}`,
          walletAddress,
          `${amount}`,
          settlementAccount('USD'),
        ],
      )
      return result
    })
  }

  /** What the ledger has debited for a payment in all, and what of it is in doubt. */
  async function books(paymentId: string) {
    const text = `SELECT coalesce(-sum(amount), 0)::text AS debited FROM ledger_entries
      WHERE transfer_id IN ($1, $1 || ' refund') AND account_id <> $2`
    const { rows } = await database.pool.query(text, [paymentId, settlementAccount('USD')])
    const view = await bank.world.resources.outgoingPayments.get(paymentId)
    const { sentAmount, inDoubt } = view as OutgoingPaymentView
    return { debited: rows[0].debited, sent: sentAmount.value, inDoubt: inDoubt?.amount.value }
  }

  async function inDoubt() {
    const paymentId = await bank.begun()
    const since = bank.world.clock.now()
    const doubt = { amount: usd(400), since, reason: 'no reply' }
    const failed = await inTransaction(paymentId, (payments) =>
      payments.fail(paymentId, { sentAmount: usd(1_000), inDoubt: doubt }),
    )
    expect(failed).toMatchObject({ ok: true, changed: true })
    expect(await books(paymentId)).toEqual({ debited: '1000', sent: '1000', inDoubt: '400' })
    return paymentId
  }

  test.skipIf(server === undefined)(title('refunds it together with the entry, once'), async () => {
    const paymentId = await inDoubt()
    for (const changed of [true, false]) {
      const decided = await inTransaction(paymentId, (payments) =>
        payments.decideDoubt(paymentId, { refunded: usd(400) }),
      )
      expect(decided).toMatchObject({ ok: true, changed })
      expect(await books(paymentId)).toEqual({ debited: '600', sent: '600', inDoubt: undefined })
    }
  })

  test.skipIf(server === undefined)(
    title('stays in doubt if the host cannot write its entry'),
    async () => {
      const paymentId = await inDoubt()
      const decide = (payments: Outgoing) => payments.decideDoubt(paymentId, { refunded: usd(400) })
      await expect(inTransaction(paymentId, decide, unknownToTheLedger)).rejects.toThrow()
      expect(await books(paymentId)).toEqual({ debited: '1000', sent: '1000', inDoubt: '400' })
      const { result } = await bank.world.resources.outgoingPayments.list({ inDoubt: true })
      expect(result.map((payment) => payment.paymentId)).toContain(paymentId)
      await inTransaction(paymentId, decide)
      expect(await books(paymentId)).toEqual({ debited: '600', sent: '600', inDoubt: undefined })
    },
  )

  test.skipIf(server === undefined)(
    title('is decided by its settlement, with one entry, by any number of processes'),
    async () => {
      const paymentId = await bank.begun()
      const { clock } = bank.world
      const transfers = attempts({
        name: 'bank',
        store,
        clock,
        evidence: 'id',
        send: async () => ({ outcome: 'unknown', reason: 'no reply' }),
        ask: async () => undefined,
      })
      const settle = () => transfers.settle({ id: paymentId, amount: 500n })
      const report = (settled: Settled) =>
        inTransaction(paymentId, (payments) => reportSettled(payments, paymentId, settled))
      await settle()
      clock.advance(1_800_000)
      await report(await settle())
      expect(await books(paymentId)).toEqual({ debited: '1000', sent: '1000', inDoubt: '1000' })
      await transfers.decide(paymentId, 'never', 'ada')
      const settled = await settle()
      const reported = await Promise.all(Array.from({ length: 5 }, () => report(settled)))
      expect(reported.filter((each) => each.ok && each.changed)).toHaveLength(1)
      expect(reported.every(({ ok }) => ok)).toBe(true)
      expect(await books(paymentId)).toEqual({ debited: '0', sent: '0', inDoubt: undefined })
    },
  )
})
