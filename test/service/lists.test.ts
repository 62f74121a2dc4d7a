import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Stored } from '../../src/entry-adapter.js'
import { memoryStore, type RecordKind, type Store } from '../../src/index.js'
import {
  clientListName,
  iterateList,
  type ListPage,
  listsOf,
  mergedSource,
  type PageQuery,
  readPage,
  readPageQuery,
  type Source,
  sharedListName,
  sourceOf,
} from '../../src/service/lists.js'
import { removeOne } from '../support/one-record.js'
import { runs } from '../support/runs.js'

const kind = 'incoming-payment'
const ofBob = 'namespac https://wallet.example/bob'
const ofAlice = 'namespac https://wallet.example/alice'

function listed(number: number, at: number, wanted = ofBob): Stored {
  const id = `namespac-${number.toString().padStart(3, '0')}`
  return { id, version: 1, commandId: `command ${number}`, lists: [{ list: wanted, at }] }
}

async function commitOne(store: Store, kind: RecordKind, next: Stored): Promise<void> {
  const change = { kind, next, expectedVersion: 0 } as const
  if (!(await store.commit({ changes: [change], guards: [] }))) throw new Error('it was there')
}

const put = (store: Store, record: Stored) => commitOne(store, kind, record)

function pageOf(store: Store, query: PageQuery, wanted = ofBob): Promise<ListPage<Stored>> {
  const read = readPageQuery(query)
  if (!read.ok) throw new Error(`${read.path} ${read.problem}`)
  return readPage(sourceOf(store, { kind, list: wanted }), read.value)
}

const idsOf = (records: readonly Stored[]) => records.map(({ id }) => id)
const placeOf = ({ lists, id }: Stored) => [lists?.[0]?.at ?? 0, id] as const

function inOrder(records: readonly Stored[]): Stored[] {
  return [...records].sort((a, b) => {
    const [[at, id], [otherAt, otherId]] = [placeOf(a), placeOf(b)]
    return at - otherAt || (id < otherId ? -1 : 1)
  })
}

// Few distinct instants, so that many records share one, and ids in random order.
const instant = fc.integer({ min: 0, max: 4 })
const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { maxLength: 25 })
const population = numbers.chain((numbers) =>
  fc.tuple(...numbers.map((number) => instant.map((at) => listed(number, at)))),
)
const limit = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 30 }))
const direction = fc.constantFrom('first' as const, 'last' as const)

async function stored(records: readonly Stored[]): Promise<Store> {
  const store = memoryStore()
  for (const record of records) await put(store, record)
  return store
}

/** Collects the cursor of each record from pages of one record each. */
async function cursorsOf(store: Store): Promise<string[]> {
  const cursors: string[] = []
  for (let more = true; more; ) {
    const cursor = cursors.at(-1)
    const page = await pageOf(store, cursor === undefined ? { first: 1 } : { first: 1, cursor })
    const { startCursor, endCursor, hasNextPage } = page.pagination
    expect(startCursor).toBe(endCursor)
    if (startCursor !== undefined) cursors.push(startCursor)
    more = hasNextPage
  }
  return cursors
}

/** A store that counts the queries of lists. */
function counting(store: Store): Store & { queries: number } {
  const counted = {
    ...store,
    queries: 0,
    list(query: Parameters<Store['list']>[0]) {
      counted.queries += 1
      return store.list(query)
    },
  }
  return counted
}

const cursors = { startCursor: expect.any(String), endCursor: expect.any(String) }

describe('a page', () => {
  test('without a cursor is one end of the list, with no page beyond it', async () => {
    await fc.assert(
      fc.asyncProperty(population, direction, limit, async (records, direction, limit) => {
        const all = inOrder(records)
        const { result, pagination } = await pageOf(await stored(records), { [direction]: limit })
        const expected = direction === 'first' ? all.slice(0, limit) : all.slice(-limit)
        expect(result).toEqual(expected)
        expect(pagination).toStrictEqual({
          ...(expected.length === 0 ? {} : cursors),
          hasNextPage: direction === 'first' && all.length > limit,
          hasPreviousPage: direction === 'last' && all.length > limit,
        })
      }),
      { numRuns: runs(200) },
    )
  })

  test('with a cursor is adjacent to it, and reports whether pages exist on both sides, even if the record is removed', async () => {
    const picked = fc.tuple(fc.nat(), fc.boolean())
    await fc.assert(
      fc.asyncProperty(
        population.filter(({ length }) => length > 0),
        picked,
        direction,
        limit,
        async (records, [number, isRemoved], direction, limit) => {
          const store = await stored(records)
          const all = inOrder(records)
          const index = number % all.length
          const cursor = (await cursorsOf(store))[index] ?? ''
          const [before, after] = [all.slice(0, index), all.slice(index + 1)]
          const here = isRemoved ? [] : all.slice(index, index + 1)
          if (isRemoved) await removeOne(store, kind, all[index]?.id ?? '', 1)

          const { result, pagination } = await pageOf(store, { [direction]: limit, cursor })
          const expected = direction === 'first' ? after.slice(0, limit) : before.slice(-limit)
          expect(result).toEqual(expected)
          expect(pagination).toStrictEqual({
            ...(expected.length === 0 ? {} : cursors),
            hasNextPage:
              direction === 'first' ? after.length > limit : after.length + here.length > 0,
            hasPreviousPage:
              direction === 'first' ? before.length + here.length > 0 : before.length > limit,
          })
        },
      ),
      { numRuns: runs(300) },
    )
  })

  test('has 20 records by default', async () => {
    const store = await stored(Array.from({ length: 30 }, (_, i) => listed(i, 0)))
    const { result, pagination } = await pageOf(store, {})
    expect(idsOf(result)).toEqual(Array.from({ length: 20 }, (_, i) => listed(i, 0).id))
    const { endCursor = '' } = pagination
    expect((await pageOf(store, { cursor: endCursor })).result).toHaveLength(10)
  })

  test('takes two store queries with a cursor, and one without', async () => {
    const counted = counting(await stored([listed(1, 0), listed(2, 0), listed(3, 0)]))
    const { pagination } = await pageOf(counted, { first: 1 })
    expect(counted.queries).toBe(1)
    await pageOf(counted, { first: 1, cursor: pagination.endCursor ?? '' })
    expect(counted.queries).toBe(3)
  })
})

/**
 * A client that pages through the list in one direction, and the ids that existed when it started.
 */
interface Walker {
  readonly direction: 'first' | 'last'
  readonly limit: number
  cursor?: string
  there?: readonly string[]
  seen: readonly Stored[]
  done: boolean
}

async function turnPage(walker: Walker, store: Store, committed: readonly Stored[]): Promise<void> {
  if (walker.done) return
  walker.there ??= idsOf(committed)
  const from = walker.cursor === undefined ? {} : { cursor: walker.cursor }
  const { result, pagination } = await pageOf(store, {
    [walker.direction]: walker.limit,
    ...from,
  })
  const forward = walker.direction === 'first'
  walker.seen = forward ? [...walker.seen, ...result] : [...result, ...walker.seen]
  const next = forward ? pagination.endCursor : pagination.startCursor
  if (next !== undefined) walker.cursor = next
  walker.done = !(forward ? pagination.hasNextPage : pagination.hasPreviousPage)
}

test('a client that pages sees each earlier payment once, in order, while new payments arrive', async () => {
  const walker = fc.record({ direction, limit: fc.integer({ min: 1, max: 5 }) })
  // Either the index of a walker that reads its next page, or a new payment, whose instant may be
  // in the past.
  const step = fc.oneof(
    { arbitrary: fc.nat({ max: 2 }), weight: 1 },
    { arbitrary: fc.record({ at: instant, number: fc.nat({ max: 999 }) }), weight: 2 },
  )
  let met = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(walker, { minLength: 3, maxLength: 3 }),
      fc.array(step, { maxLength: 60, size: 'max' }),
      async (settings, steps) => {
        const store = memoryStore()
        const committed: Stored[] = []
        const walkers = settings.map((given): Walker => ({ ...given, seen: [], done: false }))
        for (const step of steps) {
          if (typeof step === 'number') {
            for (const walker of walkers.slice(step, step + 1)) {
              await turnPage(walker, store, committed)
            }
            continue
          }
          const record = listed(step.number, step.at)
          if (idsOf(committed).includes(record.id)) continue
          await put(store, record)
          committed.push(record)
        }
        for (const walker of walkers) {
          while (!walker.done) await turnPage(walker, store, committed)
          const { seen, there = [] } = walker
          expect(seen).toEqual(inOrder(seen))
          const ids = idsOf(seen)
          expect(new Set(ids).size).toBe(ids.length)
          expect(ids).toEqual(expect.arrayContaining([...there]))
          if (ids.length > there.length && there.length > walker.limit) met += 1
        }
      },
    ),
    { numRuns: runs(200) },
  )
  expect(met).toBeGreaterThan(runs(50))
})

describe('a cursor', () => {
  test('is opaque text that needs no escaping in a URL', async () => {
    const store = await stored([listed(7, 1_795_000_000_000)])
    const { startCursor = '' } = (await pageOf(store, {})).pagination
    expect(startCursor).toMatch(/^[\w-]+$/)
    expect(startCursor).not.toMatch(/namespac|1795/)
  })

  test('of another list shows nothing of that list', async () => {
    const store = await stored([
      listed(1, 1, ofAlice),
      listed(2, 2, ofBob),
      listed(3, 3, ofAlice),
      listed(4, 4, ofBob),
      listed(5, 5, ofAlice),
    ])
    const { endCursor = '' } = (await pageOf(store, { first: 2 }, ofAlice)).pagination
    for (const query of [{ first: 100 }, { last: 100 }]) {
      const { result } = await pageOf(store, { ...query, cursor: endCursor }, ofBob)
      expect(idsOf(result)).toEqual([`namespac-00${'first' in query ? 4 : 2}`])
    }
  })

  const written = (text: string) => Buffer.from(text, 'latin1').toString('base64url')

  test('is accepted for every instant and id', () => {
    const at = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))
    const id = fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/)
    fc.assert(
      fc.property(at, id, (at, id) => {
        const cursor = written(`${at} ${id}`)
        expect(readPageQuery({ cursor })).toEqual({
          ok: true,
          value: { forward: true, limit: 20, cursor: { at, id } },
        })
      }),
      { numRuns: runs(200) },
    )
  })

  test.each<readonly [what: string, cursor: string]>([
    ['nothing', ''],
    ['text that is not base64url', 'not a cursor!'],
    ['padded', `${written('1 abcd')}=`],
    ['text that is not UTF-8', written('1 \xff\xff')],
    ['a place without an id', written('1 ')],
    ['a place without an instant', written(' abc')],
    ['an instant alone', written('123456')],
    ['a negative instant', written('-1 abc')],
    ['an instant with a sign', written('+1 abc')],
    ['an instant with a fraction', written('1.5 abc')],
    ['an instant with a leading zero', written('01 abc')],
    ['an instant that is not a safe integer', written('9007199254740992 abc')],
    ['an instant in exponential notation', written('1e3 abc')],
    ['an id with an invalid character', written('1 abc/def')],
    ['an id with a space', written('1 abc def')],
    ['an id followed by a line break', written('1 abc\n')],
    ['an id that is too long', written(`1 ${'x'.repeat(129)}`)],
    ['very long text', 'A'.repeat(100_000)],
    ['a place without its encoding', '1 abc'],
    ['the id of a payment', 'namespac-001'],
  ])('is rejected when it is %s', (_, cursor) => {
    const problem = { ok: false, path: 'cursor', problem: 'is not a valid cursor' }
    expect(readPageQuery({ cursor })).toEqual(problem)
    expect(readPageQuery({ cursor, last: 3 })).toEqual(problem)
  })

  test('with any text is either accepted or rejected, without an exception', () => {
    fc.assert(
      fc.property(fc.string(), (cursor) => {
        readPageQuery({ cursor })
        readPageQuery({ cursor: written(cursor) })
      }),
    )
  })
})

describe('the size of a page', () => {
  test('must be given as either first or last', () => {
    expect(readPageQuery({ first: 1, last: 1 })).toMatchObject({ path: 'last' })
  })
})

describe('iterating over a list', () => {
  test('returns every record in order, for every size of the pages', async () => {
    await fc.assert(
      fc.asyncProperty(population, limit, async (records, limit) => {
        const store = await stored(records)
        const paged: Store = { ...store, list: (query) => store.list({ ...query, limit }) }
        const source = async () => sourceOf(paged, { kind, list: ofBob })
        const ids: string[] = []
        for await (const id of iterateList(source, ({ id }) => id)) ids.push(id)
        expect(ids).toEqual(idsOf(inOrder(records)))
      }),
      { numRuns: runs(100) },
    )
  })
})

test('a store that ignores the cursor is not read for ever', async () => {
  const store = memoryStore()
  for (let number = 1; number <= 101; number++) await put(store, listed(number, number))
  let queries = 0
  const ignoring: Store = {
    ...store,
    async list({ cursor: _, ...query }) {
      queries += 1
      if (queries > 9) throw new Error('the list is read for ever')
      return store.list(query)
    },
  }
  const all = iterateList(
    async () => sourceOf(ignoring, { kind, list: ofBob }),
    ({ id }) => id,
  )
  const ids: string[] = []
  const read = async () => {
    for await (const id of all) ids.push(id)
  }
  await expect(read()).rejects.toThrow('does not follow the page before it')
  expect(queries).toBe(2)
})

describe('two lists of one name', () => {
  const isKept = ({ id }: Stored) => !id.endsWith('0')

  test('are paged as one, with each item once and in order, while its records move to the second', async () => {
    const move = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 2 }))
    const moves = fc.array(move, { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(
        population,
        direction,
        limit,
        moves,
        async (all, direction, limit, moves) => {
          const store = memoryStore()
          const create = (kind: 'grant' | 'ended-grant', next: Stored) =>
            store.commit({ changes: [{ kind, next, expectedVersion: 0 }], guards: [] })
          const kept = inOrder(all).filter(isKept)
          for (const record of all) await create('grant', record)
          const left = moves.values()
          let [copied, removed] = [0, 0]
          async function moveSome() {
            const [count, stay] = left.next().value ?? [0, 0]
            for (const each of kept.slice(copied, copied + count)) await create('ended-grant', each)
            copied = Math.min(copied + count, kept.length)
            // Some copies are in both lists until a later call.
            const gone = Math.max(removed, copied - stay)
            for (const { id } of kept.slice(removed, gone)) {
              await store.remove([{ kind: 'grant', id, version: 1 }])
            }
            removed = gone
          }
          const moving: Store = {
            ...store,
            async list(query) {
              const page = await store.list(query)
              await moveSome()
              return page
            },
          }
          const source = mergedSource(
            sourceOf<Stored>(moving, { kind: 'grant', list: ofBob }, isKept),
            sourceOf<Stored>(moving, { kind: 'ended-grant', list: ofBob }),
          )
          const seen: Stored[][] = []
          let cursor: string | undefined
          for (let more = true; more; ) {
            const read = readPageQuery({ [direction]: limit, cursor })
            if (!read.ok) throw new Error(read.problem)
            const { result, pagination } = await readPage(source, read.value)
            const isForward = direction === 'first'
            expect(isForward ? pagination.hasPreviousPage : pagination.hasNextPage).toBe(
              cursor !== undefined,
            )
            more = isForward ? pagination.hasNextPage : pagination.hasPreviousPage
            cursor = isForward ? pagination.endCursor : pagination.startCursor
            if (isForward) seen.push([...result])
            else seen.unshift([...result])
            if (more) expect(result).toHaveLength(limit)
          }
          expect(idsOf(seen.flat())).toEqual(idsOf(kept))
        },
      ),
      { numRuns: runs(400, 100) },
    )
  })
})

describe('the lists of a payment', () => {
  const bob = 'https://wallet.example/bob'

  test('are the list of its wallet address and the list of its client at that address', () => {
    const lists = listsOf('namespac', bob, 'https://shop.example', 7)
    expect(lists).toEqual([
      { list: sharedListName('namespac', { walletAddress: bob }), at: 7 },
      {
        list: clientListName('namespac', { walletAddress: bob, client: 'https://shop.example' }),
        at: 7,
      },
    ])
    expect(new Set(lists.map(({ list: wanted }) => wanted)).size).toBe(2)
  })
})

describe('a page of the items that are kept', () => {
  const size = 500
  const records = Array.from({ length: size }, (_, index) => {
    const id = `namespac-${index.toString().padStart(4, '0')}`
    return { id, version: 1, commandId: id, lists: [{ list: ofBob, at: index >> 1 }] }
  })
  const store = (async () => {
    const store = memoryStore()
    for (const next of records) await put(store, next)
    return store
  })()

  /** A part of the list: some intervals of it, which are all kept, or of which each so many-th is kept. */
  const kept = fc
    .array(fc.tuple(fc.nat(size), fc.nat(150), fc.constantFrom(1, 2, 7, 150)), { maxLength: 4 })
    .map((parts) => {
      const isIn = (index: number) =>
        parts.some(([start, length, every]) => {
          const at = index - start
          return at >= 0 && at < length && at % every === 0
        })
      return new Set(records.filter((_, index) => isIn(index)).map(({ id }) => id))
    })
  const whole = fc.constant(new Set(records.map(({ id }) => id)))
  const none = fc.constant(new Set<string>())
  const sizes = fc.constantFrom(3, 20, 99, 100)
  const selections = fc.oneof({ weight: 6, arbitrary: kept }, whole, none)

  /** Goes through all pages in a direction, each with at most so many queries, and returns their items in order. */
  async function walked(
    source: Source<Stored>,
    counted: { queries: number },
    direction: 'first' | 'last',
    limit: number,
    queriesMax: number,
  ): Promise<readonly string[]> {
    const isForward = direction === 'first'
    const ids: string[] = []
    let cursor: string | undefined
    for (let more = true; more; ) {
      const read = readPageQuery({ [direction]: limit, ...(cursor && { cursor }) })
      if (!read.ok) throw new Error(read.problem)
      counted.queries = 0
      const { result, pagination } = await readPage(source, read.value)
      expect(counted.queries).toBeLessThanOrEqual(queriesMax)
      expect(result.length).toBeLessThanOrEqual(limit)
      ids.splice(isForward ? ids.length : 0, 0, ...idsOf(result))
      more = isForward ? pagination.hasNextPage : pagination.hasPreviousPage
      const next = isForward ? pagination.endCursor : pagination.startCursor
      if (more) expect([next, next === cursor]).toEqual([expect.any(String), false])
      cursor = next
    }
    return ids
  }

  test('takes at most three store queries, and the pages in either direction have each of them once', async () => {
    const counted = counting(await store)
    await fc.assert(
      fc.asyncProperty(selections, direction, sizes, async (selected, direction, limit) => {
        const keep = ({ id }: Stored) => selected.has(id)
        const source = sourceOf<Stored>(counted, { kind, list: ofBob }, keep)
        const all = await walked(source, counted, direction, limit, 3)
        expect(all).toEqual(idsOf(records.filter(keep)))
      }),
      { numRuns: runs(240) },
    )
  })

  test('may be empty, and leads to what is kept before and after it', async () => {
    const ends = new Set([records[0]?.id, records.at(-1)?.id])
    const source = sourceOf<Stored>(await store, { kind, list: ofBob }, ({ id }) => ends.has(id))
    const page = (query: PageQuery) => {
      const read = readPageQuery(query)
      if (!read.ok) throw new Error(read.problem)
      return readPage(source, read.value)
    }
    const one = await page({ first: 1 })
    const two = await page({ first: 1, cursor: one.pagination.endCursor })
    expect(two).toEqual({
      result: [],
      pagination: { ...cursors, hasNextPage: true, hasPreviousPage: true },
    })
    let back = two
    while (back.result.length === 0 && back.pagination.hasPreviousPage) {
      back = await page({ last: 1, cursor: back.pagination.startCursor })
    }
    expect(back.result).toEqual(one.result)
    expect(back.pagination.hasPreviousPage).toBe(false)
  })

  test('of two lists takes at most five store queries, and an iteration two for each hundred', async () => {
    const other = 'outgoing-payment'
    const merged = memoryStore()
    const [some, all] = [records.filter((_, index) => index % 3 > 0), records]
    for (const next of some) await commitOne(merged, kind, next)
    for (const next of all.slice(200)) await commitOne(merged, other, next)
    const counted = counting(merged)
    await fc.assert(
      fc.asyncProperty(selections, direction, sizes, async (selected, direction, limit) => {
        const keep = ({ id }: Stored) => selected.has(id)
        const first = sourceOf<Stored>(counted, { kind, list: ofBob }, keep)
        const source = mergedSource(first, sourceOf(counted, { kind: other, list: ofBob }))
        const expected = new Set(idsOf([...some.filter(keep), ...all.slice(200)]))
        const found = await walked(source, counted, direction, limit, 5)
        expect(found).toEqual(idsOf(records.filter(({ id }) => expected.has(id))))
        counted.queries = 0
        const iterated: string[] = []
        for await (const id of iterateList(
          async () => source,
          ({ id }) => id,
        ))
          iterated.push(id)
        expect(iterated).toEqual(found)
        expect(counted.queries).toBeLessThanOrEqual(2 * Math.ceil(size / 100) + 2)
      }),
      { numRuns: runs(120) },
    )
  })
})
