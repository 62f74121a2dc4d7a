import { storeConformance } from 'open-payments-server-testing'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTables, migrate, postgresStore } from '../../../adapters/postgres.js'
import { type FreshPostgres, freshPostgres } from '../../support/databases.js'
import { patient } from '../../support/runs.js'
import { pay } from '../../support/spending.js'
import { errorOf, payingClient, spentUnder } from '../../support/spending-client.js'

/** pgpool-II, which sends reads to a standby an hour behind the server of `TEST_DATABASE_URL`. `.ci/pgpool` sets it. */
const connectionString = process.env['TEST_PGPOOL_URL']

describe('behind pgpool-II with a standby that has nothing yet, the store', () => {
  if (connectionString === undefined)
    return test.skip('skipped: TEST_PGPOOL_URL is not set', () => {})

  let fresh: FreshPostgres
  let pools: readonly [Pool, Pool]
  beforeAll(async () => {
    fresh = await freshPostgres()
    const connect = () => fresh.connect({ connectionString })
    pools = [connect(), connect()]
  })
  afterAll(() => fresh.drop())

  test('is ready, and migrates, while a read of the host finds nothing', async () => {
    const [pool] = pools
    const { schema } = fresh
    expect(await checkTables(pool, { schema })).toEqual({ ok: true })
    expect(await migrate(pool, { schema })).toEqual({ applied: [] })
    const text = `SELECT count(*)::int AS count FROM ${schema}.open_payments_records`
    await expect(pool.query(text)).rejects.toThrow('does not exist')
    const { rows } = await pool.query(`/*NO LOAD BALANCE*/ ${text}`)
    expect(rows).toEqual([{ count: 0 }])
  })

  describe('keeps the contract', () => {
    let made = 0
    const makeStore = () => postgresStore(pools[made++ % 2] as Pool, { schema: fresh.schema })
    for (const { name, rule, run } of storeConformance(makeStore, patient)) {
      test(`${name} (${rule})`, run)
    }
  })

  test('makes each of 24 payments at once, and none above the limit; an old token reads nothing', async () => {
    const store = postgresStore(pools[0], { schema: fresh.schema })
    const { client, token, accessToken } = await payingClient({ store })
    const payments = await Promise.all(Array.from({ length: 24 }, () => pay(client, token, 100)))
    expect(payments.map(({ status }) => status)).toEqual(payments.map(() => 201))
    expect(errorOf(await pay(client, token, 101))).toEqual([403, 'insufficient_grant'])
    expect(await spentUnder(client, token)).toMatchObject({ spentDebitAmount: { value: '2400' } })
    const rotated = await client.rotate(accessToken)
    const { access_token: newToken } = rotated.body
    expect(errorOf(await pay(client, token, 1))).toEqual([401, 'invalid_token'])
    expect(await spentUnder(client, token)).toMatchObject({ error: { code: 'invalid_token' } })
    expect(await spentUnder(client, newToken.value)).toMatchObject({
      spentDebitAmount: { value: '2400' },
    })
  })
})
