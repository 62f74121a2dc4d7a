import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStatements } from '../../../adapters/postgres/statements.js'
import { type FreshPostgres, freshPostgres, servers } from '../../support/databases.js'

const namespace = 'wallet-0'

describe.skipIf(servers.PostgreSQL === undefined)('the look-up of due events on PostgreSQL', () => {
  let fresh: FreshPostgres

  beforeAll(async () => {
    fresh = await freshPostgres()
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
  async function explained(mode: string, from = Number.MIN_SAFE_INTEGER) {
    const client = await fresh.pool.connect()
    try {
      const { text } = createStatements(fresh.schema, false).due('event', namespace, 40_000, 90)
      await client.query(`SET plan_cache_mode = ${mode}`)
      await client.query(`PREPARE due (text, text, bigint, int, bigint) AS ${text}`)
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE due ('event', '${namespace}', 40000, 90, ${from})`,
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

  test('is an index scan in every state of the table, also under a held snapshot', async () => {
    const scan = ['Limit', 'Index Scan']
    const plans = async () =>
      Promise.all(['force_generic_plan', 'force_custom_plan'].map((mode) => explained(mode)))
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
    await insert('event', 30_001, 30_010)
    const all = await explained('auto')
    expect(all.buffers).toBeGreaterThan(1_000)
    const bounded = await explained('auto', 29_900)
    expect(bounded.nodes).toEqual(scan)
    expect(bounded.buffers).toBeLessThan(all.buffers / 10)
    await holder.query('ROLLBACK')
    holder.release()
  })
})
