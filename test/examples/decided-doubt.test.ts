import type { PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { post, postSettled } from '../../examples/host-transaction/settle-outgoing.js'
import { settlementAccount } from '../../examples/host-transaction/tables.js'
import {
  attempts,
  type Reply,
  type ReportedSettlement,
  type Settled,
} from '../../src/entry-attempts.js'
import type { OutgoingPaymentView, ResourceServices, Store } from '../../src/index.js'
import { type Bank, openBank, unknownToTheLedger, usd } from '../support/bank.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'
import { alice } from '../support/world.js'

const server = servers.PostgreSQL
const title = (text: string) => (server === undefined ? `${text} (skipped: no PostgreSQL)` : text)

type Reported = ReportedSettlement
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

  /** Reports in a transaction of the host, and posts what the report has added. */
  function inTransaction(
    report: (payments: Outgoing) => Promise<Reported>,
    seen: (result: Reported) => Reported = (result) => result,
  ) {
    return postgresStore.transaction(database.pool, async (client: PoolClient, inside: Store) => {
      const result = seen(await report(bank.world.resources.within(inside).outgoingPayments))
      if (result.ok) await post(client, result)
      return result
    })
  }

  /** What the ledger has debited for a payment in all, what of it is in doubt, and what is still held. */
  async function books(paymentId: string) {
    const text = `SELECT
        (SELECT coalesce(-sum(amount), 0)::text FROM ledger_entries
          WHERE split_part(transfer_id, ' ', 1) = $1 AND account_id <> $2) AS debited,
        (SELECT coalesce(sum(amount), 0)::text FROM ledger_holds WHERE payment_id = $1) AS held`
    const { rows } = await database.pool.query(text, [paymentId, settlementAccount('USD')])
    const view = await bank.world.resources.outgoingPayments.get(paymentId)
    const { sentAmount, inDoubt } = view as OutgoingPaymentView
    return { ...rows[0], sent: sentAmount.value, inDoubt: inDoubt?.amount.value }
  }

  /** A payment of 10.00 that has begun, and whose amount is held. */
  async function begun() {
    const paymentId = await bank.begun()
    const text = 'INSERT INTO ledger_holds (payment_id, account_id, amount) VALUES ($1, $2, 1000)'
    await database.pool.query(text, [paymentId, alice])
    return paymentId
  }

  async function inDoubt() {
    const paymentId = await begun()
    const since = bank.world.clock.now()
    const doubt = { amount: usd(400), since, reason: 'no reply' }
    const failed = await inTransaction((payments) =>
      payments.fail(paymentId, { sentAmount: usd(1_000), inDoubt: doubt }),
    )
    expect(failed).toMatchObject({ ok: true, changed: true })
    expect(await books(paymentId)).toEqual({
      debited: '1000',
      sent: '1000',
      held: '0',
      inDoubt: '400',
    })
    return paymentId
  }

  test.skipIf(server === undefined)(title('refunds it together with the entry, once'), async () => {
    const paymentId = await inDoubt()
    for (const changed of [true, false]) {
      const decided = await inTransaction((payments) =>
        payments.decideDoubt(paymentId, { refunded: usd(400) }),
      )
      expect(decided).toMatchObject({ ok: true, changed })
      expect(await books(paymentId)).toEqual({
        debited: '600',
        sent: '600',
        held: '0',
        inDoubt: undefined,
      })
    }
  })

  test.skipIf(server === undefined)(
    title('stays in doubt if the host cannot write its entry'),
    async () => {
      const paymentId = await inDoubt()
      const decide = (payments: Outgoing) => payments.decideDoubt(paymentId, { refunded: usd(400) })
      await expect(inTransaction(decide, unknownToTheLedger)).rejects.toThrow()
      expect(await books(paymentId)).toEqual({
        debited: '1000',
        sent: '1000',
        held: '0',
        inDoubt: '400',
      })
      const { result } = await bank.world.resources.outgoingPayments.list({ inDoubt: true })
      expect(result.map((payment) => payment.paymentId)).toContain(paymentId)
      await inTransaction(decide)
      expect(await books(paymentId)).toEqual({
        debited: '600',
        sent: '600',
        held: '0',
        inDoubt: undefined,
      })
    },
  )

  test.skipIf(server === undefined)(
    title('of a settlement is posted with each of its parts, once, by any number of processes'),
    async () => {
      const paymentId = await begun()
      const { clock, resources } = bank.world
      const replies: Reply[] = [{ outcome: 'proven', arrived: 200n }]
      const transfers = attempts({
        name: 'bank',
        store,
        clock,
        evidence: 'id',
        send: async () => replies.shift() ?? { outcome: 'unknown', reason: 'no reply' },
        ask: async () => undefined,
      })
      const settle = () => transfers.settle({ id: paymentId, amount: 500n })
      /** Five processes post the same result at once: one of them changes the ledger. */
      async function post(settled: Settled) {
        const posted = await Promise.all(
          Array.from({ length: 5 }, () =>
            postSettled(database.pool, resources, paymentId, settled),
          ),
        )
        expect(posted.every(({ ok }) => ok)).toBe(true)
        expect(posted.filter((each) => each.ok && each.debit !== 0n)).toHaveLength(1)
        return books(paymentId)
      }
      // Of 5.00 that are to arrive for 10.00, 2.00 are proven; then the rest is ordered, and its reply is lost.
      const proven = { debited: '400', sent: '400', held: '600', inDoubt: undefined }
      expect(await post(await settle())).toEqual(proven)
      clock.advance(1_000)
      await postSettled(database.pool, resources, paymentId, await settle())
      expect(await books(paymentId)).toEqual({ ...proven, inDoubt: '600' })
      clock.advance(1_800_000)
      const ended = { debited: '1000', sent: '1000', held: '0', inDoubt: '600' }
      expect(await post(await settle())).toEqual(ended)
      await transfers.decide(paymentId, 'never', 'ada')
      const decided = { debited: '400', sent: '400', held: '0', inDoubt: undefined }
      expect(await post(await settle())).toEqual(decided)
    },
  )
})
