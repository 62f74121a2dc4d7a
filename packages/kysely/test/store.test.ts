import { CamelCasePlugin, CompiledQuery } from 'kysely'
import { InvalidInputError, type Store } from 'open-payments-server'
import { storeConformance } from 'open-payments-server-testing'
import { servers } from 'open-payments-test-support/databases'
import {
  type FreshKysely,
  type HostDatabase,
  kyselyDatabases,
  mysqlUrl,
  onMysqlServers,
} from 'open-payments-test-support/kysely'
import { mysqlWith } from 'open-payments-test-support/mysql-variables'
import { loadOne } from 'open-payments-test-support/one-record'
import { isLong } from 'open-payments-test-support/runs'
import { keepsTheOrder } from 'open-payments-test-support/store-order'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTables, kyselyStore, migrate, migrationsOf } from '../src/index.js'

function change(id: string, version = 1) {
  const next = { id, version, commandId: `${id} ${version}` }
  return { kind: 'quote', next, expectedVersion: version - 1 } as const
}

function put(store: Store, ...changes: readonly ReturnType<typeof change>[]): Promise<boolean> {
  return store.commit({ changes, guards: [] })
}

describe.each(kyselyDatabases)('Kysely on $name', ({ dialect, name, fresh: create }) => {
  if (create === undefined) return test.skip(`skipped: there is no ${name}`, () => {})

  let fresh: FreshKysely
  let databases: readonly [HostDatabase, HostDatabase]
  const stores = () => databases.map((db) => kyselyStore(db, { dialect })) as [Store, Store]
  beforeAll(async () => {
    fresh = await create()
    databases = [fresh.connect(), fresh.connect()]
    // Several processes may start at the same time.
    await Promise.all(databases.map((db) => migrate(db, { dialect })))
    await databases[0].schema
      .createTable('accounts')
      .addColumn('id', 'varchar(20)', (column) => column.primaryKey())
      .addColumn('balance', 'integer', (column) => column.notNull())
      .execute()
    await databases[0].insertInto('accounts').values({ id: 'alice', balance: 0 }).execute()
  })
  afterAll(() => fresh?.drop())

  if (isLong) {
    describe('keeps the contract, with each store on another pool', () => {
      let made = 0
      const makeStore = () => stores()[made++ % 2] as Store
      for (const { name, rule, run } of storeConformance(makeStore, { sameData: true })) {
        test(`${name} (${rule})`, run)
      }
    })
  }

  test('orders, pages and lists due records like the memory store, for all instants', () =>
    keepsTheOrder(stores()[0]))

  test('says what creates the tables if they do not exist', async () => {
    const empty = await create()
    const db = empty.connect()
    const store = kyselyStore(db, { dialect })
    const missing = expect.objectContaining({
      code: 'ERR_TABLES_MISSING',
      message: expect.stringContaining(
        'run migrate(db, { dialect }) of open-payments-server-kysely',
      ),
    })
    await expect(loadOne(store, 'quote', 'no-tables')).rejects.toEqual(missing)
    await expect(put(store, change('no-tables'))).rejects.toEqual(missing)
    await empty.drop()
  })

  test('is ready once the tables exist', async () => {
    expect(await checkTables(databases[0], { dialect })).toEqual({ ok: true })
    const empty = await create()
    const check = await checkTables(empty.connect(), { dialect })
    expect(check).toMatchObject({
      ok: false,
      problem: expect.stringContaining('do not exist: run'),
    })
    await empty.drop()
  })

  test('migrates once', async () => {
    expect(await migrate(databases[1], { dialect })).toEqual({ applied: [] })
    expect(migrationsOf(dialect).map((step) => step.name)).toEqual(['records'])
  })

  test('is not affected by plugins that rename columns', async () => {
    const db = databases[0].withPlugin(new CamelCasePlugin())
    const store = kyselyStore(db, { dialect })
    const record = {
      ...change('renamed-columns').next,
      dueAt: 1,
      lists: [{ list: 'plugins', at: 1 }],
    }
    const changes = [{ kind: 'quote', next: record, expectedVersion: 0 }] as const
    expect(await store.commit({ changes, guards: [] })).toBe(true)
    expect(await store.due('quote', 'renamed-', 1, 1)).toEqual([record])
    const query = { kind: 'quote', list: 'plugins', forward: true, limit: 1 } as const
    expect(await store.list(query)).toEqual({ records: [record], more: false })
  })

  describe('in a transaction of the host', () => {
    const begun = (db: HostDatabase) =>
      dialect === 'sqlite' ? db.transaction() : db.transaction().setIsolationLevel('read committed')
    const balance = async () =>
      (await databases[1].selectFrom('accounts').select('balance').executeTakeFirstOrThrow())
        .balance

    test('the ledger and the records commit together', async () => {
      const isWritten = await begun(databases[0]).execute(async (trx) => {
        await trx.updateTable('accounts').set({ balance: 25 }).execute()
        return put(kyselyStore.inTransaction(trx, { dialect }), change('together'))
      })
      expect([isWritten, await balance()]).toEqual([true, 25])
      expect(await loadOne(stores()[1], 'quote', 'together')).toBeDefined()
    })

    test('neither is written if the host rolls back', async () => {
      const work = begun(databases[0]).execute(async (trx) => {
        await trx.updateTable('accounts').set({ balance: -1 }).execute()
        await put(kyselyStore.inTransaction(trx, { dialect }), change('not-written'))
        throw new Error('the account is closed')
      })
      await expect(work).rejects.toThrow('the account is closed')
      expect(await balance()).not.toBe(-1)
      expect(await loadOne(stores()[1], 'quote', 'not-written')).toBeUndefined()
    })

    test('that `transaction` runs is committed if its result is ok, and rolled back if not', async () => {
      const attempt = (id: string, ok: boolean) =>
        kyselyStore.transaction(
          databases[0],
          async (trx, store) => {
            await trx
              .updateTable('accounts')
              .set({ balance: ok ? 50 : -1 })
              .execute()
            return { ok, isWritten: await put(store, change(id)) }
          },
          { dialect },
        )
      expect(await attempt('is-ok', true)).toEqual({ ok: true, isWritten: true })
      expect(await attempt('is-not-ok', false)).toEqual({ ok: false, isWritten: true })
      expect(await balance()).toBe(50)
      const [store] = stores()
      const found = await Promise.all(
        ['is-ok', 'is-not-ok'].map((id) => loadOne(store, 'quote', id)),
      )
      expect(found.map((record) => record?.version)).toEqual([1, undefined])
    })

    test('that `transaction` runs is restarted after a conflict, and not after another error', async () => {
      let attempts = 0
      const failing = (code: string, failures: number) =>
        kyselyStore.transaction(
          databases[0],
          async (_, store) => {
            const isWritten = await put(store, change(`after-${code}`))
            if (attempts++ < failures) throw Object.assign(new Error('again'), { code })
            return { ok: true, isWritten }
          },
          { dialect },
        )
      expect(await failing('ERR_CONTENTION', 4)).toEqual({ ok: true, isWritten: true })
      expect(attempts).toBe(5)
      await expect(failing('ERR_TRANSACTION_FAILED', 6)).rejects.toThrow('again')
      expect(attempts).toBe(6)
    })

    test('that `transaction` runs is restarted after a conflict that services of the host have wrapped', async () => {
      const conflicts = {
        postgres: { code: '40P01' },
        portable: { code: '40001' },
        mysql: { errno: 1213 },
        sqlite: { code: 'SQLITE_BUSY' },
      }
      const cause = Object.assign(new Error('conflict'), conflicts[dialect])
      const repository = Object.assign(new Error('could not post', { cause }), { code: 'LEDGR' })
      let attempts = 0
      const work = async () => {
        if (++attempts < 5) throw new Error('could not credit', { cause: repository })
        return { ok: true }
      }
      expect(await kyselyStore.transaction(databases[0], work, { dialect })).toEqual({ ok: true })
      expect(attempts).toBe(5)
    })

    test('rejects if the host rolled it back, and writes nothing afterwards', async () => {
      const attempt = (writes: (store: Store) => Promise<boolean>) =>
        kyselyStore.transaction(
          databases[0],
          async (trx, store) => {
            await put(store, change('rolled-back'))
            await trx.executeQuery(CompiledQuery.raw('ROLLBACK'))
            return { ok: await writes(store) }
          },
          { dialect },
        )
      const failed = { code: 'ERR_TRANSACTION_FAILED' }
      await expect(attempt(async () => true)).rejects.toMatchObject(failed)
      const later = attempt((store) => put(store, change('written-later')))
      await expect(later).rejects.toMatchObject(failed)
      for (const id of ['rolled-back', 'written-later']) {
        expect(await loadOne(stores()[1], 'quote', id)).toBeUndefined()
      }
    })

    test('can go on after the host has rolled back to a savepoint of its own', async () => {
      await begun(databases[0]).execute(async (trx) => {
        const inside = kyselyStore.inTransaction(trx, { dialect })
        await trx.executeQuery(CompiledQuery.raw('SAVEPOINT own'))
        expect(await put(inside, change('taken-back'))).toBe(true)
        await trx.executeQuery(CompiledQuery.raw('ROLLBACK TO SAVEPOINT own'))
        // The first commit may lose, and the library then decides again.
        if (!(await put(inside, change('after-own')))) {
          expect(await put(inside, change('after-own'))).toBe(true)
        }
      })
      const found = ['taken-back', 'after-own'].map((id) => loadOne(stores()[1], 'quote', id))
      expect((await Promise.all(found)).map((record) => record?.version)).toEqual([undefined, 1])
    })

    test('a commit that loses leaves the transaction usable, also beside another one', async () => {
      await put(stores()[0], change('lost-here'))
      await begun(databases[0]).execute(async (trx) => {
        const inside = kyselyStore.inTransaction(trx, { dialect })
        const both = [
          put(inside, change('undone-it'), change('lost-here')),
          put(inside, change('beside-it')),
        ]
        expect(await Promise.all(both)).toEqual([false, true])
        expect(await put(inside, change('lost-here', 2))).toBe(true)
      })
      const [store] = stores()
      const versions = ['undone-it', 'beside-it', 'lost-here'].map((id) =>
        loadOne(store, 'quote', id),
      )
      expect((await Promise.all(versions)).map((found) => found?.version)).toEqual([
        undefined,
        1,
        2,
      ])
    })
  })
})

describe('migrating MariaDB', () => {
  const { MariaDB: server } = servers
  if (server === undefined) return test.skip('skipped: there is no MariaDB', () => {})
  const dialect = 'mysql'
  /** Runs work on connections with a setting. */
  async function withSetting(setting: string, work: (db: HostDatabase) => Promise<void>) {
    const fresh = await onMysqlServers([mysqlUrl(server ?? '')], [setting])
    await work(fresh.connect()).finally(() => fresh.drop())
  }

  test.each([
    ["character_set_client = 'latin1'", 'character_set_client is latin1, and must be utf8mb4'],
    ["character_set_connection = 'latin1'", 'character_set_connection is latin1'],
    ["character_set_results = 'latin1'", 'character_set_results is latin1'],
    ["sql_mode = 'NO_BACKSLASH_ESCAPES'", 'sql_mode must not contain NO_BACKSLASH_ESCAPES'],
    ['autocommit = 0', 'autocommit must be ON'],
    ['NAMES utf8mb3', 'character_set_client is utf8mb3, and must be utf8mb4'],
    ["tx_isolation = 'READ-UNCOMMITTED'", 'the isolation level is READ UNCOMMITTED'],
    ["completion_type = 'CHAIN'", 'completion_type is CHAIN, and must be NO_CHAIN'],
    ['sql_select_limit = 1', 'set sql_select_limit = DEFAULT'],
  ])(
    'refuses sessions with %s, which would change records or keep them from others',
    async (setting, message) => {
      await withSetting(setting, async (db) => {
        const refusal = { code: 'ERR_DATABASE_SETTINGS', message: expect.stringContaining(message) }
        await expect(migrate(db, { dialect })).rejects.toMatchObject(refusal)
        expect(await db.introspection.getTables()).toEqual([])
      })
    },
  )

  test.each([
    'NAMES utf8mb4',
    'character_set_results = NULL',
    "tx_isolation = 'READ-COMMITTED'",
    "tx_isolation = 'SERIALIZABLE'",
    "sql_mode = ''",
  ])('accepts sessions with %s, which return all text unchanged', async (setting) => {
    await withSetting(setting, async (db) => {
      await migrate(db, { dialect })
      const store = kyselyStore(db, { dialect })
      const next = { ...change('any-text').next, text: "\u20ac \u0142 \ud83d\ude00 \\ ' \u0000" }
      const changes = [{ kind: 'quote', next, expectedVersion: 0 }] as const
      expect(await store.commit({ changes, guards: [] })).toBe(true)
      expect(await loadOne(store, 'quote', 'any-text')).toEqual(next)
    })
  })
})

describe('migrating SQLite', () => {
  const { fresh: create } = kyselyDatabases.find(({ dialect }) => dialect === 'sqlite') ?? {}
  if (create === undefined) return test.skip('skipped: there is no SQLite', () => {})

  test('waits while another process that starts holds the lock of a new file', async () => {
    const fresh = await create()
    const [holder, waiting] = [fresh.connect(), fresh.connect()]
    const run = (text: string) => holder.executeQuery(CompiledQuery.raw(text))
    await run('BEGIN EXCLUSIVE')
    const migrated = migrate(waiting, { dialect: 'sqlite' })
    await new Promise((resolve) => setTimeout(resolve, 20))
    await run('COMMIT')
    expect(await migrated).toEqual({ applied: ['records'] })
    await fresh.drop()
  })
})

test.each([
  [{ log_bin: 'ON', binlog_format: 'STATEMENT' }, 'binlog_format is STATEMENT'],
  [{ transaction_isolation: 'READ-UNCOMMITTED' }, 'the isolation level is READ UNCOMMITTED'],
  [{ read_only: 'ON' }, 'the server is read-only, such as a replica: connect to the primary'],
])('a server with %j is refused by migrate and by checkTables', async (variables, message) => {
  const { db } = mysqlWith(variables)
  const refusal = { code: 'ERR_DATABASE_SETTINGS', message: expect.stringContaining(message) }
  await expect(migrate(db, { dialect: 'mysql' })).rejects.toMatchObject(refusal)
  const ready = mysqlWith(variables, { isMigrated: true })
  const problem = { ok: false, problem: expect.stringContaining(message) }
  expect(await checkTables(ready.db, { dialect: 'mysql' })).toEqual(problem)
})

test.each(['0', '2'])(
  'innodb_flush_log_at_trx_commit = %s is refused by checkTables, and migrate warns, unless it is allowed',
  async (flush) => {
    const { db } = mysqlWith({ innodb_flush_log_at_trx_commit: flush })
    const problem = `innodb_flush_log_at_trx_commit is ${flush}, so that a crash loses acknowledged commits: set it to 1`
    const warned = { applied: ['records'], warnings: [problem] }
    expect(await migrate(db, { dialect: 'mysql' })).toEqual(warned)
    expect(await checkTables(db, { dialect: 'mysql' })).toEqual({ ok: false, problem })
    const allowed = { dialect: 'mysql', allowLostCommits: true } as const
    expect(await migrate(db, allowed)).toEqual({ applied: [] })
    expect(await checkTables(db, allowed)).toEqual({ ok: true })
  },
)

test.each([
  [
    'rowsAsArray',
    { rowsAsArray: true },
    'rows must be objects: open the pool without `rowsAsArray`',
  ],
  ['typeCast', { typeCast: false }, 'text must be a string: open the pool without `typeCast`'],
])('the option %s of mysql2 is named', async (_, options, message) => {
  const { MariaDB: server } = servers
  if (server === undefined) return
  const fresh = await onMysqlServers([mysqlUrl(server)], [], options)
  const refusal = { code: 'ERR_DATABASE_SETTINGS', message }
  await expect(migrate(fresh.connect(), { dialect: 'mysql' })).rejects.toMatchObject(refusal)
  await fresh.drop()
})

describe('a transaction on MariaDB', () => {
  const { fresh: create } = kyselyDatabases.find(({ dialect }) => dialect === 'mysql') ?? {}
  if (create === undefined) return test.skip('skipped: there is no MariaDB', () => {})
  const dialect = 'mysql'
  let fresh: FreshKysely
  let databases: readonly [HostDatabase, HostDatabase]
  beforeAll(async () => {
    fresh = await create()
    databases = [fresh.connect(), fresh.connect()]
    await migrate(databases[0], { dialect })
  })
  afterAll(() => fresh?.drop())

  test('that reads a snapshot rejects instead of losing for ever', async () => {
    const outside = kyselyStore(databases[1], { dialect })
    await put(outside, change('snapshot'))
    const work = databases[0]
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (trx) => {
        const inside = kyselyStore.inTransaction(trx, { dialect })
        expect((await loadOne(inside, 'quote', 'snapshot'))?.version).toBe(1)
        expect(await put(outside, change('snapshot', 2))).toBe(true)
        await put(inside, change('snapshot', 2))
      })
    await expect(work).rejects.toMatchObject({
      code: 'ERR_TRANSACTION_FAILED',
      message: expect.stringContaining('READ COMMITTED'),
    })
  })

  test('that deadlocks asks the host to start again, and the other one continues', async () => {
    const [one, other] = databases.map((db) => kyselyStore(db, { dialect })) as [Store, Store]
    await put(one, change('first-of-two'))
    await put(one, change('second-of-two'))
    const order = ['first-of-two', 'second-of-two']
    const turned = (
      db: HostDatabase,
      ids: readonly string[],
      meet: Promise<unknown>,
      met: () => void,
    ) =>
      db
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (trx) => {
          const inside = kyselyStore.inTransaction(trx, { dialect })
          expect(await put(inside, change(ids[0] ?? '', 2))).toBe(true)
          met()
          await meet
          return put(inside, change(ids[1] ?? '', 2))
        })
    const doors = [door(), door()] as const
    const outcomes = await Promise.allSettled([
      turned(databases[0], order, doors[1].opened, doors[0].open),
      turned(databases[1], order.toReversed(), doors[0].opened, doors[1].open),
    ])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const rejected = outcomes.find((outcome) => outcome.status === 'rejected')
    expect(rejected?.reason).toMatchObject({ code: 'ERR_RESTART_TRANSACTION' })
    const versions = await Promise.all(order.map((id) => loadOne(other, 'quote', id)))
    expect(versions.map((found) => found?.version)).toEqual([2, 2])
  })

  test.each([
    ['is ok', 'deadlock-ok', async () => true],
    ['writes again', 'deadlock-again', (store: Store) => put(store, change('after-deadlock'))],
  ])('rejects if the host catches a deadlock and then %s', async (_, id, ends) => {
    const [db, other] = databases
    await db.schema
      .createTable('accounts')
      .ifNotExists()
      .addColumn('id', 'varchar(20)', (column) => column.primaryKey())
      .addColumn('balance', 'integer', (column) => column.notNull())
      .execute()
    await db
      .replaceInto('accounts')
      .values([
        { id: 'alice', balance: 0 },
        { id: 'bob', balance: 0 },
      ])
      .execute()
    const add = (trx: HostDatabase, account: string, amount: number) =>
      trx
        .updateTable('accounts')
        .set(({ eb }) => ({ balance: eb('balance', '+', amount) }))
        .where('id', '=', account)
        .execute()
    const doors = [door(), door()] as const
    let caught = 0
    const ours = kyselyStore.transaction(
      db,
      async (trx, store) => {
        await put(store, change(id))
        await add(trx, 'alice', 1)
        doors[0].open()
        await doors[1].opened
        await add(trx, 'bob', 1).catch((error) => {
          expect(error.errno).toBe(1213)
          caught++
        })
        return { ok: await ends(store) }
      },
      { dialect },
    )
    // It has written more rows, so the other one is the victim.
    const theirs = other.transaction().execute(async (trx) => {
      await trx
        .insertInto('accounts')
        .values(Array.from({ length: 50 }, (_, i) => ({ id: `${id} ${i}`, balance: 0 })))
        .execute()
      await add(trx, 'bob', 10)
      doors[1].open()
      await doors[0].opened
      await add(trx, 'alice', 10)
    })
    await expect(ours).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
    await theirs
    expect(caught).toBe(1)
    const balances = await db
      .selectFrom('accounts')
      .select('balance')
      .where('id', 'in', ['alice', 'bob'])
      .execute()
    expect(balances).toEqual([{ balance: 10 }, { balance: 10 }])
    for (const each of [id, 'after-deadlock']) {
      expect(await loadOne(kyselyStore(other, { dialect }), 'quote', each)).toBeUndefined()
    }
  })
})

function door() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

test('an unknown dialect is rejected', () => {
  const db = {} as HostDatabase
  expect(() => kyselyStore(db, { dialect: 'mssql' as never })).toThrow(InvalidInputError)
  expect(() => kyselyStore(db, { dialect: 'mysql', prefix: 'x' } as never)).toThrow(
    InvalidInputError,
  )
})
