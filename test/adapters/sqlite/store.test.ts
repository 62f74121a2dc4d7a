import { storeConformance } from 'open-payments-server-testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  DatabaseNewerError,
  migrate,
  migrationsOf,
  type SqliteStore,
  sqliteStore,
} from '../../../adapters/sqlite.js'
import type { Store } from '../../../src/index.js'
import { loadOne } from '../../support/one-record.js'
import { isLong } from '../../support/runs.js'
import {
  freshSqlite,
  type SqliteConnection,
  sqliteDrivers,
  withoutSqlite,
} from '../../support/sqlite.js'

function change(id: string, version = 1) {
  const next = { id, version, commandId: `${id} ${version}` }
  return { kind: 'quote', next, expectedVersion: version - 1 } as const
}

function put(store: Store, ...changes: readonly ReturnType<typeof change>[]): Promise<boolean> {
  return store.commit({ changes, guards: [] })
}

/** `npm test` runs the suite on one kind of record. */
const kinds = isLong ? {} : ({ kinds: ['grant'] } as const)

describe.each(Object.entries(sqliteDrivers))('SQLite through %s', (_, open) => {
  if (open === undefined) return test.skip(withoutSqlite, () => {})

  let fresh: ReturnType<typeof freshSqlite>
  let database: SqliteConnection
  let stores: readonly [SqliteStore, SqliteStore]
  beforeAll(async () => {
    fresh = freshSqlite(open)
    database = fresh.connect()
    const second = fresh.connect()
    expect(await migrate(database)).toEqual({ applied: ['records'] })
    stores = [sqliteStore(database), sqliteStore(second)]
    // The tests need not survive a power failure.
    for (const each of [database, second]) each.exec('PRAGMA synchronous = OFF')
  })
  afterAll(() => fresh?.drop())

  const scalar = (query: string) => Object.values(database.prepare(query).all()[0] as object)[0]

  describe('keeps the contract, with each store on another connection', () => {
    let made = 0
    const makeStore = () => stores[made++ % 2] as Store
    for (const { name, rule, run } of storeConformance(makeStore, { sameData: true, ...kinds })) {
      test(`${name} (${rule})`, run)
    }
  })

  test('says what creates the tables if they do not exist', async () => {
    const empty = freshSqlite(open)
    const store = sqliteStore(empty.connect())
    const missing = expect.objectContaining({
      code: 'ERR_TABLES_MISSING',
      message: expect.stringContaining('run migrate(database) of open-payments-server/sqlite'),
    })
    await expect(loadOne(store, 'quote', 'no-tables')).rejects.toEqual(missing)
    await expect(put(store, change('no-tables'))).rejects.toEqual(missing)
    await expect(
      store.transaction(async (inside) => ({ ok: await put(inside, change('no-tables')) })),
    ).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED', cause: missing })
    empty.drop()
  })

  test('has a write-ahead log, and writes through to the disk', () => {
    const connection = fresh.connect()
    sqliteStore(connection)
    expect(connection.prepare('PRAGMA synchronous').all()).toEqual([{ synchronous: 2 }])
    expect(scalar('PRAGMA journal_mode')).toBe('wal')
  })

  test('finds pages of lists and due records by an index', async () => {
    const plans: string[] = []
    const watched = {
      exec: (sql: string) => database.exec(sql),
      prepare(sql: string) {
        const statement = database.prepare(sql)
        return {
          all(...values: unknown[]) {
            const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values)
            plans.push(...(plan as { detail: string }[]).map(({ detail }) => detail))
            return statement.all(...values)
          },
        }
      },
    }
    const store = sqliteStore(watched)
    await store.list({ kind: 'grant', list: 'any', forward: true, limit: 5 })
    await store.due('grant', 'any-name', 9, 5)
    const used = plans.filter((detail) => detail.includes('open_payments_records'))
    expect(used.toSorted()).toEqual([
      expect.stringContaining('_due (kind=? AND namespace=? AND due_at>? AND due_at<?)'),
      expect.stringContaining('_list_1 (kind=? AND list_1=? AND list_1_at>?)'),
      expect.stringContaining('_list_2 (kind=? AND list_2=? AND list_2_at>?)'),
      expect.stringContaining('_list_3 (kind=? AND list_3=? AND list_3_at>?)'),
    ])
  })

  test('migrates once, and refuses tables of a later version', async () => {
    expect(await migrate(fresh.connect())).toEqual({ applied: [] })
    const other = freshSqlite(open)
    try {
      const newer = other.connect()
      await migrate(newer)
      const later = migrationsOf().length + 1
      newer.exec(`INSERT INTO open_payments_migrations (version, name) VALUES (${later}, 'later')`)
      await expect(migrate(newer)).rejects.toBeInstanceOf(DatabaseNewerError)
    } finally {
      other.drop()
    }
  })

  test('refuses a connection whose rows are arrays', async () => {
    const arrays = {
      exec: (sql: string) => database.exec(sql),
      prepare(sql: string) {
        const statement = database.prepare(sql)
        return {
          all: (...values: unknown[]) =>
            statement.all(...values).map((row) => Object.values(row as object)),
        }
      },
    }
    await expect(migrate(arrays)).rejects.toMatchObject({
      code: 'ERR_DATABASE_SETTINGS',
      message: expect.stringContaining('returnArrays'),
    })
  })

  test.each<[string, (database: SqliteConnection) => Promise<unknown>]>([
    ['the migration of', (connection) => migrate(connection)],
    [
      'a store over',
      (connection) => sqliteStore(connection).transaction(async () => ({ ok: true })),
    ],
    ['a look-up in', (connection) => loadOne(sqliteStore(connection), 'quote', 'any-quote')],
  ])('waits while another process that starts holds the lock: %s a new file', async (_, use) => {
    const other = freshSqlite(open)
    const [holder, waiting] = [other.connect(), other.connect()]
    waiting.exec('PRAGMA busy_timeout = 0')
    holder.exec('BEGIN EXCLUSIVE; CREATE TABLE begun (id TEXT)')
    const used = use(waiting)
    await new Promise((resolve) => setTimeout(resolve, 20))
    holder.exec('COMMIT')
    await used.catch((error) => expect(error).toMatchObject({ code: 'ERR_TABLES_MISSING' }))
    other.drop()
  })

  test.each<[string, object, string]>([
    ['without `all`', { run: () => [] }, 'the statements of the connection have no `all`'],
    [
      'that takes an array of values',
      { all: (values: unknown) => [{ value: Array.isArray(values) ? values[0] : null }] },
      'the connection does not bind each argument of `all` to a parameter',
    ],
  ])('a driver %s is named as the cause', async (_, statement, message) => {
    const driver = {
      exec: () => undefined,
      prepare: () => statement,
    } as unknown as SqliteConnection
    const refusal = { code: 'ERR_DATABASE_SETTINGS', message: expect.stringContaining(message) }
    await expect(migrate(driver)).rejects.toMatchObject(refusal)
  })

  describe('in a transaction of the host', () => {
    const balance = () => scalar('SELECT balance FROM accounts')
    beforeAll(() => {
      database.exec('CREATE TABLE accounts (balance INTEGER NOT NULL)')
      database.exec('INSERT INTO accounts VALUES (0)')
    })

    test('the ledger and the records commit together', async () => {
      const result = await stores[0].transaction(async (inside) => {
        expect(await put(inside, change('together'))).toBe(true)
        database.exec('UPDATE accounts SET balance = balance + 25')
        expect(await loadOne(stores[1], 'quote', 'together')).toBeUndefined()
        return { ok: true, note: 'credited' }
      })
      expect([result, balance()]).toEqual([{ ok: true, note: 'credited' }, 25])
      expect(await loadOne(stores[1], 'quote', 'together')).toBeDefined()
    })

    test('neither is written if the work rejects', async () => {
      const before = balance()
      const work = stores[0].transaction(async (inside) => {
        await put(inside, change('not-written'))
        database.exec('UPDATE accounts SET balance = -1')
        throw new Error('the account is closed')
      })
      await expect(work).rejects.toThrow('the account is closed')
      expect(balance()).toBe(before)
      expect(await loadOne(stores[0], 'quote', 'not-written')).toBeUndefined()
    })

    test('neither is written if the result is not ok, which the caller gets', async () => {
      const before = balance()
      const refused = { ok: false, refusal: 'payment_expired' } as const
      const result = await stores[0].transaction(async (inside) => {
        expect(await put(inside, change('refused-it'))).toBe(true)
        database.exec('UPDATE accounts SET balance = -1')
        return refused
      })
      expect(result).toBe(refused)
      expect(balance()).toBe(before)
      expect(await loadOne(stores[1], 'quote', 'refused-it')).toBeUndefined()
      expect(await put(stores[1], change('refused-it'))).toBe(true)
    })

    test('a commit that loses leaves the transaction usable', async () => {
      await put(stores[0], change('lost-here'))
      await stores[0].transaction(async (inside) => {
        expect(await put(inside, change('undone-it'), change('lost-here'))).toBe(false)
        expect(await put(inside, change('lost-here', 2))).toBe(true)
        return { ok: true }
      })
      expect(await loadOne(stores[0], 'quote', 'undone-it')).toBeUndefined()
      expect((await loadOne(stores[0], 'quote', 'lost-here'))?.version).toBe(2)
    })

    const rolledBack = { code: 'ERR_TRANSACTION_FAILED' }
    /** An error after which SQLite rolls the transaction back, caught by the host. */
    const rollBackByError = () => {
      database.exec('CREATE TABLE IF NOT EXISTS entries (id TEXT PRIMARY KEY)')
      const insert = "INSERT OR ROLLBACK INTO entries VALUES ('same')"
      expect(() => database.exec(`${insert}; ${insert}`)).toThrow('UNIQUE constraint failed')
    }

    test.each([
      ['an error that the host caught', rollBackByError],
      ['the host', () => database.exec('ROLLBACK')],
    ])('rejects if %s rolled it back, and writes nothing afterwards', async (_, rollBack) => {
      const before = balance()
      const attempt = (writes: (inside: Store) => Promise<boolean>) =>
        stores[0].transaction(async (inside) => {
          await put(inside, change('rolled-back'))
          database.exec('UPDATE accounts SET balance = balance + 1')
          rollBack()
          return { ok: await writes(inside) }
        })
      await expect(attempt(async () => true)).rejects.toMatchObject(rolledBack)
      const later = attempt((inside) => put(inside, change('written-later')))
      await expect(later).rejects.toMatchObject(rolledBack)
      expect(balance()).toBe(before)
      for (const id of ['rolled-back', 'written-later']) {
        expect(await loadOne(stores[1], 'quote', id)).toBeUndefined()
      }
    })

    test('other calls on the connection wait for its end, also those of another transaction', async () => {
      const order: string[] = []
      const first = stores[0].transaction(async (inside) => {
        order.push('first begins')
        await new Promise((resolve) => setTimeout(resolve, 5))
        await put(inside, change('in-order'))
        order.push('first ends')
        return { ok: true }
      })
      const again = sqliteStore(database)
      const second = again.transaction(async () => ({ ok: order.push('second') > 0 }))
      const loaded = loadOne(again, 'quote', 'in-order').then((found) =>
        order.push(`${found?.version}`),
      )
      await Promise.all([first, second, loaded])
      expect(order.slice(0, 2)).toEqual(['first begins', 'first ends'])
      expect(order.slice(2).toSorted()).toEqual(['1', 'second'])
    })

    test('its store rejects calls after the end', async () => {
      const { inside } = await stores[0].transaction(async (store) => ({ ok: true, inside: store }))
      const ended = {
        code: 'ERR_TRANSACTION_FAILED',
        message: expect.stringContaining('has ended'),
      }
      await expect(loadOne(inside, 'quote', 'any-quote')).rejects.toMatchObject(ended)
      await expect(put(inside, change('too-late'))).rejects.toMatchObject(ended)
    })
  })
})
