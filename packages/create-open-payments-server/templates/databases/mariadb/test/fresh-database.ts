import { randomBytes } from 'node:crypto'
import { createConnection } from 'mysql2/promise'
import { openDatabase } from '../src/database.js'
import type { Database } from '../src/sql.js'

/** The server for the tests, which compose.yaml starts. The tests create databases of their own. */
const server = process.env['TEST_DATABASE'] ?? 'mysql://root:development@127.0.0.1:3306'

/** Opens an empty database for one test, and removes it when it is closed. */
export async function freshDatabase(): Promise<Database> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(`CREATE DATABASE ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const database = openDatabase(url.href)
  return {
    ...database,
    async close() {
      await database.close()
      await onServer(`DROP DATABASE ${name}`)
    },
  }
}

async function onServer(statement: string): Promise<void> {
  const connection = await createConnection(server).catch((cause) => {
    throw new Error(`no MariaDB at ${server}: run docker compose up --wait`, { cause })
  })
  await connection.query(statement)
  await connection.end()
}
