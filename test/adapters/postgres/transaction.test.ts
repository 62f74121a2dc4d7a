import type { PoolClient } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fromPglite, postgresStore } from '../../../adapters/postgres.js'
import type { RecordChange } from '../../../src/entry-adapter.js'
import { type Store, TransactionError } from '../../../src/index.js'
import { type FreshPostgres, freshPglite, freshPostgres, servers } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'
import { isLong } from '../../support/runs.js'

function change(id: string, version: number): RecordChange {
  const next = { id, version, commandId: `${id} ${version}` }
  return { kind: 'grant', next, expectedVersion: version - 1 }
}

function put(store: Store, ...changes: readonly RecordChange[]): Promise<boolean> {
  return store.commit({ changes, guards: [] })
}

describe.runIf(isLong || servers.PostgreSQL === undefined)('in a transaction of PGlite', () => {
  test('a commit persists after COMMIT and disappears after ROLLBACK', async () => {
    const lite = await freshPglite()
    try {
      const outside = postgresStore(lite)
      await lite.transaction(async (client) => {
        const inside = postgresStore.inTransaction(client)
        expect(await put(inside, change('a', 1))).toBe(true)
        expect(await put(inside, change('a', 1), change('b', 1))).toBe(false)
        expect(await loadOne(inside, 'grant', 'a')).toEqual(change('a', 1).next)
      })
      expect(await loadOne(outside, 'grant', 'a')).toEqual(change('a', 1).next)
      expect(await loadOne(outside, 'grant', 'b')).toBeUndefined()

      const rolledBack = lite.transaction(async (client) => {
        await put(postgresStore.inTransaction(client), change('a', 2))
        throw new Error('the host changed its mind')
      })
      await expect(rolledBack).rejects.toThrow('the host changed its mind')
      expect((await loadOne(outside, 'grant', 'a'))?.version).toBe(1)
    } finally {
      await lite.close()
    }
  })

  test('the client may be a wrapper without transactions of its own', () => {
    expect(fromPglite({ query: async () => ({ rows: [] }) })).not.toHaveProperty('transaction')
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('in a transaction of PostgreSQL', () => {
  let fresh: FreshPostgres
  let outside: Store
  beforeAll(async () => {
    fresh = await freshPostgres()
    outside = postgresStore(fresh.pool, { schema: fresh.schema })
  })
  afterAll(() => fresh.drop())
  beforeEach(async () => {
    await fresh.pool.query(`DELETE FROM ${fresh.schema}.open_payments_records`)
  })

  /** Runs a test inside a transaction, and rolls it back if it is still open afterwards. */
  async function within(
    run: (inside: Store, client: PoolClient) => Promise<void>,
    begin = 'BEGIN',
  ): Promise<void> {
    const client = await fresh.pool.connect()
    try {
      await client.query(begin)
      await run(postgresStore.inTransaction(client, { schema: fresh.schema }), client)
    } finally {
      await client.query('ROLLBACK').catch(() => undefined)
      client.release()
    }
  }

  test.each([1, 12, 13, 40])(
    'a commit of %i records more, one of which exists, writes none and leaves the transaction usable',
    async (count) => {
      await within(async (inside) => {
        expect(await put(inside, change('old', 1))).toBe(true)
        const more = Array.from({ length: count }, (_, i) => change(`new-${i}`, 1))
        expect(await put(inside, ...more, change('old', 1))).toBe(false)
        expect(await put(inside, ...more, change('old', 3))).toBe(false)
        expect(await loadOne(inside, 'grant', 'new-0')).toBeUndefined()
        expect(await put(inside, ...more, change('old', 2))).toBe(true)
        expect((await loadOne(inside, 'grant', 'new-0'))?.version).toBe(1)
        expect((await loadOne(inside, 'grant', 'old'))?.version).toBe(2)
      })
    },
  )

  test('a commit becomes visible to others with COMMIT, and not before', async () => {
    await within(async (inside, client) => {
      expect(await put(inside, change('a', 1))).toBe(true)
      expect((await loadOne(inside, 'grant', 'a'))?.version).toBe(1)
      expect(await loadOne(outside, 'grant', 'a')).toBeUndefined()
      await client.query('COMMIT')
      expect((await loadOne(outside, 'grant', 'a'))?.version).toBe(1)
    })
  })

  test('only the losing commit is undone: earlier ones stay, and later ones are possible', async () => {
    await put(outside, change('a', 1))
    await within(async (inside, client) => {
      expect(await put(inside, change('b', 1))).toBe(true)
      expect(await put(inside, change('c', 1), change('a', 3))).toBe(false)
      const guards = [{ kind: 'grant', id: 'a', version: 2 }] as const
      expect(await inside.commit({ changes: [change('d', 1)], guards })).toBe(false)
      expect(await put(inside, change('a', 2))).toBe(true)
      await client.query('COMMIT')
    })
    const loaded = await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => loadOne(outside, 'grant', id)),
    )
    expect(loaded.map((record) => record?.version)).toEqual([2, 1, undefined, undefined])
  })

  test('two stores of one transaction write, also after a rollback to a savepoint of the host', async () => {
    await within(async (inside, client) => {
      const other = postgresStore.inTransaction(client, { schema: fresh.schema })
      await client.query('SAVEPOINT own')
      expect(await put(inside, change('a', 1))).toBe(true)
      expect(await put(other, change('b', 1))).toBe(true)
      expect(await put(inside, change('c', 1))).toBe(true)
      await client.query('ROLLBACK TO SAVEPOINT own')
      // The first commit of each loses, because its mark is gone, and the library decides again.
      for (const [store, id] of [
        [inside, 'd'],
        [other, 'e'],
      ] as const) {
        expect(await put(store, change(id, 1))).toBe(false)
        expect(await put(store, change(id, 1))).toBe(true)
      }
      await client.query('COMMIT')
    })
    const ids = ['a', 'b', 'c', 'd', 'e']
    const loaded = await Promise.all(ids.map((id) => loadOne(outside, 'grant', id)))
    const versions = loaded.map((record) => record?.version)
    expect(versions).toEqual([undefined, undefined, undefined, 1, 1])
  })

  test('a record that another transaction changed is read in its current version', async () => {
    await put(outside, change('a', 1))
    await within(async (inside) => {
      expect((await loadOne(inside, 'grant', 'a'))?.version).toBe(1)
      await put(outside, change('a', 2))
      expect(await put(inside, change('a', 2))).toBe(false)
      expect((await loadOne(inside, 'grant', 'a'))?.version).toBe(2)
      expect(await put(inside, change('a', 3))).toBe(true)
    })
    expect((await loadOne(outside, 'grant', 'a'))?.version).toBe(2)
  })

  test('concurrent operations do not interfere with each other', async () => {
    await put(outside, change('a', 1))
    await within(async (inside, client) => {
      const outcomes = await Promise.all([
        put(inside, change('a', 2)),
        put(inside, change('a', 2)),
        loadOne(inside, 'grant', 'a'),
        put(inside, change('b', 1)),
        put(inside, change('b', 1)),
      ])
      expect(outcomes).toEqual([true, false, change('a', 2).next, true, false])
      await client.query('COMMIT')
    })
    expect((await loadOne(outside, 'grant', 'b'))?.version).toBe(1)
  })

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    '%s is rejected before any record is read',
    async (level) => {
      await within(async (inside) => {
        const refusal = {
          code: 'ERR_TRANSACTION_FAILED',
          message: expect.stringContaining(level.toLowerCase()),
        }
        await expect(loadOne(inside, 'grant', 'a')).rejects.toMatchObject(refusal)
        await expect(put(inside, change('a', 1))).rejects.toMatchObject(refusal)
      }, `BEGIN ISOLATION LEVEL ${level}`)
      expect(await loadOne(outside, 'grant', 'a')).toBeUndefined()
    },
  )

  test('a client without a transaction in progress is rejected, and nothing is written', async () => {
    const client = await fresh.pool.connect()
    try {
      const inside = postgresStore.inTransaction(client, { schema: fresh.schema })
      await expect(put(inside, change('a', 1))).rejects.toMatchObject({
        code: 'ERR_TRANSACTION_FAILED',
        message: 'postgresStore.inTransaction needs a client with a transaction in progress',
      })
    } finally {
      client.release()
    }
    expect(await loadOne(outside, 'grant', 'a')).toBeUndefined()
  })

  test('after an error of the host, every operation reports that the transaction cannot continue', async () => {
    await within(async (inside, client) => {
      await expect(client.query('SELECT 1 / 0')).rejects.toThrow('division by zero')
      const failed = { code: 'ERR_TRANSACTION_FAILED' }
      await expect(loadOne(inside, 'grant', 'a')).rejects.toMatchObject(failed)
      await expect(put(inside, change('a', 1))).rejects.toMatchObject(failed)
    })
  })

  test('a deadlock asks the host to start again, and the other transaction continues', async () => {
    await put(outside, change('a', 1), change('b', 1))
    const bothHaveOne = barrier(2)
    const transfer = (first: string, second: string) =>
      within(async (inside, client) => {
        expect(await put(inside, change(first, 2))).toBe(true)
        await bothHaveOne()
        expect(await put(inside, change(second, 2))).toBe(true)
        await client.query('COMMIT')
      })
    const outcomes = await Promise.allSettled([transfer('a', 'b'), transfer('b', 'a')])
    const errors = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    expect(errors).toMatchObject([{ code: 'ERR_RESTART_TRANSACTION' }])
    expect(errors[0]).toBeInstanceOf(TransactionError)
    const versions = await Promise.all(['a', 'b'].map((id) => loadOne(outside, 'grant', id)))
    expect(versions.map((record) => record?.version)).toEqual([2, 2])
  })
})

describe.skipIf(servers.PostgreSQL === undefined)('a transaction on a pool', () => {
  let fresh: FreshPostgres
  beforeAll(async () => {
    fresh = await freshPostgres()
  })
  afterAll(() => fresh.drop())

  const ignore = () => undefined

  test.each<[string, string, (client: PoolClient) => unknown]>([
    [
      'a statement failed and the host caught its error',
      'failed-and-caught',
      (client) => client.query('SELECT 1 / 0').catch(ignore),
    ],
    ['the host rolled it back', 'host-rollback', (client) => client.query('ROLLBACK')],
    [
      'a statement that the host does not wait for fails before COMMIT',
      'not-waited-for',
      (client) => {
        void client.query('SELECT 1').then(() => client.query('SELECT 1 / 0').catch(ignore))
      },
    ],
  ])('rejects if %s', async (_, id, end) => {
    const { schema } = fresh
    const attempt = (isEnded: boolean) =>
      postgresStore.transaction(
        fresh.pool,
        async (client: PoolClient, store) => {
          const ok = await put(store, change(id, 1))
          if (isEnded) await end(client)
          return { ok }
        },
        { schema },
      )
    await expect(attempt(true)).rejects.toMatchObject({ code: 'ERR_TRANSACTION_FAILED' })
    const store = postgresStore(fresh.pool, { schema })
    expect(await loadOne(store, 'grant', id)).toBeUndefined()
    expect(await attempt(false)).toEqual({ ok: true })
    expect(await loadOne(store, 'grant', id)).toBeDefined()
  })
})

/** Releases all callers once `count` have arrived. */
function barrier(count: number): () => Promise<void> {
  let come = 0
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return () => {
    come += 1
    if (come === count) open()
    return opened
  }
}
