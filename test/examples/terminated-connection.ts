import { type PostgresTransactions, postgresStore } from 'open-payments-server/postgres'
import type { PoolClient } from 'pg'
import { openPool } from '../../examples/host-transaction/pool.js'

const pool = openPool()

/** Runs transactions as query builders do: none of them listens to errors of the connection. */
const transactions: PostgresTransactions<PoolClient> = {
  async transaction(work) {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const result = await work(client)
      await client.query('COMMIT')
      client.release()
      return result
    } catch (error) {
      client.release(true)
      throw error
    }
  },
  query: async (client, text, values) => (await client.query(text, [...values])).rows,
}

const terminated = postgresStore.transaction(transactions, async (client) => {
  // `events.once` would listen to errors.
  const ended = new Promise((resolve) => client.once('end', resolve))
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
  await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
  await ended
  return { ok: true }
})
await terminated.catch((error) => console.log(`rejected: ${error.code}`))

const later = await postgresStore.transaction(transactions, async (client) => ({
  ok: (await client.query('SELECT 1')).rowCount === 1,
}))
console.log(`then: ${later.ok}`)
await pool.end()
