import { kyselyStore, migrate } from 'open-payments-server-kysely'
import { describe, expect, test } from 'vitest'
import { servers } from '../support/databases.js'
import { runInputs } from '../support/inputs/run.js'
import { mysqlUrl, onMysqlServers } from '../support/kysely.js'

describe('an arbitrary request to a store on MariaDB', () => {
  const { MariaDB: server } = servers
  if (server === undefined) return test.skip('skipped: there is no MariaDB', () => {})

  test('receives the same response as with the memory store', async () => {
    const fresh = await onMysqlServers([mysqlUrl(server)])
    const db = fresh.connect()
    await migrate(db, { dialect: 'mysql' })
    const options = { seed: 'stores', count: 1_500 }
    const newStore = () => kyselyStore(db, { dialect: 'mysql' })
    const { problems, counts } = await runInputs({ ...options, newStore })
    await fresh.drop()
    expect(problems).toEqual([])
    expect(counts).toEqual((await runInputs(options)).counts)
  })
})
