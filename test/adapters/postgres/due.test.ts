import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dueBounds } from '../../../adapters/postgres/due.js'
import { createStatements } from '../../../adapters/postgres/statements.js'
import { postgresStore } from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'

type Deed =
  | { readonly does: 'insert'; readonly ageMs: number }
  | { readonly does: 'remove'; readonly which: number }
  | { readonly does: 'look up'; readonly afterMs: number; readonly limit: number }

const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({
    does: fc.constant('insert' as const),
    ageMs: fc.integer({ min: -9_000, max: 99_000 }),
  }),
  fc.record({ does: fc.constant('remove' as const), which: fc.nat(9) }),
  // A clock may go back.
  fc.record({
    does: fc.constant('look up' as const),
    afterMs: fc.oneof(
      { weight: 9, arbitrary: fc.nat(9_000) },
      { weight: 1, arbitrary: fc.integer({ min: -60_000, max: 0 }) },
    ),
    limit: fc.integer({ min: 1, max: 5 }),
  }),
)

describe('with a lower bound, a look-up of due events', () => {
  test('finds each within ten that have room for it, and at once if it is late by less than 5 s', () => {
    fc.assert(
      fc.property(fc.array(deed, { minLength: 20, maxLength: 150 }), (deeds) => {
        const bounds = dueBounds()
        let now = 1_000_000
        let latest = now
        let events: { readonly dueAt: number; readonly insertedAt: number; missed: number }[] = []
        for (const each of deeds) {
          if (each.does === 'insert') {
            events.push({ dueAt: now - each.ageMs, insertedAt: now, missed: 0 })
          } else if (each.does === 'remove') {
            events = events.filter((_, index) => index !== each.which)
          } else {
            now += each.afterMs
            const from = bounds.begin('slice', now)
            const due = events
              .filter(({ dueAt }) => dueAt <= now)
              .toSorted((a, b) => a.dueAt - b.dueAt)
            const found = due.filter(({ dueAt }) => dueAt >= from).slice(0, each.limit)
            bounds.seen('slice', from, now, found[0]?.dueAt)
            for (const [place, event] of due.entries()) {
              if (found.includes(event)) event.missed = 0
              // Older events are found first, so that only those in front of it count.
              else if (place < each.limit) event.missed += 1
              expect(event.missed).toBeLessThan(10)
            }
            const isCut = found.length === each.limit
            const isPunctual = ({ dueAt }: { dueAt: number }) =>
              now >= latest && dueAt > latest - 5_000
            const late = due.filter((event) => isPunctual(event) && !found.includes(event))
            if (!isCut) expect(late).toEqual([])
            latest = Math.max(latest, now)
          }
        }
      }),
    )
  })

  test('remembers each slice by itself, and forgets all when there are too many', () => {
    const bounds = dueBounds()
    for (const slice of ['one', 'two']) {
      bounds.seen(slice, bounds.begin(slice, 50_000), 50_000, slice === 'one' ? 20_000 : undefined)
    }
    expect(bounds.begin('one', 60_000)).toBe(15_000)
    expect(bounds.begin('two', 60_000)).toBe(45_000)
    for (let i = 0; i < 1_000; i++)
      bounds.seen(`${i}`, bounds.begin(`${i}`, 9_000), 9_000, undefined)
    expect(bounds.begin('one', 60_000)).toBe(Number.MIN_SAFE_INTEGER)
  })
})

const namespace = 'wallet-0'

describe.skipIf(servers.PostgreSQL === undefined)('the look-up of due events on PostgreSQL', () => {
  let fresh: FreshPostgres
  let store: Store

  beforeAll(async () => {
    fresh = await freshPostgres()
    store = postgresStore(fresh.pool, { schema: fresh.schema })
    await fresh.pool.query(
      `ALTER TABLE ${fresh.schema}.open_payments_records SET (autovacuum_enabled = false)`,
    )
  })

  afterAll(() => fresh?.drop())

  /** Inserts records due at 1, 2, 3… */
  async function insert(kind: string, from: number, to: number): Promise<void> {
    await fresh.pool.query(
      `INSERT INTO ${fresh.schema}.open_payments_records (kind, id, version, value, due_at)
        SELECT $1, $2 || i, 1, json_build_object('id', $2 || i, 'version', 1, 'commandId', 'c', 'dueAt', i), i
        FROM generate_series($3::int, $4::int) i`,
      [kind, namespace, from, to],
    )
  }

  /** Returns the plan of the prepared statement, and the buffers that it touches. */
  async function explained(mode: string, from: number, until: number) {
    const client = await fresh.pool.connect()
    try {
      const { text } = createStatements(fresh.schema, false).due(
        'event',
        namespace,
        from,
        until,
        90,
      )
      await client.query(`SET plan_cache_mode = ${mode}`)
      await client.query(`PREPARE due (text, text, bigint, bigint, int) AS ${text}`)
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE due ('event', '${namespace}', ${from}, ${until}, 90)`,
      )
      const [{ Plan: plan }] = rows[0]['QUERY PLAN']
      return {
        nodes: [
          plan['Node Type'],
          ...plan.Plans.map((each: { readonly 'Node Type': string }) => each['Node Type']),
        ],
        buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
      }
    } finally {
      client.release(true)
    }
  }

  test('is an index scan in every state of the table, and reads few pages under a held snapshot', async () => {
    const scan = ['Limit', 'Index Scan']
    const plans = async () =>
      Promise.all(
        ['force_generic_plan', 'force_custom_plan'].flatMap((mode) =>
          [Number.MIN_SAFE_INTEGER, 29_000].map((from) => explained(mode, from, 40_000)),
        ),
      )
    const expectScans = async () => {
      for (const { nodes } of await plans()) expect(nodes).toEqual(scan)
    }
    await expectScans()
    await insert('quote', 1, 20_000)
    await insert('event', 1, 50)
    await expectScans()
    await fresh.pool.query(`ANALYZE ${fresh.schema}.open_payments_records`)
    await expectScans()
    await insert('event', 51, 30_000)
    await expectScans()

    const holder = await fresh.pool.connect()
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await holder.query(`SELECT 1 FROM ${fresh.schema}.open_payments_records LIMIT 1`)
    await fresh.pool.query(`DELETE FROM ${fresh.schema}.open_payments_records WHERE kind = 'event'`)
    await fresh.pool.query(`ANALYZE ${fresh.schema}.open_payments_records`)
    await expectScans()
    const [all, bounded] = [
      await explained('auto', Number.MIN_SAFE_INTEGER, 40_000),
      await explained('auto', 35_000, 40_000),
    ]
    expect(all.buffers).toBeGreaterThan(1_000)
    expect(bounded.buffers).toBeLessThan(50)
    await holder.query('ROLLBACK')
    holder.release()
  })

  test('finds an event with an older time within ten look-ups, and one in a transaction at once', async () => {
    await fresh.pool.query(`DELETE FROM ${fresh.schema}.open_payments_records`)
    const lookUp = async () => (await store.due('event', namespace, 100_000, 5)).length
    expect(await lookUp()).toBe(0)
    await insert('event', 94_000, 94_000)
    const found = []
    for (let i = 0; i < 10; i++) found.push(await lookUp())
    expect(found).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    await insert('event', 96_000, 96_000)
    expect(await lookUp()).toBe(2)
    const client = await fresh.pool.connect()
    await client.query('BEGIN')
    const inside = postgresStore.inTransaction(client, { schema: fresh.schema })
    expect(await inside.due('event', namespace, 100_000, 5)).toHaveLength(2)
    await client.query('ROLLBACK')
    client.release()
  })
})
