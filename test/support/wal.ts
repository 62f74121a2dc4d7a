import type { Pool } from 'pg'

/** What PostgreSQL wrote to its log for the tables of one schema while something ran. */
export interface Written {
  readonly bytes: number
  /** Whether the log contains a whole page. The first change of a page after a checkpoint writes one. */
  readonly hasPages: boolean
}

/** Measures the WAL of the records in one schema, whatever other sessions write. Needs a superuser. */
export async function walMeter(pool: Pool, schema: string) {
  await pool.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect').catch(async () => {
    // Another test has created it at the same time.
    await pool.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
  })
  const position = async (): Promise<string> =>
    (await pool.query('SELECT pg_current_wal_insert_lsn()::text AS lsn')).rows[0].lsn

  return async (work: () => Promise<unknown>): Promise<Written> => {
    const from = await position()
    await work()
    const to = await position()
    // Only what is flushed can be read, and this commit flushes it.
    await pool.query(`SELECT pg_logical_emit_message(true, 'flush', '')`)
    const { rows } = await pool.query(
      `WITH own AS (
        SELECT string_agg('/' || pg_relation_filenode(c.oid) || ' ', '|') AS files
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relkind IN ('r', 'i')
      ),
      written AS (SELECT * FROM pg_get_wal_records_info($2::pg_lsn, $3::pg_lsn)),
      changes AS (SELECT written.* FROM written, own WHERE block_ref ~ own.files),
      ends AS (
        SELECT * FROM written WHERE resource_manager = 'Transaction'
          AND xid IN (SELECT xid FROM changes WHERE xid::text <> '0')
      )
      SELECT coalesce(sum(record_length - fpi_length), 0)::int AS bytes,
          coalesce(sum(fpi_length), 0) > 0 AS has_pages
        FROM (SELECT * FROM changes UNION ALL SELECT * FROM ends) AS all_of_them`,
      [schema, from, to],
    )
    return { bytes: rows[0].bytes, hasPages: rows[0].has_pages }
  }
}
