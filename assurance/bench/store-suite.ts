import { DynamoDB } from '@aws-sdk/client-dynamodb'
import { PGlite } from '@electric-sql/pglite'
import { kyselyStore, migrate as migrateKysely } from 'open-payments-server-kysely'
import { storeConformance } from 'open-payments-server-testing'
import { Pool } from 'pg'
import { createClient } from 'redis'
import { fromPglite, migrate, postgresStore } from '../../adapters/postgres.js'
import { migrate as migrateSqlite, sqliteStore } from '../../adapters/sqlite.js'
import { createDynamodbTable, dynamodbStore } from '../../examples/stores/dynamodb.js'
import { etcdStore } from '../../examples/stores/etcd.js'
import { type RedisClient, redisStore } from '../../examples/stores/redis.js'
import { memoryStore, type Store } from '../../src/index.js'
import { kyselyDatabases } from '../../test/support/kysely.js'
import { freshSqlite, sqliteDrivers } from '../../test/support/sqlite.js'

/**
 * Measures how long the conformance suite takes on each store, with its cases side by side, and prints a table:
 * `npx tsx assurance/bench/store-suite.ts [milliseconds added to each operation…]`, by default 0 and 100. It runs on
 * the servers that compose.yaml names, on those of `.ci/etcd` and `.ci/dynamodb`, and on the drivers of SQLite that
 * this Node has.
 */
const delays = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [0, 100]
const sideBySide = 8

function delayed(store: Store, delayMs: number): Store {
  const after = async <Result>(call: () => Promise<Result>) => {
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
    return call()
  }
  return {
    load: (...query) => after(() => store.load(...query)),
    commit: (commit) => after(() => store.commit(commit)),
    list: (query) => after(() => store.list(query)),
    due: (...query) => after(() => store.due(...query)),
    remove: (...record) => after(() => store.remove(...record)),
  }
}

/** Returns the seconds that the suite takes, and the number of cases that failed. */
async function timed(name: string, store: Store, delayMs: number): Promise<string> {
  const left = [...storeConformance(() => delayed(store, delayMs), { sameData: true })]
  let failed = 0
  const startedAt = performance.now()
  async function work(): Promise<void> {
    for (let each = left.shift(); each !== undefined; each = left.shift()) {
      await each.run().catch((error) => {
        failed += 1
        console.error(`${name}: ${error.message}`)
      })
    }
  }
  await Promise.all(Array.from({ length: sideBySide }, work))
  const seconds = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`
  return failed === 0 ? seconds : `${seconds}, ${failed} cases failed`
}

async function measure(name: string, store: Store): Promise<void> {
  const cells: string[] = []
  for (const delayMs of delays) cells.push(await timed(name, store, delayMs))
  console.log(`| ${[name, ...cells].join(' | ')} |`)
}

const { TEST_DATABASE_URL, TEST_REDIS_URL } = process.env
const { TEST_ETCD_URL, TEST_DYNAMODB_URL } = process.env
const prefix = `suite_${Date.now()}`

console.log(`| store | ${delays.map((ms) => `${ms} ms for each operation`).join(' | ')} |`)
console.log(`|---|${delays.map(() => '--:').join('|')}|`)

await measure('memory', memoryStore())

for (const [driver, open] of Object.entries(sqliteDrivers)) {
  if (open === undefined) continue
  const fresh = freshSqlite(open)
  const database = fresh.connect()
  await migrateSqlite(database)
  await measure(`SQLite, ${driver}`, sqliteStore(database))
  fresh.drop()
}

const lite = await PGlite.create()
await migrate(fromPglite(lite))
await measure('PGlite', postgresStore(fromPglite(lite)))
await lite.close()

if (TEST_DATABASE_URL !== undefined) {
  const pool = new Pool({ connectionString: TEST_DATABASE_URL, max: 10 })
  await pool.query(`CREATE SCHEMA ${prefix}`)
  await migrate(pool, { schema: prefix })
  await measure('PostgreSQL', postgresStore(pool, { schema: prefix }))
  await pool.query(`DROP SCHEMA ${prefix} CASCADE`)
  await pool.end()
}

for (const { name, dialect, fresh: create } of kyselyDatabases) {
  if (create === undefined) continue
  const fresh = await create()
  const db = fresh.connect()
  await migrateKysely(db, { dialect })
  await measure(`Kysely on ${name}`, kyselyStore(db, { dialect }))
  await fresh.drop()
}

if (TEST_REDIS_URL !== undefined) {
  const client = createClient({ url: TEST_REDIS_URL })
  await client.connect()
  await measure('Redis recipe', redisStore(client as unknown as RedisClient, { prefix }))
  await client.del([`{${prefix}}:records`, `{${prefix}}:places`])
  await client.close()
}

if (TEST_ETCD_URL !== undefined) {
  await measure('etcd recipe', etcdStore({ url: TEST_ETCD_URL, prefix }))
}

if (TEST_DYNAMODB_URL !== undefined) {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  const client = new DynamoDB({ endpoint: TEST_DYNAMODB_URL, region: 'local', credentials })
  await createDynamodbTable(client, { table: prefix })
  await measure('DynamoDB recipe, on DynamoDB Local', dynamodbStore(client, { table: prefix }))
  await client.deleteTable({ TableName: prefix })
}
