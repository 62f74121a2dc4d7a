import type { EventHandler } from 'open-payments-server'
import type { Pool } from 'pg'
import type PgBoss from 'pg-boss'

// #region pg-boss
/** Makes one job of an event, in a transaction with a row that remembers it. */
export function toPgBoss(pool: Pool, boss: PgBoss, queue: string): EventHandler {
  return async (event) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const insert = 'INSERT INTO queued_events (id) VALUES ($1) ON CONFLICT DO NOTHING'
      const { rowCount } = await client.query(insert, [event.id])
      const executeSql = (text: string, values: unknown[]) => client.query(text, values)
      if (rowCount === 1) await boss.send(queue, event, { db: { executeSql } })
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
}
// #endregion pg-boss
