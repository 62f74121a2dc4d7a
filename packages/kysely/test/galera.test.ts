import { mysqlWith } from 'open-payments-test-support/mysql-variables'
import { expect, test } from 'vitest'
import { DatabaseSettingsError, migrate } from '../src/index.js'

/** Returns a node of a Galera cluster whose sessions wait for the commits of other nodes, or do not. */
function galeraNode(syncWait: string) {
  return mysqlWith({ wsrep_on: 'ON', wsrep_sync_wait: syncWait })
}

test('the tables are not created on a Galera node whose sessions read what is out of date', async () => {
  const { db, statements } = galeraNode('6')
  const error = await migrate(db, { dialect: 'mysql' }).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(DatabaseSettingsError)
  expect(error).toMatchObject({
    code: 'ERR_DATABASE_SETTINGS',
    message: expect.stringContaining('wsrep_sync_wait = 1'),
  })
  expect(statements).toHaveLength(1)
})

test('the tables are created on a Galera node whose sessions wait for the commits of others', async () => {
  const { db } = galeraNode('7')
  expect(await migrate(db, { dialect: 'mysql' })).toEqual({ applied: ['records'] })
})
