import { storeConformance } from 'open-payments-server-testing'
import {
  type FreshKysely,
  type HostDatabase,
  mysqlUrl,
  onMysqlServers,
} from 'open-payments-test-support/kysely'
import { patient } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kyselyStore, migrate } from '../src/index.js'

/** The nodes of one cluster, separated by spaces. `.ci/galera` starts three and sets the variable. */
const urls = process.env['TEST_GALERA_URLS']?.split(' ')

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
