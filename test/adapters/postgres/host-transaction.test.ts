import type { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  fromPglite,
  migrate,
  type PgliteClient,
  type PostgresTransactions,
  postgresStore,
} from '../../../adapters/postgres.js'
import type { Store } from '../../../src/index.js'
import { emptyPglite } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'

describe('a transaction of a query builder', () => {
  let lite: PGlite
  beforeAll(async () => {
    lite = await emptyPglite()
    await migrate(fromPglite(lite))
    await lite.exec('CREATE TABLE entries (id text PRIMARY KEY)')
  })
  afterAll(() => lite?.close())

  type Row = Record<string, unknown>
  const builder = (): PostgresTransactions<PgliteClient> => ({
    transaction: (work) => lite.transaction((inside) => work(inside)),
    query: async (inside, text, values) =>
      (await inside.query(text, [...values])).rows as readonly Row[],
  })

  /** Writes an entry and a record, and then fails as often as stated. */
  function attempts(id: string, transactions: PostgresTransactions<PgliteClient>) {
    let count = 0
    const run = (ok: boolean, failures = 0, error: unknown = undefined) =>
      postgresStore.transaction(transactions, async (inside, store) => {
        await inside.query('INSERT INTO entries VALUES ($1)', [id])
        const next = { id: `record-${id}`, version: 1, commandId: `command-${id}` }
        const changes = [{ kind: 'quote', next, expectedVersion: 0 }] as const
        expect(await store.commit({ changes, guards: [] })).toBe(true)
        if (count++ < failures) throw error
        return { ok }
      })
    const written = async () => {
      const { rows } = await lite.query('SELECT 1 FROM entries WHERE id = $1', [id])
      const record = await loadOne(postgresStore(fromPglite(lite)), 'quote', `record-${id}`)
      return [rows.length > 0, record !== undefined]
    }
    return { run, written, count: () => count }
  }

  test.each([true, false])('is written if its result is ok, which is %s', async (ok) => {
    const { run, written } = attempts(`ok-${ok}`, builder())
    expect(await run(ok)).toEqual({ ok })
    expect(await written()).toEqual([ok, ok])
  })

  test('restarts after a deadlock whose error the query builder has wrapped', async () => {
    const { run, written, count } = attempts('wrapped', builder())
    const cause = Object.assign(new Error('deadlock detected'), { code: '40P01' })
    await run(true, 4, new Error('the query failed', { cause }))
    expect(count()).toBe(5)
    expect(await written()).toEqual([true, true])
  })

  test('restarts if the query builder says what the SQLSTATE of an error is', async () => {
    const sqlState = (error: unknown) => (error as { hidden?: string }).hidden
    const hidden = Object.assign(new Error('the query failed'), { code: 'P2010', hidden: '40001' })
    const { run, written } = attempts('hidden', { ...builder(), sqlState })
    await run(true, 1, hidden)
    expect(await written()).toEqual([true, true])
    await expect(attempts('shown', builder()).run(true, 1, hidden)).rejects.toBe(hidden)
  })

  test('rejects with the first error if ROLLBACK fails, too', async () => {
    const transactions: PostgresTransactions<PgliteClient> = {
      ...builder(),
      transaction: (work) =>
        lite.transaction(work).catch((cause: unknown) => {
          throw new Error('Failed query: rollback', { cause })
        }),
    }
    const { run, written } = attempts('rollback', transactions)
    await expect(run(true, 1, new Error('the first error'))).rejects.toThrow(/^the first error$/)
    expect(await written()).toEqual([false, false])
  })

  test.each([true, false])('refuses its store once it has ended, with ok: %s', async (ok) => {
    let kept: Store | undefined
    await postgresStore.transaction(builder(), async (_, store) => {
      kept = store
      return { ok }
    })
    const ended = {
      code: 'ERR_TRANSACTION_FAILED',
      message: 'the transaction of this store has ended: use the store only in its work',
    }
    const next = { id: 'late', version: 1, commandId: 'late' }
    const changes = [{ kind: 'quote', next, expectedVersion: 0 }] as const
    await expect(kept?.commit({ changes, guards: [] })).rejects.toMatchObject(ended)
    await expect(kept && loadOne(kept, 'quote', 'late')).rejects.toMatchObject(ended)
    expect(await loadOne(postgresStore(fromPglite(lite)), 'quote', 'late')).toBeUndefined()
  })

  test('does not restart after another error, and writes nothing', async () => {
    const { run, written, count } = attempts('other', builder())
    const error = Object.assign(new Error('duplicate key'), { code: '23505' })
    await expect(run(true, 1, error)).rejects.toBe(error)
    expect(count()).toBe(1)
    expect(await written()).toEqual([false, false])
  })

  test('rejects if a statement of the store fails, with the SQLSTATE', async () => {
    const missing = postgresStore.transaction(
      builder(),
      async (_, store) => ({ ok: (await loadOne(store, 'quote', 'record-any')) !== undefined }),
      { schema: 'missing' },
    )
    await expect(missing).rejects.toMatchObject({
      code: 'ERR_TRANSACTION_FAILED',
      cause: { code: 'ERR_TABLES_MISSING', cause: { code: '42P01' } },
    })
  })

  test.each([
    ['missing', { schema: 'missing' }],
    ['elsewhere', {}],
  ])(
    'says that the tables do not exist in schema %s, with the options %j',
    async (schema, options) => {
      await lite.exec('CREATE SCHEMA elsewhere')
      const read = postgresStore.transaction(
        builder(),
        async (inside, store) => {
          await inside.query('SET LOCAL search_path TO elsewhere')
          return { ok: (await loadOne(store, 'quote', 'record-any')) !== undefined }
        },
        options,
      )
      await expect(read).rejects.toThrow(
        `the tables of the library do not exist in schema ${schema}: ` +
          'run migrate(pool) of open-payments-server/postgres before the store is used, or pass { schema }',
      )
      await lite.exec('DROP SCHEMA elsewhere')
    },
  )
})
