import type { PostgresClient } from 'open-payments-server/postgres'

/** Creates a table of the wallet's own unless it exists, and returns a function that runs queries. */
export async function openTable(database: PostgresClient, definition: string) {
  const query = (text: string, values: unknown[] = []) => database.query({ text, values })
  const create = () => query(`CREATE TABLE IF NOT EXISTS ${definition}`)
  // If two processes create the table concurrently, one fails and then finds the table when it retries.
  await create().catch(create)
  return query
}
