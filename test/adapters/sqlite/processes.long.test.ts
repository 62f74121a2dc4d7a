import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { migrate, sqliteStore } from '../../../adapters/sqlite.js'
import { loadOne } from '../../support/one-record.js'
import { freshSqlite, sqliteDrivers, withoutSqlite } from '../../support/sqlite.js'

const run = promisify(execFile)
const times = 200

describe.each(Object.entries(sqliteDrivers))('SQLite through %s', (driver, open) => {
  if (open === undefined) return test.skip(withoutSqlite, () => {})

  test('counts each commit of four processes on one file, which they create together', async () => {
    const fresh = freshSqlite(open)
    try {
      const program = ['--import', 'tsx', 'test/adapters/sqlite/writer.ts']
      const writers = Array.from({ length: 4 }, () =>
        run(process.execPath, [...program, driver, fresh.file, String(times)]),
      )
      const lost = (await Promise.all(writers)).map(({ stdout }) => Number(stdout))
      const store = sqliteStore(fresh.connect())
      expect((await loadOne(store, 'budget', 'counter-'))?.version).toBe(4 * times)
      expect(await loadOne(store, 'event', `counter-${4 * times}`)).toBeDefined()
      // Otherwise they have not written at the same time.
      expect(Math.max(...lost)).toBeGreaterThan(0)
    } finally {
      fresh.drop()
    }
  })

  test('gives up while another connection holds the lock, and says that nothing was written', async () => {
    const fresh = freshSqlite(open)
    try {
      const [holder, database] = [fresh.connect(), fresh.connect()]
      await migrate(database)
      holder.exec('BEGIN IMMEDIATE')
      const store = sqliteStore(database)
      const next = { id: 'locked-out', version: 1, commandId: 'locked out' }
      const changes = [{ kind: 'quote', next, expectedVersion: 0 }] as const
      expect(await store.commit({ changes, guards: [] })).toBe(false)
      expect(await loadOne(store, 'quote', 'locked-out')).toBeUndefined()
      const restart = { code: 'ERR_RESTART_TRANSACTION' }
      await expect(store.transaction(async () => ({ ok: true }))).rejects.toMatchObject(restart)
      holder.exec('ROLLBACK')
      expect(await store.commit({ changes, guards: [] })).toBe(true)
    } finally {
      fresh.drop()
    }
  })
})
