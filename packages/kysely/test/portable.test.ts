import { CompiledQuery, type LogEvent } from 'kysely'
import type { Store } from 'open-payments-server'
import { storeConformance } from 'open-payments-server-testing'
import { servers } from 'open-payments-test-support/databases'
import { type FreshKysely, type HostDatabase, onPostgres } from 'open-payments-test-support/kysely'
import { isLong, onlyLong, patient } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkTables, kyselyStore, migrate, migrationsOf } from '../src/index.js'

const dialect = 'portable'

/** What a distributed database that speaks the protocol of PostgreSQL refuses, or executes differently. */
const unportable: readonly RegExp[] = [
  /\bWITH\b/i,
  /\bSAVEPOINT\b/i,
  /\bISOLATION\b/i,
  /\bCOLLATE\b/i,
  /\bleft\s*\(/i,
  /\bGENERATED\b/i,
  /CREATE (?:UNIQUE )?INDEX[^;]*\bWHERE\b/i,
  /\bfillfactor\b|\bautovacuum/i,
  /\badvisory\b|\bnextval\b|\bserial\b|\bxmin\b|\bctid\b/i,
  /\bSKIP LOCKED\b|\bNOWAIT\b/i,
  /\bjsonb?\b/i,
  /\bDECLARE\b|\bTRIGGER\b|\bFUNCTION\b/i,
  /\bnow\s*\(|\bclock_timestamp\b|\bCURRENT_TIMESTAMP\b/i,
]

const isDefinition = (text: string) => /^\s*(?:CREATE|ALTER|DROP)\b/i.test(text)

describe('a portable store', () => {
  if (servers.PostgreSQL === undefined)
    return test.skip('skipped: there is no PostgreSQL', () => {})

  const levels = ['read committed', 'repeatable read', 'serializable']
  describe.each(levels)(`on PostgreSQL at %s keeps the contract${onlyLong}`, (level) => {
    if (!isLong) return test.skip('in the long run', () => {})
    let fresh: FreshKysely
    let databases: readonly [HostDatabase, HostDatabase]
    beforeAll(async () => {
      const setting = `default_transaction_isolation=${level.replace(' ', '\\ ')}`
      fresh = await onPostgres([setting])
      databases = [fresh.connect(), fresh.connect()]
      await migrate(databases[0], { dialect })
    })
    afterAll(() => fresh?.drop())

    test('and its sessions have this level', async () => {
      const { rows } = await databases[1].executeQuery<{ transaction_isolation: string }>(
        CompiledQuery.raw('SHOW transaction_isolation'),
      )
      expect(rows).toEqual([{ transaction_isolation: level }])
    })

    let made = 0
    const makeStore = () => kyselyStore(databases[made++ % 2] as HostDatabase, { dialect })
    // At SERIALIZABLE, PostgreSQL also ends transactions that share no record but a page of an index. On a busy
    // machine, commits of all kinds at once would meet for longer than the store repeats them.
    const kinds = level === 'serializable' ? { kinds: ['grant', 'event'] as const } : {}
    for (const { name, rule, run } of storeConformance(makeStore, { ...patient, ...kinds })) {
      test(`${name} (${rule})`, run)
    }
  })

  describe('on PostgreSQL', () => {
    let fresh: FreshKysely
    let db: HostDatabase
    const sent: string[] = []
    beforeAll(async () => {
      const log = (event: LogEvent) => void sent.push(event.query.sql)
      fresh = await onPostgres()
      db = fresh.connect(undefined, log)
    })
    afterAll(() => fresh?.drop())

    test('sends nothing that distributed databases lack, and defines one thing in each transaction', async () => {
      sent.length = 0
      await migrate(db, { dialect })
      expect(await checkTables(db, { dialect })).toEqual({ ok: true })
      await useEachOperation(kyselyStore(db, { dialect }))
      expect(sent.length).toBeGreaterThan(20)
      const refused = sent.filter((text) => unportable.some((part) => part.test(text)))
      expect(refused).toEqual([])
      const defined = sent.filter(isDefinition)
      expect(defined.filter((text) => text.includes(';'))).toEqual([])
      expect(sent.slice(0, sent.lastIndexOf(defined.at(-1) ?? '')).includes('BEGIN')).toBe(false)
    })

    test('writes the clauses that some databases need', () => {
      const statements = (options: object) =>
        migrationsOf(dialect, options).flatMap((step) => step.statements)
      const indexes = (texts: readonly string[]) => texts.filter((text) => text.includes('INDEX'))
      const plain = statements({})
      const changed = statements({ collation: true, asynchronousIndexes: true })
      expect(plain.join()).not.toMatch(/COLLATE|ASYNC/)
      expect(changed[0]).toContain('id varchar(128) COLLATE "C" NOT NULL')
      expect(indexes(changed)).toHaveLength(indexes(plain).length)
      for (const text of indexes(changed)) expect(text).toMatch(/^CREATE INDEX ASYNC IF NOT EXISTS/)
      expect(() => statements({ collate: true })).toThrow('options.collate is not known')
    })

    test('refuses tables whose ids are ordered by a language', async () => {
      const own = await onPostgres()
      const ordered = own.connect()
      const [create = ''] = migrationsOf(dialect).flatMap((step) => step.statements)
      const text = create.replace('id varchar(128)', 'id varchar(128) COLLATE "en-x-icu"')
      await ordered.executeQuery(CompiledQuery.raw(text))
      const message = expect.stringContaining('orders text by a language')
      await expect(migrate(ordered, { dialect })).rejects.toMatchObject({
        code: 'ERR_DATABASE_SETTINGS',
        message,
      })
      expect(await checkTables(ordered, { dialect })).toEqual({ ok: false, problem: message })
      await own.drop()
    })

    test('with `collation` has the order of bytes in a database with any order', async () => {
      const own = await onPostgres()
      const ordered = own.connect()
      await migrate(ordered, { dialect, collation: true })
      expect(await checkTables(ordered, { dialect })).toEqual({ ok: true })
      await own.drop()
    })
  })
})

async function useEachOperation(store: Store): Promise<void> {
  const record = (id: string, version: number) => {
    return { id, version, commandId: `${id} ${version}`, dueAt: 1, lists: [{ list: 'all', at: 1 }] }
  }
  const put = (
    id: string,
    version: number,
    guards: Parameters<Store['commit']>[0]['guards'] = [],
  ) =>
    store.commit({
      changes: [{ kind: 'quote', next: record(id, version), expectedVersion: version - 1 }],
      guards,
    })
  expect(await put('portable-1', 1)).toBe(true)
  expect(await put('portable-1', 1)).toBe(false)
  expect(await put('portable-1', 2)).toBe(true)
  const guard = { kind: 'quote', id: 'portable-1', version: 2 } as const
  expect(await put('portable-2', 1, [guard])).toBe(true)
  const found = await store.load([guard, { kind: 'quote', id: 'missing' }])
  expect(found).toEqual([record('portable-1', 2), undefined])
  for (const forward of [true, false]) {
    const query = { kind: 'quote', list: 'all', forward, limit: 5 } as const
    expect((await store.list(query)).records.map(({ id }) => id)).toEqual([
      'portable-1',
      'portable-2',
    ])
  }
  expect(await store.due('quote', 'portable', 1, 5)).toHaveLength(2)
  expect(await store.remove([guard])).toEqual([true])
}
