import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  checkTables,
  migrate,
  type PostgresClient,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { anyPostgres } from '../../support/databases.js'

/** How a driver returns a row, and what `checkTables` says of it. */
const drivers: Readonly<Record<string, readonly [(row: object) => object, string]>> = {
  'renames columns': [
    (row) => {
      const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, first) => first.toUpperCase())
      return Object.fromEntries(Object.entries(row).map(([name, value]) => [camel(name), value]))
    },
    'the driver renames the columns of rows, such as due_at: give the library a pool that does not',
  ],
  'misreads integers': [
    (row) => ('due_at' in row ? { ...row, due_at: 239 } : row),
    'the driver misreads integers of 64 bits, such as with `binary: true`: give the library a pool that does not',
  ],
}

describe.each(Object.entries(drivers))('a driver that %s', (_, [change, problem]) => {
  let database: Awaited<ReturnType<typeof anyPostgres>>
  let client: PostgresClient
  let store: Store
  let statements = 0
  beforeAll(async () => {
    database = await anyPostgres()
    client = {
      async query(statement) {
        statements += 1
        const { rows } = await database.client.query(statement)
        return { rows: rows.map(change) as Record<string, unknown>[] }
      },
    }
    store = postgresStore(client, database.options)
  })
  afterAll(() => database?.close())

  test('is refused by checkTables and migrate, which name the remedy', async () => {
    const check = await checkTables(client, database.options)
    expect(check).toEqual({ ok: false, problem })
    const migrated = migrate({ ...client, connect: never } as never, database.options)
    await expect(migrated).rejects.toMatchObject({
      code: 'ERR_DATABASE_SETTINGS',
      message: problem,
    })
  })

  test('ends a search for due records with an error, after a few statements', async () => {
    const next = { id: 'renamed-1', version: 1, commandId: 'a', dueAt: 5 }
    await store.commit({ changes: [{ kind: 'event', next, expectedVersion: 0 }], guards: [] })
    statements = 0
    await expect(store.due('event', 'renamed-', 10, 10)).rejects.toThrow(
      'the database returns another due_at of a record than it was given',
    )
    expect(statements).toBeLessThan(8)
  })
})

function never(): never {
  throw new Error('the pool is not used')
}
