import { afterAll, beforeAll, describe, test } from 'vitest'
import { migrate, sqliteStore } from '../../../adapters/sqlite.js'
import type { Store } from '../../../src/index.js'
import { describeEndedTransactions, type WayIn } from '../../support/ended-transactions.js'
import { runs } from '../../support/runs.js'
import { sentBySqlite } from '../../support/sent-statements.js'
import { freshSqlite, sqliteDrivers, withoutSqlite } from '../../support/sqlite.js'

describe.each(Object.entries(sqliteDrivers))('a transaction on %s', (_, open) => {
  if (open === undefined) return test.skip(withoutSqlite, () => {})

  let fresh: ReturnType<typeof freshSqlite>
  let way: WayIn
  beforeAll(async () => {
    fresh = freshSqlite(open)
    const database = fresh.connect()
    const sent = sentBySqlite(database)
    await migrate(database)
    const store = sqliteStore(database)
    const run = (work: (inside: Store) => Promise<void>) =>
      store.transaction(async (inside) => {
        await work(inside)
        return { ok: true }
      })
    way = { run, outside: sqliteStore(fresh.connect()), sent, checksEnd: true }
  })
  afterAll(() => fresh?.drop())

  // The store runs all statements of a commit without a pause.
  describeEndedTransactions(() => way, { moments: runs(240, 24), interleaves: false })
})
