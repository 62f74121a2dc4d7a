import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPglite, type PostgresStatement, postgresStore } from '../../../adapters/postgres.js'
import type { RecordKey, Stored } from '../../../src/entry-adapter.js'
import type { Store } from '../../../src/index.js'
import { anyPostgres } from '../../support/databases.js'
import { loadOne } from '../../support/one-record.js'
import { runs } from '../../support/runs.js'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

type Callback = (error: unknown, result?: { rows: object[] }) => void

/**
 * A driver's pool over a map of texts. `script` decides when a statement reads them and whether it fails, `answering`
 * how long the answer then takes.
 */
function scriptedPool(
  script: (keys: readonly RecordKey[]) => Promise<void> = async () => {},
  answering: () => Promise<void> = async () => {},
) {
  const texts = new Map<string, string>()
  const sent: (readonly RecordKey[])[] = []
  const statements: PostgresStatement[] = []

  async function answer(statement: PostgresStatement) {
    const keys = keysOf(statement)
    statements.push(statement)
    sent.push(keys)
    await script(keys)
    const found = keys.map(({ kind, id }) => texts.get(`${kind} ${id}`) ?? null)
    await answering()
    const rows = Array.isArray(statement.values[0])
      ? found.map((value) => ({ value }))
      : [Object.fromEntries(found.map((value, i) => [`value_${i}`, value]))]
    return { rows }
  }
  const client = {
    query(statement: PostgresStatement, callback?: Callback) {
      const answered = answer(statement)
      if (callback === undefined) return answered
      return answered.then((result) => callback(null, result), callback)
    },
    release() {},
  }
  const pool = {
    totalCount: 1,
    connect: (callback: (error: unknown, taken: typeof client) => void) =>
      callback(undefined, client),
    query: () => Promise.reject(new Error('not used')),
  }
  return {
    store: postgresStore(pool as never),
    pool,
    sent,
    statements,
    texts,
    put({ kind, id }: RecordKey, version: number) {
      texts.set(`${kind} ${id}`, JSON.stringify({ id, version, commandId: 'command' }))
    },
  }
}

/** Returns the keys that a statement loads: two arrays, or a parameter for each kind and id. */
function keysOf({ values }: PostgresStatement): RecordKey[] {
  const [kinds, ids] = Array.isArray(values[0])
    ? (values as string[][])
    : [0, 1].map((offset) => values.filter((_, i) => i % 2 === offset) as string[])
  return (kinds ?? []).map((kind, i) => ({ kind, id: ids?.[i] }) as RecordKey)
}

const key = (number: number): RecordKey => ({ kind: 'grant', id: `record-${number}` })
const keysOfLoads = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => key(from + i))

/** The keys of some calls in one turn. */
const calls = fc.array(
  fc.array(fc.integer({ min: 0, max: 9 }).map(key), { minLength: 1, maxLength: 30 }),
  { minLength: 1, maxLength: 12 },
)

/** Begins a load. While it is being answered, others are collected. */
function opening(store: Store): Promise<unknown> {
  return loadOne(store, 'quote', 'opening')
}
const openingKeys = [{ kind: 'quote', id: 'opening' }]

describe('loads over a pool', () => {
  test('are sent in the same turn if no other is being answered', async () => {
    const { store, sent } = scriptedPool()
    for (const asked of [[key(0)], [key(1), key(2)]]) {
      sent.length = 0
      const turnEnds = turn()
      const loaded = store.load(asked)
      await turnEnds
      expect(sent).toEqual([asked])
      await loaded
    }
  })

  test('that begin in one turn of the event loop beside another share a SELECT', async () => {
    const { store, sent } = scriptedPool()
    const asked = keysOfLoads(5)
    const [first, second, ...rest] = asked
    await Promise.all([
      opening(store),
      loadOne(store, 'grant', first?.id ?? ''),
      store.load(rest),
      Promise.resolve().then(() => loadOne(store, 'grant', second?.id ?? '')),
    ])
    expect(sent).toEqual([openingKeys, [first, ...rest, second]])
  })

  test('that begin in later turns have their own', async () => {
    const { store, sent } = scriptedPool(async () => {
      await turn()
      await turn()
    })
    const first = loadOne(store, 'grant', key(0).id)
    await expect.poll(() => sent).toHaveLength(1)
    const second = loadOne(store, 'grant', key(1).id)
    await Promise.all([first, second])
    expect(sent).toEqual([[key(0)], [key(1)]])
  })

  test('share one of at most 60 keys, and a call is never divided', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (asked) => {
        const { store, sent } = scriptedPool()
        await Promise.all(asked.map((keys) => store.load(keys)))
        expect(sent.flat()).toEqual(asked.flat())
        expect(sent.filter(({ length }) => length > 60)).toEqual([])
        // No two that follow each other would fit together.
        for (const [i, { length }] of sent.entries()) {
          if (i === 0) continue
          const next = sent[i + 1]
          const first = asked[asked.findIndex((_, n) => startOf(asked, n) === startOf(sent, i + 1))]
          if (next !== undefined) expect(length + (first?.length ?? 0)).toBeGreaterThan(60)
        }
      }),
    )
  })

  test('share few statements, whatever the number of their keys', async () => {
    const names = new Set<string | undefined>()
    const texts = new Set<string>()
    for (let count = 1; count <= 60; count++) {
      const { store, statements } = scriptedPool()
      const loads = () => keysOfLoads(count).map(({ kind, id }) => loadOne(store, kind, id))
      await Promise.all([opening(store), ...loads()])
      expect(statements).toHaveLength(2)
      names.add(statements[1]?.name)
      texts.add(statements[1]?.text ?? '')
    }
    expect(names.size).toBe(9)
    expect(texts.size).toBe(9)
  })

  test('see a commit that returned before they began, but after another load of the record was read', async () => {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let reads = 0
    const answering = async () => {
      reads += 1
      await held
    }
    const { store, put } = scriptedPool(undefined, answering)
    put(key(0), 1)
    const before = loadOne(store, 'grant', key(0).id)
    await expect.poll(() => reads).toBe(1)
    put(key(0), 2)
    const after = [loadOne(store, 'grant', key(0).id)]
    await turn()
    await turn()
    after.push(loadOne(store, 'grant', key(0).id))
    release()
    expect((await before)?.version).toBe(1)
    expect((await Promise.all(after)).map((found) => found?.version)).toEqual([2, 2])
  })

  test('see each commit that returned before they began, whenever the database reads', async () => {
    const step = fc.oneof(
      fc.record({ commit: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ load: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }) }),
      fc.record({ turns: fc.integer({ min: 1, max: 3 }) }),
    )
    const delays = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), delays, async (steps, waits) => {
        let served = 0
        const wait = async () => {
          for (let left = waits[served++ % waits.length] ?? 0; left > 0; left--) await turn()
        }
        const { store, put } = scriptedPool(wait, wait)
        const versions = [0, 0, 0, 0]
        const loads: Promise<unknown>[] = []
        const missed: unknown[] = []
        for (const each of steps) {
          if ('turns' in each) for (let left = each.turns; left > 0; left--) await turn()
          else if ('commit' in each) {
            const version = (versions[each.commit] ?? 0) + 1
            versions[each.commit] = version
            put(key(each.commit), version)
          } else {
            const least = each.load.map((number) => versions[number] ?? 0)
            const loaded = store.load(each.load.map(key))
            loads.push(loaded.then((found) => missed.push(...outdated(found, least))))
          }
        }
        await Promise.all(loads)
        expect(missed).toEqual([])
      }),
      { numRuns: runs(1_200) },
    )
  })

  test('do not fail because of another that shares their SELECT', async () => {
    const poisons = fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(calls, poisons, async (asked, poisoned) => {
        const ids = poisoned.map((number) => key(number).id)
        const isPoisoned = (keys: readonly RecordKey[]) => keys.some(({ id }) => ids.includes(id))
        const refused = new Error('invalid byte sequence')
        const { store, put } = scriptedPool(async (keys) => {
          if (isPoisoned(keys)) throw refused
        })
        for (const each of keysOfLoads(10)) put(each, 1)
        const results = await Promise.allSettled(asked.map((keys) => store.load(keys)))
        expect(results.map(({ status }) => status)).toEqual(
          asked.map((keys) => (isPoisoned(keys) ? 'rejected' : 'fulfilled')),
        )
        for (const result of results) {
          if (result.status === 'rejected') expect(result.reason).toBe(refused)
        }
      }),
    )
  })

  test('are tried again, each alone, if the connection of their SELECT ends', async () => {
    const { store, put, sent } = scriptedPool(async () => {
      if (sent.length === 2) throw new Error('Connection terminated unexpectedly')
    })
    put(key(1), 7)
    const loads = () => [0, 1].map((id) => loadOne(store, 'grant', key(id).id))
    const [, none, one] = await Promise.all([opening(store), ...loads()])
    expect([none, one]).toMatchObject([undefined, { version: 7 }])
    expect(sent).toEqual([openingKeys, [key(0), key(1)], [key(0)], [key(1)]])
  })

  test('fail alone if their own record cannot be parsed', async () => {
    const { store, put, texts } = scriptedPool()
    put(key(0), 3)
    texts.set(`grant ${key(1).id}`, '{')
    const loads = () => [0, 1].map((id) => loadOne(store, 'grant', key(id).id))
    const [, sound, broken] = await Promise.allSettled([opening(store), ...loads()])
    expect(sound).toMatchObject({ status: 'fulfilled', value: { version: 3 } })
    expect(broken).toMatchObject({ status: 'rejected', reason: expect.any(SyntaxError) })
  })
})

/** Returns the records that are older than the versions that had been committed. */
function outdated(found: readonly (Stored | undefined)[], least: readonly number[]) {
  return found.filter((one, i) => (one?.version ?? 0) < (least[i] ?? 0))
}

/** The number of keys before the list at a place. */
function startOf(lists: readonly (readonly unknown[])[], place: number): number {
  return lists.slice(0, place).flat().length
}

describe('loads over a client of the host, which may choose its connection itself', () => {
  test('have a SELECT each', async () => {
    const { pool, sent } = scriptedPool()
    const taken = await new Promise<never>((resolve) => {
      pool.connect((_, client) => resolve(client as never))
    })
    const query = (taken as { query: (statement: PostgresStatement) => never }).query
    for (const store of [
      postgresStore({ query }),
      postgresStore(fromPglite({ query: (_text, values = []) => query({ text: '', values }) })),
    ]) {
      sent.length = 0
      await Promise.all(keysOfLoads(3).map(({ kind, id }) => loadOne(store, kind, id)))
      expect(sent).toEqual([[key(0)], [key(1)], [key(2)]])
    }
  })
})

describe('loads that share a SELECT of a database', () => {
  let database: Awaited<ReturnType<typeof anyPostgres>>
  beforeAll(async () => {
    database = await anyPostgres()
  })
  afterAll(() => database.close())

  const texts = ['', '\0', 'a\ud800b', '\ue0000000', '\\u0000', `'"\\`, '{NULL}', 'ü€𐍈']
  const stored = texts.map((text, i) => {
    const kind = i % 2 === 0 ? 'grant' : 'quote'
    return [kind, { id: `mixture-${i}`, version: 1, commandId: 'command', text }] as const
  })
  const known: RecordKey[] = stored.map(([kind, { id }]) => ({ kind, id }))
  const missing: RecordKey[] = [
    { kind: 'quote', id: 'mixture-0' },
    { kind: 'grant', id: 'mixture-1' },
    { kind: 'replay', id: 'NULL' },
    { kind: 'event', id: '{a,"b"}' },
  ]

  test.each([true, false])(
    'return what single loads return, for any mixture of keys, with `prepare: %s`',
    async (prepare) => {
      const store = postgresStore(database.client, { ...database.options, prepare })
      const changes = stored.map(([kind, next]) => ({ kind, next, expectedVersion: 0 }))
      await store.commit({ changes, guards: [] })
      const single = new Map<RecordKey, Stored | undefined>()
      for (const each of [...known, ...missing]) {
        single.set(each, await loadOne(store, each.kind, each.id))
      }
      expect(known.map((each) => single.get(each))).toEqual(stored.map(([, record]) => record))
      const some = fc.array(fc.constantFrom(...known, ...missing), { minLength: 1, maxLength: 20 })
      await fc.assert(
        fc.asyncProperty(fc.array(some, { minLength: 1, maxLength: 8 }), async (asked) => {
          const found = await Promise.all(asked.map((keys) => store.load(keys)))
          expect(found).toEqual(asked.map((keys) => keys.map((each) => single.get(each))))
        }),
        { numRuns: runs(50) },
      )
    },
  )
})
