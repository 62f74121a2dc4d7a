import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { postgresStore } from '../../adapters/postgres.js'
import { type Bank, bankPayments } from '../../examples/host-transaction/bank-payments.js'
import { holdFunds } from '../../examples/host-transaction/hold-funds.js'
import { settlementAccount } from '../../examples/host-transaction/tables.js'
import type { FoundById, Reply } from '../../src/entry-attempts.js'
import type { Pricing, Store } from '../../src/index.js'
import { servers } from '../support/databases.js'
import { createHostDatabase } from '../support/host-databases.js'
import { eur, euroReceiver, pay, usd, withKey } from '../support/spending.js'
import { idOfPayment, payingClient } from '../support/spending-client.js'
import { alice } from '../support/world.js'

const minute = 60_000
const hour = 60 * minute
const server = servers.PostgreSQL

type Fate = 'arrives' | 'half arrives' | 'request lost' | 'reply lost'

describe.skipIf(server === undefined)(
  `payments through a bank${server === undefined ? ' (skipped: no PostgreSQL)' : ''}`,
  () => {
    let database: Awaited<ReturnType<typeof createHostDatabase>>
    let store: Store
    beforeEach(async () => {
      if (server === undefined) return
      database = await createHostDatabase(server)
      store = postgresStore(database.pool)
      const accounts = [alice, settlementAccount('USD'), 'fees']
      const text =
        "INSERT INTO ledger_accounts SELECT id, 'USD', 2 FROM unnest($1::text[]) AS t(id)"
      await database.pool.query(text, [accounts])
      const funds = "INSERT INTO ledger_entries VALUES ('funds', $1, 100000)"
      await database.pool.query(funds, [alice])
    })
    afterEach(() => database?.drop())

    /** Alice pays 10.00 dollars, of which by default 5.00 euros arrive, and the bank does what the test says. */
    async function created(pricing?: Pricing) {
      const { pool } = database
      const policy = { mayPay: holdFunds(pool) }
      const { world, client, token } = await payingClient({
        store,
        resources: { policy, ...(pricing && { pricing }) },
      })
      const id = idOfPayment(
        await pay(client, token, 1_000, { incomingPayment: euroReceiver }, withKey('1')),
      )
      const carriedOut = new Map<string, bigint>()
      const state = { isDown: false, fate: 'arrives' as Fate }
      const bank: Bank = {
        async transfer({ reference, amount }): Promise<Reply> {
          if (state.fate === 'half arrives') {
            carriedOut.set(reference, amount / 2n)
            Object.assign(state, { fate: 'request lost', isDown: true })
            return { outcome: 'proven', arrived: amount / 2n }
          }
          if (state.fate !== 'request lost') carriedOut.set(reference, amount)
          return state.fate === 'arrives'
            ? { outcome: 'proven' }
            : { outcome: 'unknown', reason: 'no reply' }
        },
        async look(references) {
          if (state.isDown) return undefined
          const found = references.map((each): readonly [string, FoundById] => [
            each,
            { found: carriedOut.has(each) ? 'arrived' : 'absent' },
          ])
          return { by: 'id', attempts: Object.fromEntries(found) }
        },
      }
      const { clock, resources } = world
      const { handle } = bankPayments({ pool, store, resources, bank, clock })
      return {
        ...{ world, id, state },
        async drainFor(ms: number, stepMs = minute) {
          for (let passed = 0; passed < ms; passed += stepMs) {
            expect((await resources.events.drain(handle)).failed).toBe(0)
            clock.advance(stepMs)
          }
        },
        /** What the ledger debited and holds, what has arrived, and what the payment says. */
        async books() {
          const text = `SELECT
              (SELECT coalesce(-sum(amount), 0)::text FROM ledger_entries
                WHERE split_part(transfer_id, ' ', 1) = $1 AND account_id = $2) AS debited,
              (SELECT coalesce(sum(amount), 0)::text FROM ledger_holds WHERE payment_id = $1) AS held`
          const { rows } = await pool.query(text, [id, alice])
          const arrived = [...carriedOut.values()].reduce((sum, amount) => sum + amount, 0n)
          const { status, sentAmount, deliveredAmount, inDoubt } =
            (await resources.outgoingPayments.get(id)) ?? {}
          expect(sentAmount).toEqual(usd(rows[0].debited))
          return { ...rows[0], arrived, status, deliveredAmount, doubt: inDoubt?.amount.value }
        },
      }
    }

    test('debit what has arrived, and release the hold', async () => {
      const { drainFor, books } = await created()
      expect(await books()).toMatchObject({ debited: '0', held: '1000', status: 'created' })
      await drainFor(minute)
      const paid = { debited: '1000', held: '0', arrived: 500n, deliveredAmount: eur(500) }
      expect(await books()).toMatchObject({ ...paid, status: 'completed', doubt: undefined })
    })

    test('find by a question what became of an order without a reply', async () => {
      const { drainFor, books, state } = await created()
      state.fate = 'reply lost'
      await drainFor(10 * minute)
      const paid = { debited: '1000', held: '0', arrived: 500n }
      expect(await books()).toMatchObject({ ...paid, status: 'completed', doubt: undefined })
    })

    test.each([
      ['refund it once they know that it never arrived', 'request lost', '0', 0n],
      ['keep it once they know that it has arrived', 'reply lost', '1000', 500n],
    ] as const)('debit what nobody knows, and %s', async (_, fate, debited, arrived) => {
      const { drainFor, books, state } = await created()
      Object.assign(state, { fate, isDown: true })
      await drainFor(2 * hour, 10 * minute)
      const doubt = { debited: '1000', held: '0', status: 'failed', doubt: '1000' }
      expect(await books()).toMatchObject(doubt)
      state.isDown = false
      await drainFor(2 * hour, 10 * minute)
      expect(await books()).toMatchObject({ debited, held: '0', arrived, doubt: undefined })
    })

    test('credit the fee of what has arrived, in parts and after a refund', async () => {
      const price = { ok: true, debitAmount: usd(1_000), receiveAmount: usd(981) } as const
      const { drainFor, state, id } = await created({ price: async () => price })
      state.fate = 'half arrives'
      /** What each account has got of the payment. */
      const balances = async () => {
        const text = `SELECT account_id, sum(amount)::text FROM ledger_entries
          WHERE split_part(transfer_id, ' ', 1) = $1 GROUP BY account_id`
        const { rows } = await database.pool.query(text, [id])
        return Object.fromEntries(rows.map(({ account_id: account, sum }) => [account, sum]))
      }
      const settlement = settlementAccount('USD')
      const half = { [alice]: '-500', [settlement]: '490', fees: '10' }
      await drainFor(minute)
      expect(await balances()).toEqual(half)
      await drainFor(2 * hour, 10 * minute) // the rest is in doubt, and debited
      expect(await balances()).toEqual({ [alice]: '-1000', [settlement]: '981', fees: '19' })
      state.isDown = false
      await drainFor(2 * hour, 10 * minute) // and never arrived
      expect(await balances()).toEqual(half)
    })

    test('send and hold nothing of a payment that was cancelled before it began', async () => {
      const { drainFor, books, world, id } = await created()
      await world.resources.outgoingPayments.cancel(id)
      await drainFor(hour, 10 * minute)
      const nothing = { debited: '0', held: '0', arrived: 0n, doubt: undefined }
      expect(await books()).toMatchObject({ ...nothing, status: 'failed' })
    })
  },
)
