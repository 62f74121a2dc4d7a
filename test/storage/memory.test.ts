import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Change,
  type Json,
  type Kind,
  type ListEntry,
  memoryStore,
  type Page,
  type Store,
  type Stored,
} from '../../src/index.js'

type Record = Stored & { readonly [member: string]: unknown }

function record(id: string, version = 1, more: object = {}): Record {
  return { id, version, by: `${id} ${version}`, ...more }
}

/** The change that writes a record over the version before it. */
function change(next: Stored, kind: Kind = 'grant'): Change {
  return { kind, next, expectedVersion: next.version - 1 }
}

function put(store: Store, ...records: readonly Stored[]): Promise<boolean> {
  return store.commit({ changes: records.map((next) => change(next)), guards: [] })
}

async function versions(store: Store, ...ids: readonly string[]): Promise<(number | undefined)[]> {
  return Promise.all(ids.map(async (id) => (await store.load('grant', id))?.version))
}

function idsOf(records: readonly Stored[]): string[] {
  return records.map(({ id }) => id)
}

describe('a commit', () => {
  test('that creates a record takes effect once', async () => {
    const store = memoryStore()
    expect(await put(store, record('a'))).toBe(true)
    expect(await put(store, record('a', 1, { by: 'another' }))).toBe(false)
    expect((await store.load('grant', 'a'))?.by).toBe('a 1')
  })

  test('that replaces a record needs the version that is stored', async () => {
    const store = memoryStore()
    await put(store, record('a'))
    const wrong: Change = { kind: 'grant', next: record('a', 3), expectedVersion: 2 }
    expect(await store.commit({ changes: [wrong], guards: [] })).toBe(false)
    expect(await put(store, record('a', 2))).toBe(true)
    expect(await put(store, record('a', 2))).toBe(false)
    expect(await versions(store, 'a')).toEqual([2])
  })

  test('that replaces a record which does not exist fails', async () => {
    const store = memoryStore()
    expect(await put(store, record('a', 2))).toBe(false)
    expect(await store.load('grant', 'a')).toBeUndefined()
  })

  test('replaces the whole record: what the next version lacks is gone', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { dueAt: 5, lists: [{ by: 'x', at: 1 }], note: 'old' }))
    await put(store, record('a', 2))
    expect(await store.load('grant', 'a')).toEqual(record('a', 2))
    expect(await store.due('grant', '', 10, 10)).toEqual([])
    expect((await store.list({ kind: 'grant', by: 'x', forward: true, limit: 5 })).records).toEqual(
      [],
    )
  })

  test('knows a record by kind and id together, and ids by their bytes', async () => {
    const store = memoryStore()
    const kinds: Kind[] = ['grant', 'incoming-payment', 'transfer', 'replay', 'event']
    for (const kind of kinds) {
      const next = record('same', 1, { of: kind })
      expect(await store.commit({ changes: [change(next, kind)], guards: [] })).toBe(true)
    }
    expect(await put(store, record('Same'))).toBe(true)
    for (const kind of kinds) {
      expect(await store.load(kind, 'same')).toMatchObject({ of: kind })
    }
    expect(await store.load('grant', 'SAME')).toBeUndefined()
    expect(await store.load('grant', 'sam')).toBeUndefined()
  })

  test.each(['__proto__', 'constructor', 'toString', '.', '..', '-', 'a'.repeat(128)])(
    'takes %s for an id like any other',
    async (id) => {
      const store = memoryStore()
      expect(await store.load('grant', id)).toBeUndefined()
      expect(await put(store, record(id))).toBe(true)
      expect(await store.load('grant', id)).toEqual(record(id))
    },
  )

  test.each(['first', 'middle', 'last'])(
    'is all or nothing when its %s change is lost',
    async (at) => {
      const store = memoryStore()
      await put(store, record('taken'))
      const lost = change(record('taken', 1, { by: 'loser' }))
      const [b, c] = [change(record('b')), change(record('c'))]
      const changes = at === 'first' ? [lost, b, c] : at === 'middle' ? [b, lost, c] : [b, c, lost]
      expect(await store.commit({ changes, guards: [] })).toBe(false)
      expect(await versions(store, 'b', 'c', 'taken')).toEqual([undefined, undefined, 1])
      expect((await store.load('grant', 'taken'))?.by).toBe('taken 1')
      expect(idsOf(await store.due('grant', '', Infinity, 10))).toEqual([])
    },
  )

  test('is all or nothing across kinds', async () => {
    const store = memoryStore()
    await put(store, record('g'))
    const changes = [change(record('e'), 'event'), change(record('g', 3))]
    expect(await store.commit({ changes, guards: [] })).toBe(false)
    expect(await store.load('event', 'e')).toBeUndefined()
    expect(
      await store.commit({ changes: [changes[0] as Change, change(record('g', 2))], guards: [] }),
    ).toBe(true)
    expect(await store.load('event', 'e')).toEqual(record('e'))
  })

  test('that cannot be carried out writes nothing', async () => {
    const store = memoryStore()
    const broken = change({ ...record('b'), amount: 5n } as unknown as Stored)
    await expect(
      store.commit({ changes: [change(record('a')), broken], guards: [] }),
    ).rejects.toThrow()
    expect(await versions(store, 'a', 'b')).toEqual([undefined, undefined])
  })

  test('of nothing at all takes effect', async () => {
    expect(await memoryStore().commit({ changes: [], guards: [] })).toBe(true)
  })
})

describe('a guard', () => {
  test.each<[string, number, boolean]>([
    ['holds while the record is at its version', 2, true],
    ['fails the commit when the record has moved on', 1, false],
    ['fails the commit when the record is not there yet', 3, false],
    ['fails the commit when the record should not exist', 0, false],
  ])('%s', async (_, version, expected) => {
    const store = memoryStore()
    await put(store, record('guarded'))
    await put(store, record('guarded', 2))
    const guards = [{ kind: 'grant' as const, id: 'guarded', version }]
    expect(await store.commit({ changes: [change(record('a'))], guards })).toBe(expected)
    expect(await versions(store, 'a')).toEqual([expected ? 1 : undefined])
  })

  test('on a record that does not exist holds at version 0 and at no other', async () => {
    const store = memoryStore()
    const guard = (version: number) => [{ kind: 'grant' as const, id: 'absent', version }]
    expect(await store.commit({ changes: [change(record('a'))], guards: guard(1) })).toBe(false)
    expect(await store.commit({ changes: [change(record('a'))], guards: guard(0) })).toBe(true)
  })

  test('writes nothing', async () => {
    const store = memoryStore()
    await put(store, record('guarded', 1, { note: 'as it was' }))
    const guards = [{ kind: 'grant' as const, id: 'guarded', version: 1 }]
    await store.commit({ changes: [change(record('a'))], guards })
    expect(await store.load('grant', 'guarded')).toEqual(
      record('guarded', 1, { note: 'as it was' }),
    )
  })

  test('of another kind is another record', async () => {
    const store = memoryStore()
    await put(store, record('same'))
    const guards = [{ kind: 'event' as const, id: 'same', version: 1 }]
    expect(await store.commit({ changes: [change(record('a'))], guards })).toBe(false)
  })

  test('and a change of what it guards, at the same time: one of them wins', async () => {
    const store = memoryStore()
    await put(store, record('guarded'))
    const guards = [{ kind: 'grant' as const, id: 'guarded', version: 1 }]
    const [guarded, moved] = await Promise.all([
      store.commit({ changes: [change(record('a'))], guards }),
      put(store, record('guarded', 2)),
    ])
    expect(moved).toBe(true)
    expect(await versions(store, 'a', 'guarded')).toEqual([guarded ? 1 : undefined, 2])
  })
})

describe('many writers at once', () => {
  test('of one new record: exactly one has it', async () => {
    const store = memoryStore()
    const writers = Array.from({ length: 200 }, (_, i) => ({ ...record('a'), by: `writer ${i}` }))
    const outcomes = await Promise.all(writers.map((next) => put(store, next)))
    expect(outcomes.filter(Boolean)).toHaveLength(1)
    const winner = writers[outcomes.indexOf(true)]
    expect(await store.load('grant', 'a')).toEqual(winner)
  })

  test('who all retry count to the right sum', async () => {
    const store = memoryStore()
    await put(store, record('counter', 1, { count: 0 }))
    const increment = async () => {
      for (;;) {
        const current = (await store.load('grant', 'counter')) as Record & { count: number }
        const next = record('counter', current.version + 1, { count: current.count + 1 })
        if (await put(store, next)) return
      }
    }
    await Promise.all(Array.from({ length: 100 }, increment))
    expect(await store.load('grant', 'counter')).toEqual(record('counter', 101, { count: 100 }))
  })

  test('who move units between records never make or lose any', async () => {
    const store = memoryStore()
    const ids = ['a', 'b', 'c', 'd']
    await put(store, ...ids.map((id) => record(id, 1, { units: 100 })))
    const load = async (id: string) => (await store.load('grant', id)) as Record & { units: number }
    const move = async (from: string, to: string, units: number) => {
      for (;;) {
        const [source, target] = [await load(from), await load(to)]
        if (source.units < units) return
        const moved = [
          record(from, source.version + 1, { units: source.units - units }),
          record(to, target.version + 1, { units: target.units + units }),
        ]
        if (await put(store, ...moved)) return
      }
    }
    const moves = Array.from({ length: 200 }, (_, i) => {
      const from = ids[i % 4] ?? ''
      return move(from, ids[(i + 1 + (i % 3)) % 4] ?? '', (i % 7) + 1)
    })
    await Promise.all(moves)
    const left = await Promise.all(ids.map(load))
    expect(left.reduce((sum, { units }) => sum + units, 0)).toBe(400)
    expect(left.every(({ units }) => units >= 0)).toBe(true)
  })

  test('are told the truth: each version was written by one, and each that was told so wrote it', async () => {
    const writes = fc.array(
      fc.record({
        ids: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 }),
        guard: fc.option(fc.constantFrom('a', 'b', 'c', 'd')),
      }),
      { minLength: 1, maxLength: 25 },
    )
    await fc.assert(
      fc.asyncProperty(writes, async (script) => {
        const store = memoryStore()
        const wrote: string[] = []
        await Promise.all(
          script.map(async ({ ids, guard }, i) => {
            const by = `writer ${i}`
            const seen = await versions(store, ...ids)
            const guarded = guard === null ? 0 : ((await versions(store, guard))[0] ?? 0)
            const changes = ids.map((id, at) => {
              const expectedVersion = seen[at] ?? 0
              const next = { id, version: expectedVersion + 1, by }
              return { kind: 'grant' as const, next, expectedVersion }
            })
            const guards =
              guard === null ? [] : [{ kind: 'grant' as const, id: guard, version: guarded }]
            if (!(await store.commit({ changes, guards }))) return
            for (const { next } of changes) wrote.push(`${next.id} ${next.version}`)
          }),
        )
        expect(new Set(wrote).size).toBe(wrote.length)
        for (const id of ['a', 'b', 'c']) {
          const last = (await versions(store, id))[0] ?? 0
          const expected = Array.from({ length: last }, (_, i) => `${id} ${i + 1}`)
          const got = wrote.filter((write) => write.startsWith(id))
          expect(got.toSorted()).toEqual(expected.toSorted())
        }
      }),
      { numRuns: 300 },
    )
  })

  test('and readers: nothing half written is ever seen', async () => {
    const store = memoryStore()
    const both = (version: number) =>
      ['a', 'b'].map((id) => record(id, version, { lists: [{ by: 'x', at: 1 }] }))
    await put(store, ...both(1))
    const write = async () => {
      for (let version = 2; version <= 60; version++) await put(store, ...both(version))
    }
    const seen: (readonly number[])[] = []
    const read = async () => {
      for (let i = 0; i < 60; i++) {
        const page = await store.list({ kind: 'grant', by: 'x', forward: true, limit: 2 })
        seen.push(page.records.map(({ version }) => version))
      }
    }
    await Promise.all([write(), read(), read()])
    expect(seen.every(([a, b]) => a !== undefined && a === b)).toBe(true)
    expect(new Set(seen.map(([a]) => a)).size).toBeGreaterThan(10)
    expect(await versions(store, 'a', 'b')).toEqual([60, 60])
  })
})

describe('what is stored', () => {
  const awkward: Json = {
    nul: 'a\u0000b',
    lone: '\ud800 and \udfff',
    'lone \ud800 key': 1,
    '': 'empty key',
    quotes: '"\\\u2028\u2029\n',
    emoji: '👍🏽',
    empty: [{}, [], '', null, false, 0],
    numbers: [
      9007199254740991,
      -9007199254740991,
      9007199254740992,
      Number.MAX_VALUE,
      -Number.MAX_VALUE,
      Number.MIN_VALUE,
      2.2250738585072014e-308,
      0.1 + 0.2,
      1e21,
      1e-7,
    ],
    constructor: 'own',
    hasOwnProperty: 'own',
    toJSON: 'own',
    length: 3,
    nested: { a: { b: { c: { d: [[[['deep']]]] } } } },
  }

  test('comes back key for key', async () => {
    const store = memoryStore()
    const stored = record('a', 1, { value: awkward })
    await put(store, stored)
    const loaded = await store.load('grant', 'a')
    expect(loaded).toStrictEqual(stored)
    expect(JSON.stringify(loaded)).toBe(JSON.stringify(stored))
  })

  test('may have a member named __proto__, which stays a member', async () => {
    const store = memoryStore()
    const value = JSON.parse('{"__proto__":{"polluted":true},"a":1}')
    await put(store, record('a', 1, { value }))
    const loaded = (await store.load('grant', 'a')) as Record & { value: object }
    expect(Object.keys(loaded.value)).toEqual(['__proto__', 'a'])
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    expect(Object.getPrototypeOf(loaded.value)).toBe(Object.prototype)
  })

  test('comes back key for key, whatever JSON it is', async () => {
    const json = fc
      .jsonValue({ noUnicodeString: false })
      .map((value) => JSON.parse(JSON.stringify(value)))
    await fc.assert(
      fc.asyncProperty(json, fc.string({ unit: 'binary' }), async (value, text) => {
        const store = memoryStore()
        const stored = record('a', 1, { value, [text]: text })
        await put(store, stored)
        expect(await store.load('grant', 'a')).toStrictEqual(stored)
      }),
      { numRuns: 500 },
    )
  })

  test('is not reached through what was loaded, listed or due', async () => {
    const store = memoryStore()
    const lists = [{ by: 'x', at: 1 }]
    await put(store, record('a', 1, { dueAt: 1, lists, deep: { list: [1] } }))
    type Open = { deep: { list: number[] } }
    const page = await store.list({ kind: 'grant', by: 'x', forward: true, limit: 1 })
    const due = await store.due('grant', '', 5, 5)
    const reached = [await store.load('grant', 'a'), page.records[0], due[0]]
    expect(reached).toHaveLength(3)
    for (const loaded of reached) {
      ;(loaded as unknown as Open).deep.list.push(2)
      Object.assign(loaded as object, { version: 99, by: 'intruder' })
    }
    expect(await store.load('grant', 'a')).toEqual(
      record('a', 1, { dueAt: 1, lists, deep: { list: [1] } }),
    )
  })

  test('is not reached through what was committed', async () => {
    const store = memoryStore()
    const next = record('a', 1, { deep: { list: [1] } }) as Record & { deep: { list: number[] } }
    await put(store, next)
    next.deep.list.push(2)
    expect(await store.load('grant', 'a')).toEqual(record('a', 1, { deep: { list: [1] } }))
  })

  test('is one value for each who loads it', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { deep: {} }))
    const [one, two] = await Promise.all([store.load('grant', 'a'), store.load('grant', 'a')])
    expect(one).toEqual(two)
    expect(one).not.toBe(two)
  })

  test('belongs to one store', async () => {
    const [one, two] = [memoryStore(), memoryStore()]
    await put(one, record('a'))
    expect(await two.load('grant', 'a')).toBeUndefined()
  })
})

/** Pages through everything, one way, from the start or from where the last page ended. */
async function pages(
  store: Store,
  by: string,
  { limit, forward }: { limit: number; forward: boolean },
  between: () => Promise<unknown> = async () => undefined,
): Promise<{ id: string; at: number }[]> {
  const found: { id: string; at: number }[] = []
  let cursor: { at: number; id: string } | undefined
  for (let page: Page | undefined; page === undefined || page.more; await between()) {
    const query = { kind: 'grant' as const, by, forward, limit }
    page = await store.list(cursor === undefined ? query : { ...query, cursor })
    expect(page.records.length).toBeLessThanOrEqual(limit)
    const places = page.records.map(({ id, lists = [] }) => ({ id, at: atOf(lists, by) }))
    if (forward) found.push(...places)
    else found.unshift(...places)
    const edge = forward ? places.at(-1) : places[0]
    if (edge === undefined) break
    cursor = edge
  }
  return found
}

function atOf(lists: readonly ListEntry[], by: string): number {
  return lists.find((entry) => entry.by === by)?.at ?? Number.NaN
}

function listed(id: string, at: number, by = 'alice'): Record {
  return record(id, 1, { lists: [{ by, at }] })
}

describe('a list', () => {
  test('has the records that name it, by time and then by id', async () => {
    const store = memoryStore()
    await put(
      store,
      listed('c', 2),
      listed('b', 2),
      listed('z', 1),
      listed('a', 3),
      listed('other', 1, 'bob'),
      listed('prefix', 1, 'alic'),
      record('unlisted'),
    )
    await store.commit({ changes: [change(listed('event', 1), 'event')], guards: [] })
    const page = await store.list({ kind: 'grant', by: 'alice', forward: true, limit: 10 })
    expect(idsOf(page.records)).toEqual(['z', 'b', 'c', 'a'])
    expect(page.more).toBe(false)
  })

  test('is in the same order backwards, the page being the last one', async () => {
    const store = memoryStore()
    await put(store, listed('a', 1), listed('b', 2), listed('c', 3))
    const query = { kind: 'grant' as const, by: 'alice', forward: false }
    const last = await store.list({ ...query, limit: 2 })
    expect(idsOf(last.records)).toEqual(['b', 'c'])
    expect(last.more).toBe(true)
    const first = await store.list({ ...query, limit: 2, cursor: { at: 2, id: 'b' } })
    expect(idsOf(first.records)).toEqual(['a'])
    expect(first.more).toBe(false)
  })

  test('orders ids by their bytes', async () => {
    const store = memoryStore()
    const ids = ['a', 'B', '_', '-', '.', '0', 'Z', 'z', '10', '9', 'aa']
    await put(store, ...ids.map((id) => listed(id, 5)))
    const page = await store.list({ kind: 'grant', by: 'alice', forward: true, limit: 20 })
    const bytewise = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect(idsOf(page.records)).toEqual(bytewise)
  })

  test('says that there is more only if there is', async () => {
    const store = memoryStore()
    await put(store, listed('a', 1), listed('b', 1))
    const query = { kind: 'grant' as const, by: 'alice' }
    for (const forward of [true, false]) {
      expect((await store.list({ ...query, forward, limit: 1 })).more).toBe(true)
      expect((await store.list({ ...query, forward, limit: 2 })).more).toBe(false)
      expect((await store.list({ ...query, forward, limit: 3 })).more).toBe(false)
    }
  })

  test.each([true, false])('of nobody is an empty page (forward: %s)', async (forward) => {
    const page = await memoryStore().list({ kind: 'grant', by: 'alice', forward, limit: 5 })
    expect(page).toEqual({ records: [], more: false })
  })

  test.each([true, false])('asked for no records gives none (forward: %s)', async (forward) => {
    const store = memoryStore()
    await put(store, listed('a', 1), listed('b', 2))
    const page = await store.list({ kind: 'grant', by: 'alice', forward, limit: 0 })
    expect(page).toEqual({ records: [], more: true })
  })

  test('goes on from a place that no record takes, or no longer takes', async () => {
    const store = memoryStore()
    await put(store, listed('a', 1), listed('b', 3), listed('c', 5))
    await store.remove('grant', 'b', 1)
    const query = { kind: 'grant' as const, by: 'alice', limit: 5 }
    const from = async (at: number, id: string, forward: boolean) =>
      idsOf((await store.list({ ...query, forward, cursor: { at, id } })).records)
    expect(await from(3, 'b', true)).toEqual(['c'])
    expect(await from(3, 'b', false)).toEqual(['a'])
    expect(await from(4, 'x', true)).toEqual(['c'])
    expect(await from(1, '', true)).toEqual(['a', 'c'])
    expect(await from(99, 'x', false)).toEqual(['a', 'c'])
  })

  test('finds a record in each of its places', async () => {
    const store = memoryStore()
    const lists = [
      { by: 'alice', at: 1 },
      { by: 'alice shop', at: 9 },
    ]
    await put(store, record('a', 1, { lists }))
    for (const { by, at } of lists) {
      const cursor = { at: at - 1, id: '' }
      const page = await store.list({ kind: 'grant', by, forward: true, limit: 5, cursor })
      expect(idsOf(page.records)).toEqual(['a'])
    }
  })

  test('sees every commit that returned true', async () => {
    const store = memoryStore()
    for (let i = 0; i < 20; i++) {
      await put(store, listed(`r${i}`, 20 - i))
      const page = await store.list({ kind: 'grant', by: 'alice', forward: true, limit: 50 })
      expect(page.records).toHaveLength(i + 1)
      expect(page.records[0]?.id).toBe(`r${i}`)
    }
  })

  const times = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 30 })

  test('has each record exactly once, whatever the page size and the way, with equal times', async () => {
    await fc.assert(
      fc.asyncProperty(
        times,
        fc.integer({ min: 1, max: 7 }),
        fc.boolean(),
        async (instants, limit, forward) => {
          const store = memoryStore()
          const records = instants.map((at, i) => listed(`r${(i * 7) % 31}`, at))
          if (records.length > 0) await put(store, ...records)
          const expected = records
            .map(({ id, lists = [] }) => ({ id, at: atOf(lists, 'alice') }))
            .toSorted((a, b) => a.at - b.at || Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)))
          expect(await pages(store, 'alice', { limit, forward })).toEqual(expected)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('has what was there before the first page exactly once, while others write', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 20 }),
        times,
        fc.integer({ min: 1, max: 4 }),
        fc.boolean(),
        async (before, during, limit, forward) => {
          const store = memoryStore()
          const old = before.map((at, i) => listed(`old${(i * 7) % 31}`, at))
          await put(store, ...old)
          let i = 0
          const found = await pages(store, 'alice', { limit, forward }, async () => {
            const at = during[i]
            const touched = old[i % old.length]
            if (at !== undefined) await put(store, listed(`new${i}`, at))
            if (touched !== undefined) {
              const current = await store.load('grant', touched.id)
              await put(store, { ...touched, version: (current?.version ?? 0) + 1 })
            }
            i += 1
          })
          const seen = found.map(({ id }) => id).filter((id) => id.startsWith('old'))
          expect(seen.toSorted()).toEqual(idsOf(old).toSorted())
          const all = found.map(({ id }) => id)
          expect(new Set(all).size).toBe(all.length)
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('what is due', () => {
  test('is what has its time at or before the one asked for, earliest first', async () => {
    const store = memoryStore()
    await put(
      store,
      record('late', 1, { dueAt: 11 }),
      record('now', 1, { dueAt: 10 }),
      record('b', 1, { dueAt: 3 }),
      record('a', 1, { dueAt: 3 }),
      record('first', 1, { dueAt: -5 }),
      record('never'),
    )
    expect(idsOf(await store.due('grant', '', 10, 10))).toEqual(['first', 'a', 'b', 'now'])
    expect(await store.due('event', '', 10, 10)).toEqual([])
  })

  test('is at most so many, the earliest', async () => {
    const store = memoryStore()
    await put(store, ...[5, 3, 4, 1, 2].map((dueAt) => record(`r${dueAt}`, 1, { dueAt })))
    expect(idsOf(await store.due('grant', '', 10, 2))).toEqual(['r1', 'r2'])
    expect(await store.due('grant', '', 10, 0)).toEqual([])
  })

  test('is of one namespace', async () => {
    const store = memoryStore()
    const ids = ['abcdefgh1', 'abcdefgh2', 'abcdefgH3', 'xabcdefgh', 'abcdefg']
    await put(store, ...ids.map((id) => record(id, 1, { dueAt: 1 })))
    expect(idsOf(await store.due('grant', 'abcdefgh', 1, 10))).toEqual(['abcdefgh1', 'abcdefgh2'])
  })

  test('moves with each version', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { dueAt: 1 }))
    await put(store, record('a', 2, { dueAt: 50 }))
    expect(await store.due('grant', '', 49, 10)).toEqual([])
    expect(await store.due('grant', '', 50, 10)).toEqual([record('a', 2, { dueAt: 50 })])
    await put(store, record('a', 3))
    expect(await store.due('grant', '', 50, 10)).toEqual([])
  })

  test('is not what is only to be retained until then', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { retainUntil: 1 }))
    expect(await store.due('grant', '', 10, 10)).toEqual([])
    expect(await store.load('grant', 'a')).toBeDefined()
  })
})

describe('a record that is removed', () => {
  test('at its version is gone from everywhere, and may be created anew', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { dueAt: 1, lists: [{ by: 'x', at: 1 }] }))
    expect(await store.remove('grant', 'a', 1)).toBe(true)
    expect(await store.load('grant', 'a')).toBeUndefined()
    expect(await store.due('grant', '', 5, 5)).toEqual([])
    const page = await store.list({ kind: 'grant', by: 'x', forward: true, limit: 5 })
    expect(page.records).toEqual([])
    expect(await store.remove('grant', 'a', 1)).toBe(false)
    expect(await put(store, record('a', 2))).toBe(false)
    expect(await put(store, record('a'))).toBe(true)
  })

  test.each([0, 1, 3])('at version %i, which it is not at, stays', async (version) => {
    const store = memoryStore()
    await put(store, record('a'))
    await put(store, record('a', 2))
    expect(await store.remove('grant', 'a', version)).toBe(false)
    expect(await versions(store, 'a')).toEqual([2])
  })

  test('and never was there is not removed, nor is one of another kind', async () => {
    const store = memoryStore()
    await put(store, record('a'))
    expect(await store.remove('grant', 'b', 0)).toBe(false)
    expect(await store.remove('event', 'a', 1)).toBe(false)
    expect(await versions(store, 'a')).toEqual([1])
  })

  test('by many at once is removed by one', async () => {
    const store = memoryStore()
    await put(store, record('a'))
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => store.remove('grant', 'a', 1)),
    )
    expect(outcomes.filter(Boolean)).toHaveLength(1)
  })

  test('while it is changed is either changed or gone', async () => {
    const store = memoryStore()
    await put(store, record('a'))
    const [removed, changed] = await Promise.all([
      store.remove('grant', 'a', 1),
      put(store, record('a', 2)),
    ])
    expect(removed).toBe(!changed)
    expect(await versions(store, 'a')).toEqual([changed ? 2 : undefined])
  })
})

describe('the store', () => {
  test('answers no call at once, so that it hides no race', async () => {
    const store = memoryStore()
    await put(store, record('a', 1, { dueAt: 1, lists: [{ by: 'x', at: 1 }] }))
    const first: string[] = []
    const calls = [
      store.load('grant', 'a'),
      store.commit({ changes: [change(record('b'))], guards: [] }),
      store.list({ kind: 'grant', by: 'x', forward: true, limit: 1 }),
      store.due('grant', '', 1, 1),
      store.remove('grant', 'a', 1),
    ].map((call) => call.then(() => first.push('the store')))
    const other = Promise.resolve().then(() => first.push('somebody else'))
    await Promise.all([...calls, other])
    expect(first[0]).toBe('somebody else')
  })

  test('works when its methods are taken apart from it', async () => {
    const { load, commit } = memoryStore()
    expect(await commit({ changes: [change(record('a'))], guards: [] })).toBe(true)
    expect(await load('grant', 'a')).toEqual(record('a'))
  })
})
