import fc from 'fast-check'
import { CompiledQuery } from 'kysely'
import { kyselyStore, migrate } from 'open-payments-server-kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { IncomingPayment } from '../../src/core/incoming-payment.js'
import type { OutgoingPayment } from '../../src/core/outgoing-payment/record.js'
import type { RecordKind, Stored } from '../../src/entry-adapter.js'
import type { Store } from '../../src/index.js'
import { type FreshKysely, type HostDatabase, kyselyDatabases } from '../support/kysely.js'
import { anyLife, playLife } from '../support/reported-life.js'
import { runs } from '../support/runs.js'
import { euroReceiver, shopReceiver } from '../support/spending.js'
import { alice, bob } from '../support/world.js'

type View = 'incoming' | 'outgoing'
type Listed = IncomingPayment | OutgoingPayment

/** What selects a list: a column of the view and its value, or nothing for all payments. */
interface List {
  readonly view: View
  readonly by?: 'account' | 'receiver' | 'state'
  readonly is?: string
}

const lists: readonly List[] = [
  ...(['incoming', 'outgoing'] as const).flatMap((view) => [
    { view },
    ...[alice, bob].map((is) => ({ view, by: 'account' as const, is })),
  ]),
  ...[shopReceiver, euroReceiver].map((is) => ({
    view: 'outgoing' as const,
    by: 'receiver' as const,
    is,
  })),
  ...['open', 'completed', 'expired'].map((is) => ({ view: 'incoming', by: 'state', is }) as const),
  ...['created', 'begun', 'completed', 'failed'].map(
    (is) => ({ view: 'outgoing', by: 'state', is }) as const,
  ),
]

function memberOf(payment: Listed, by: NonNullable<List['by']>): string {
  if (by === 'account') return payment.walletAddress
  if (by === 'receiver') return (payment as OutgoingPayment).receiver
  if ('state' in payment) return payment.state
  return payment.completed ? 'completed' : payment.expiryRecorded ? 'expired' : 'open'
}

type Records = Awaited<ReturnType<typeof playLife>>['records']

/** The ids that belong to a list, in its order, told from the records alone. */
function expectedIn(records: Records, { view, by, is }: List): readonly string[] {
  return [...records.values()]
    .filter(({ kind }) => kind === `${view}-payment`)
    .map(({ record }) => record as Listed)
    .filter((payment) => !('state' in payment && /reserved|declined/.test(payment.state)))
    .filter((payment) => by === undefined || memberOf(payment, by) === is)
    .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
    .map(({ id }) => id.slice(8))
}

describe.each(kyselyDatabases.filter(({ dialect }) => dialect !== 'portable'))(
  'the views of payments on $name',
  ({ dialect, name, fresh: create }) => {
    if (create === undefined) return test.skip(`skipped: there is no ${name}`, () => {})

    let fresh: FreshKysely
    let db: HostDatabase
    let store: Store
    beforeAll(async () => {
      fresh = await create()
      db = fresh.connect()
      const options = { dialect, reports: true }
      expect(await migrate(db, options)).toMatchObject({ applied: ['records', 'reports'] })
      expect(await migrate(db, options)).toMatchObject({ applied: [] })
      store = kyselyStore(db, { dialect })
    })
    afterAll(() => fresh?.drop())

    const parameter = (n: number) => (dialect === 'postgres' ? `$${n}` : '?')
    async function run(text: string, values: readonly unknown[] = []) {
      const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...values]))
      return rows as readonly Readonly<Record<string, unknown>>[]
    }

    /** The statement of the documents for the page of a list after a row. */
    function pageQuery(
      { view, by, is }: List,
      after: Row | undefined,
      size: number,
    ): readonly [string, readonly unknown[]] {
      const values: unknown[] = []
      const bound = (value: unknown) => {
        values.push(value)
        return parameter(values.length)
      }
      const conditions = by === undefined ? [] : [`${by} = ${bound(is)}`]
      if (after !== undefined) {
        const [at, id] = [after['created_at'], after['payment_id']]
        conditions.push(
          `created_at >= ${bound(at)} AND (created_at > ${bound(at)} OR payment_id > ${bound(id)})`,
        )
      }
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
      const text = `SELECT * FROM open_payments_${view}_payments ${where}
      ORDER BY created_at, payment_id LIMIT ${size}`
      return [text, values]
    }
    type Row = Awaited<ReturnType<typeof run>>[number]

    /** Reads all pages of a list, and lets something happen after the first of them. */
    async function read(list: List, meanwhile: () => Promise<void> = async () => {}) {
      const ids: string[] = []
      for (let page = 1, after: Row | undefined; ; page++) {
        const rows: readonly Row[] = await run(...pageQuery(list, after, 2))
        // No index has the state, which changes: what a page keeps is chosen among the payments that it reads.
        const kept = rows.filter((row) => list.by !== 'state' || row['state'] === list.is)
        ids.push(...kept.map((row) => String(row['payment_id'])))
        if (rows.length < 2) return ids
        after = rows.at(-1)
        if (page === 1) await meanwhile()
      }
    }

    /** Puts the records of a life in the place of all others. */
    async function put(records: Records): Promise<void> {
      await run('DELETE FROM open_payments_records')
      await insert([...records.values()])
    }

    async function insert(
      records: readonly { readonly kind: RecordKind; readonly record: Stored }[],
    ) {
      for (let first = 0; first < records.length; first += 20) {
        const changes = records.slice(first, first + 20).map(({ kind, record }) => {
          return { kind, next: { ...record, version: 1 }, expectedVersion: 0 }
        })
        expect(await store.commit({ changes, guards: [] })).toBe(true)
      }
    }

    test('list each payment in exactly the lists that it belongs to, after any history', async () => {
      await fc.assert(
        fc.asyncProperty(anyLife, async (steps) => {
          const { records } = await playLife(steps)
          await put(records)
          for (const list of lists) expect(await read(list)).toEqual(expectedIn(records, list))
        }),
        { numRuns: runs(30, 4) },
      )
    })

    test('neither skip nor repeat a payment that is in a list all the time', async () => {
      const halves = fc.tuple(anyLife, fc.nat({ max: 60 }), fc.constantFrom(...lists))
      await fc.assert(
        fc.asyncProperty(halves, async ([steps, count, list]) => {
          const before = (await playLife(steps.slice(0, count))).records
          const after = (await playLife(steps)).records
          await put(before)
          const found = await read(list, () => put(after))
          const [early, late] = [before, after].map((records) => expectedIn(records, list))
          expect(new Set(found).size).toBe(found.length)
          for (const id of early ?? []) if (late?.includes(id)) expect(found).toContain(id)
          for (const id of found) expect([...(early ?? []), ...(late ?? [])]).toContain(id)
        }),
        { numRuns: runs(60, 8) },
      )
    })

    describe('take a few steps for a page, however many payments there are', () => {
      const created = 1_700_000_000_000
      const amount = { value: '18446744073709551615', assetCode: 'USD', assetScale: 2 }
      const recordsOf = (count: number) =>
        Array.from({ length: count }, (_, n) => {
          const id = (kind: string) => `namespac${kind}-${String(n).padStart(8, '0')}`
          const times = {
            createdAt: created + n,
            updatedAt: created + n,
            commandId: 'c'.repeat(22),
          }
          const [walletAddress, receiver] = [alice, shopReceiver]
          const lists = [{ list: `namespac ${alice}`, at: created + n }]
          const outgoing = {
            ...{
              id: id('out'),
              version: 1,
              lists,
              walletAddress,
              receiver,
              ...times,
              state: 'begun',
            },
            ...{ debitAmount: amount, receiveAmount: amount, sent: '0', delivered: '0' },
          }
          const incoming = {
            ...{ id: id('in'), version: 1, lists, walletAddress, ...times, completed: false },
            ...{ asset: amount, received: amount.value, expiresAt: created + n },
          }
          return [
            { kind: 'outgoing-payment', record: outgoing },
            { kind: 'incoming-payment', record: incoming },
          ] as const
        }).flat()

      /** Whether a page is read along an index, without a look at the rest. */
      async function isBounded(list: List): Promise<unknown> {
        const [first] = await run(...pageQuery(list, undefined, 2))
        const [text, values] = pageQuery(list, first, 2)
        if (dialect === 'sqlite') {
          const plan = JSON.stringify(await run(`EXPLAIN QUERY PLAN ${text}`, values))
          return (
            /USING (?:COVERING )?INDEX open_payments_report/.test(plan) && !/TEMP B-TREE/.test(plan)
          )
        }
        return db.connection().execute(async (connection) => {
          const on = async (query: string, bound: readonly unknown[] = []) =>
            (await connection.executeQuery(CompiledQuery.raw(query, [...bound]))).rows
          if (dialect === 'postgres') {
            // Whether the index serves the query, not whether the planner takes it for so few rows.
            for (const other of ['seqscan', 'bitmapscan', 'sort'])
              await on(`SET enable_${other} = off`)
            const plan = JSON.stringify(await on(`EXPLAIN ${text}`, values))
            return /Index Scan using open_payments_report/.test(plan) && !/Sort/.test(plan)
          }
          await on('FLUSH STATUS')
          expect(await on(text, values)).toHaveLength(2)
          const status = (await on(`SHOW SESSION STATUS LIKE 'Handler_read%'`)) as {
            Value: string
          }[]
          return status.reduce((sum, { Value }) => sum + Number(Value), 0) < 20
        })
      }

      test.each<List>([
        { view: 'incoming' },
        { view: 'incoming', by: 'account', is: alice },
        { view: 'outgoing' },
        { view: 'outgoing', by: 'account', is: alice },
        { view: 'outgoing', by: 'receiver', is: shopReceiver },
      ])('%j', async (list) => {
        await run('DELETE FROM open_payments_records')
        await insert(recordsOf(400))
        if (dialect === 'mysql') await run('ANALYZE TABLE open_payments_records')
        expect(await isBounded(list)).toBe(true)
        const [row] = await run(...pageQuery(list, undefined, 1))
        const value = row?.[list.view === 'incoming' ? 'received_value' : 'debit_value']
        expect(String(value)).toBe(amount.value)
      })
    })
  },
)
