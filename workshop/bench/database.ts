import { randomBytes } from 'node:crypto'
import { Pool, type PoolConfig } from 'pg'

export const connectionString =
  process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/test'
export const poolSize = 10

/** A schema of the benchmark's own, which is dropped afterwards. */
export interface Database {
  readonly schema: string
  connect(config?: PoolConfig): Pool
}

export async function withDatabase<Result>(
  run: (database: Database) => Promise<Result>,
): Promise<Result> {
  const schema = `bench_${randomBytes(6).toString('hex')}`
  const pools: Pool[] = []
  const connect = (config: PoolConfig = {}) => {
    const pool = new Pool({ connectionString, max: poolSize, ...config })
    pools.push(pool)
    return pool
  }
  const pool = connect({ max: 1 })
  await pool.query(`CREATE SCHEMA ${schema}`)
  try {
    return await run({ schema, connect })
  } finally {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await Promise.all(pools.filter((each) => !each.ended).map((each) => each.end()))
  }
}

/** Returns whether PostgreSQL is available for the benchmark; logs if it is not. */
export async function hasDatabase(): Promise<boolean> {
  const probe = new Pool({ connectionString, max: 1 })
  try {
    await probe.query('SELECT 1')
    return true
  } catch (error) {
    console.error(
      `skipping PostgreSQL, which is not reachable at TEST_DATABASE_URL: ${String(error)}`,
    )
    return false
  } finally {
    await probe.end()
  }
}
