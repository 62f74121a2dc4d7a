import { randomUUID } from 'node:crypto'
import { createPool, type Pool } from 'mariadb'
import { kyselyStore, migrate } from 'open-payments-server-kysely'
import { storeConformance } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMariadbTables, mariadbStore } from '../../examples/stores/mariadb.js'
import { type FreshKysely, type HostDatabase, mysqlUrl, onMysqlServers } from '../support/kysely.js'
import { patient } from '../support/runs.js'

/** The nodes of one cluster, separated by spaces. `.ci/galera` starts three and sets the variable. */
const urls = process.env['TEST_GALERA_URLS']?.split(' ')

describe('on a Galera cluster, the recipe', () => {
  if (urls === undefined) return test.skip('skipped: TEST_GALERA_URLS is not set', () => {})

  const prefix = `test_${randomUUID().replaceAll('-', '')}`
  const waiting = encodeURIComponent(JSON.stringify({ wsrep_sync_wait: 1 }))
  const nodes = urls.map((url) =>
    createPool(
      `${url}?connectionLimit=6&acquireTimeout=300000&bigIntAsNumber=true&sessionVariables=${waiting}`,
    ),
  )
  const [first] = nodes as [Pool]

  beforeAll(() => createMariadbTables(first, { prefix }))
  afterAll(async () => {
    await first.query(`DROP TABLE ${prefix}_records, ${prefix}_places`)
    await Promise.all(nodes.map((each) => each.end()))
  })

  describe('keeps the contract, with each store on another node', () => {
    let made = 0
    const makeStore = () => mariadbStore(nodes[made++ % nodes.length] as Pool, { prefix })
    for (const { name, rule, run } of storeConformance(makeStore, patient)) {
      test(`${name} (${rule})`, run)
    }
  })

  test('creates no tables if its connections may read what is out of date', async () => {
    const careless = createPool(urls[0] as string)
    await expect(createMariadbTables(careless, { prefix })).rejects.toThrow('wsrep_sync_wait')
    await careless.end()
  })
})

describe('on a Galera cluster, Kysely', () => {
  if (urls === undefined) return test.skip('skipped: TEST_GALERA_URLS is not set', () => {})

  const dialect = 'mysql'
  let fresh: FreshKysely
  let nodes: readonly HostDatabase[]
  beforeAll(async () => {
    fresh = await onMysqlServers(urls.map(mysqlUrl), ['wsrep_sync_wait = 1'])
    nodes = urls.map(() => fresh.connect())
    await Promise.all(nodes.map((db) => migrate(db, { dialect })))
  })
  afterAll(() => fresh?.drop())

  describe('keeps the contract, with each store on another node', () => {
    let made = 0
    const makeStore = () => kyselyStore(nodes[made++ % nodes.length] as HostDatabase, { dialect })
    for (const { name, rule, run } of storeConformance(makeStore, patient)) {
      test(`${name} (${rule})`, run)
    }
  })

  test('creates no tables if its connections may read what is out of date', async () => {
    const careless = await onMysqlServers(urls.map(mysqlUrl))
    await expect(migrate(careless.connect(), { dialect })).rejects.toThrow('wsrep_sync_wait')
    await careless.drop()
  })
})
