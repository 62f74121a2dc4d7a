import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStatements } from '../../../adapters/postgres/statements.js'
import { postgresStore } from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'

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

  test('returns the records from the lower bound on, also in a transaction', async () => {
    await fresh.pool.query(`DELETE FROM ${fresh.schema}.open_payments_records`)
    await insert('event', 1, 9)
    const found = async (in_: Store, from?: number) =>
      (await in_.due('event', namespace, 8, 5, from)).map(({ dueAt }) => dueAt)
    expect(await found(store)).toEqual([1, 2, 3, 4, 5])
    expect(await found(store, 6)).toEqual([6, 7, 8])
    const client = await fresh.pool.connect()
    await client.query('BEGIN')
    expect(await found(postgresStore.inTransaction(client, { schema: fresh.schema }), 7)).toEqual([
      7, 8,
    ])
    await client.query('ROLLBACK')
    client.release()
  })
})
