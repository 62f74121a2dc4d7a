import { randomBytes } from 'node:crypto'
import { openDatabase as openMariadb } from 'create-open-payments-server/databases/mariadb'
import { databaseOn } from 'create-open-payments-server/databases/postgres'
import type { Database } from 'create-open-payments-server/wallet/sql'
import { createConnection } from 'mysql2/promise'
import { emptyPglite, freshPostgres, servers } from 'open-payments-test-support/databases'
import { databaseOn as databaseOnPglite } from 'open-payments-test-support/examples/created-wallet'
import { mysqlUrl } from 'open-payments-test-support/kysely'
import { afterAll, beforeAll } from 'vitest'
import { createPacketTables } from '../src/index.js'

async function prepared(database: Database): Promise<Database> {
  await database.migrateRecords()
  await createPacketTables(database)
  return database
}

/** PostgreSQL with the tables of the library and of the book: a server if there is one, else embedded. */
export async function postgres(): Promise<Database> {
  if (servers.PostgreSQL === undefined) return prepared(databaseOnPglite(await emptyPglite()))
  const { schema, connect, drop } = await freshPostgres({ migrated: false })
  return prepared({ ...databaseOn(connect({ options: `-c search_path=${schema}` })), close: drop })
}

/**
 * Opens databases before the tests of a file, and closes them after. Returns a function that removes all records in
 * them, so that a test begins with none, and resolves to them.
 */
export function usePostgres(count: number): () => Promise<readonly Database[]> {
  let databases: readonly Database[] = []
  beforeAll(async () => {
    const opened: Database[] = []
    for (let i = 0; i < count; i += 1) opened.push(await postgres())
    databases = opened
  })
  afterAll(async () => {
    await Promise.all(databases.map((database) => database.close()))
  })
  return async () => {
    for (const database of databases) await clear(database)
    return databases
  }
}

/** Removes all records of a wallet on PostgreSQL, so that the next test begins with none. */
export async function clear({ sql }: Database): Promise<void> {
  // On small tables, TRUNCATE takes much longer: it makes new files and waits for the disk.
  await sql(`DO $$ DECLARE name TEXT; BEGIN
    FOR name IN SELECT table_name FROM information_schema.tables
      WHERE table_schema = current_schema() AND table_name NOT LIKE '%migration%'
    LOOP EXECUTE 'DELETE FROM ' || quote_ident(name); END LOOP;
  END $$`)
}

/** SQLite in memory, or `undefined` if this Node.js has none. */
export async function sqlite(): Promise<Database | undefined> {
  const module = await import('create-open-payments-server/wallet/database').catch(() => undefined)
  return module && prepared(module.openDatabase(':memory:'))
}

/** MariaDB, or `undefined` without a server. */
export async function mariadb(): Promise<Database | undefined> {
  if (servers.MariaDB === undefined) return undefined
  const url = new URL(mysqlUrl(servers.MariaDB))
  const admin = await createConnection(url.href)
  const name = `test_${randomBytes(6).toString('hex')}`
  await admin.query(`CREATE DATABASE ${name}`)
  url.pathname = `/${name}`
  const database = openMariadb(url.href)
  return prepared({
    ...database,
    async close() {
      await database.close()
      await admin.query(`DROP DATABASE ${name}`)
      await admin.end()
    },
  })
}
