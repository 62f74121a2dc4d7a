import type { Pool } from 'pg'

/** A row of the floor's table. A conditional update of it is the lower bound for a commit. */
export interface FloorRow {
  readonly id: string
  readonly version: unknown
  readonly value: string
}

/** Creates the floor's table and fills it with the result of a query. */
export async function createFloorTable(pool: Pool, schema: string, rows: string): Promise<void> {
  const table = `${schema}.floor`
  await pool.query(
    `CREATE TABLE ${table} (id text PRIMARY KEY, version bigint NOT NULL, value text NOT NULL)`,
  )
  await pool.query(`INSERT INTO ${table} ${rows}`)
}

/** Returns a prepared update of a row at its expected version. */
export function floorUpdate(pool: Pool, schema: string): (row: FloorRow) => Promise<void> {
  const statement = {
    name: 'floor_update',
    text: `UPDATE ${schema}.floor SET version = $2::bigint + 1, value = $3
      WHERE id = $1 AND version = $2`,
  }
  return async ({ id, version, value }) => {
    const { rowCount } = await pool.query({ ...statement, values: [id, version, value] })
    if (rowCount !== 1) throw new Error('the update found no row')
  }
}
