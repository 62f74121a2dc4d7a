import { type ListQuery, type Stored, storeBounds } from 'open-payments-server/adapter'
import { seededIndex } from '../random.js'
import { demand, demandSame, show } from './expectations.js'
import {
  atOnce,
  cases,
  change,
  compareIds,
  idsOf,
  record,
  steps,
  type TestRecord,
  type Trial,
} from './trial.js'

const onLists = { rule: 6, needs: { lists: 1 } } as const
const searchingLists = { ...onLists, search: true } as const

const bothWays = [true, false] as const

/** Returns a record in one list. */
function entry(id: string, list: string, at: number, version = 1): TestRecord {
  return record(id, version, { lists: [{ list, at }] })
}

const order = cases(onLists, {
  async 'a list is ascending by place and then by the bytes of the id, in both directions'(t) {
    // Endings of ids that differ in case, punctuation or length.
    const endings = ['', ...'- -a . 0 09 1 10 A Aa B _ a a_ aa b'.split(' ')].sort(compareIds)
    const records = [1, 2, 3].flatMap((at) =>
      endings.map((ending) => entry(t.id(`${at}${ending}`), t.listName(), at)),
    )
    // Neither in list order nor in reverse: insertion order must not help.
    const arriving = records.map((_, i) => records[(i * 29 + 5) % records.length] as TestRecord)
    await t.mustPut(...arriving)
    for (const forward of bothWays) {
      for (let repeat = 0; repeat < 2; repeat++) {
        const what = `a list, ${forward ? 'forwards' : 'backwards'}, ascending by (at, id) byte for byte`
        await t.lists(t.listName(), records, what, { forward })
      }
    }
  },

  async 'a list orders places over the whole range of safe integers'(t) {
    const list = t.listName()
    const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number
    const real = [0, 1, 9, 10, 2_147_483_648, 1_700_000_000_000, 1_700_000_000_001]
    const places =
      t.shapes === 'real' ? real : [min, min + 1, -1_000, -999, -1, ...real, max - 1, max]
    const id = (i: number) => t.id(String((i * 5) % places.length).padStart(2, '0'))
    const records = places.map((at, i) => entry(id(i), list, at))
    await t.mustPut(...records.toReversed())
    const what = 'records of a list with places from the least safe integer to the greatest'
    for (const forward of bothWays) await t.lists(list, records, what, { forward })
    await atOnce(places.length, async (i) => {
      const cursor = { at: places[i] ?? 0, id: id(i) }
      await t.lists(list, records.slice(i + 1), `what follows the place ${cursor.at}`, { cursor })
      const before = { cursor, forward: false }
      await t.lists(list, records.slice(0, i), `what precedes the place ${cursor.at}`, before)
    })
  },

  async 'a page contains the records next to its cursor, in both directions'(t) {
    const list = t.listName()
    const ids = Array.from({ length: 9 }, (_, i) => t.id(String(i).padStart(2, '0')))
    // Three records share each place.
    const at = (i: number) => Math.floor(i / 3)
    const records = ids.map((id, i) => entry(id, list, at(i)))
    await t.mustPut(...records)
    const reads = [1, 2, 20].flatMap((limit) =>
      ids.map(async (id, i) => {
        const cursor = { at: at(i), id }
        const after = { cursor, limit, more: i + 1 + limit < ids.length }
        const next = records.slice(i + 1, i + 1 + limit)
        await t.lists(list, next, `a page of ${limit} after record ${i} of 9`, after)
        const before = { cursor, limit, forward: false, more: i > limit }
        const previous = records.slice(Math.max(0, i - limit), i)
        await t.lists(list, previous, `a page of ${limit} backwards from record ${i} of 9`, before)
      }),
    )
    await Promise.all(reads)
  },

  async 'a cursor does not have to be an existing record'(t) {
    const list = t.listName()
    const places: Record<string, number> = { a: 11, c: 13, e: 13, g: 15 }
    const all = (names: string) =>
      [...names].map((name) => entry(t.id(name), list, places[name] ?? 0))
    await t.mustPut(...all('aceg'))
    await t.mustRemove(t.id('c'), 1)
    const expected: [at: number, name: string, before: string, after: string][] = [
      [13, 'c', 'a', 'eg'],
      [13, 'd', 'a', 'eg'],
      [13, 'C', 'a', 'eg'],
      [13, 'f', 'ae', 'g'],
      [12, 'z', 'a', 'eg'],
      [14, 'a', 'ae', 'g'],
      [1, 'z', '', 'aeg'],
      [19, 'a', 'aeg', ''],
    ]
    await Promise.all(
      expected.map(async ([at, name, before, after]) => {
        const cursor = { at, id: t.id(name) }
        const what = `records next to the cursor (${at}, …-${name}), which is not a record`
        await t.lists(list, all(after), what, { cursor })
        await t.lists(list, all(before), what, { cursor, forward: false })
      }),
    )
  },

  async 'a page reports more exactly when there is more'(t) {
    const list = t.listName()
    for (const forward of bothWays) {
      const query = { forward, limit: 3 }
      await t.lists(t.listName('empty'), [], 'a page of a list without records', query)
    }
    const records = [1, 2, 3, 4].map((at) => entry(t.id(at), list, at))
    await t.mustPut(...records)
    for (const limit of [1, 2, 3, 4, 5]) {
      for (const forward of bothWays) {
        const expected = records.slice(...(forward ? [0, limit] : [Math.max(0, 4 - limit)]))
        const what = `a page of ${limit} of four records, ${forward ? 'forwards' : 'backwards'}`
        await t.lists(list, expected, what, { forward, limit, more: limit < 4 })
      }
    }
  },

  async 'paging returns each record exactly once for every page size, including equal places'(t) {
    const index = seededIndex('pages once')
    const records = Array.from({ length: 40 }, (_, i) =>
      entry(t.id((i * 17) % 40), t.listName(), index(6)),
    )
    await t.mustPut(...records)
    const place = (each: Stored) => placeOf(each, t.listName())
    const expected = records.sort((a, b) => place(a) - place(b) || compareIds(a.id, b.id))
    const reads = [3, 7, 39, 40, 41].flatMap((limit) =>
      bothWays.map(async (forward) => {
        const found = await pageThrough(t, t.listName(), forward, limit)
        const what = `ids of 40 records, ${forward ? 'forwards' : 'backwards'} in pages of ${limit}`
        demandSame(idsOf(found), idsOf(expected), what)
      }),
    )
    await Promise.all(reads)
  },
})

const membership = cases(onLists, {
  async 'a list contains exactly the records of its kind that name it'(t) {
    const longest = storeBounds.listNameLength - t.listName('').length - 1
    const long = 'https://wallet.example/'.padEnd(longest, 'a')
    const names = [
      'https://wallet.example/alice',
      'https://wallet.example/Alice',
      'https://wallet.example/alice ',
      'https://wallet.example/alice/',
      'https://wallet.example/alic',
      'https://wallet.example/alice https://shop.example',
      'https://wallet.example/%61lice',
      'https://wallet.example/al%',
      'https://wallet.example/al_ce',
      `a 'quoted' "list", \\ {and} [more]`,
      'zażółć 💶',
      'zazolc',
      `${long}1`,
      `${long}2`,
    ]
    for (const [i, name] of names.entries()) {
      const other = entry(t.id(`${i}-other`), t.listName(name), 1)
      await t.mustWrite([change(entry(t.id(i), t.listName(name), 1)), change(other, t.other)])
    }
    await t.mustPut(record(t.id('unlisted')), record(t.id('none'), 1, { lists: [] }))
    await atOnce(names.length, async (i) => {
      const list = t.listName(names[i])
      for (const forward of bothWays) {
        const what = `the list ${show(list)}, which exactly one ${t.kind} and one ${t.other} name`
        await t.lists(list, [entry(t.id(i), list, 1)], what, { forward })
      }
    })
  },

  async 'records of other kinds, and records that left a list, do not fill its pages'(t) {
    const list = t.listName()
    const ids = [0, 1, 2, 3, 4, 5, 6, 7].map(t.id)
    const kept = [entry(ids[3] ?? '', list, 3), entry(ids[4] ?? '', list, 4)]
    await t.mustPut(...ids.map((id, at) => entry(id, list, at)))
    // Two leave each end of the list, and one more is removed there.
    const left = [ids[0], ids[1], ids[6], ids[7]].map((id = '') =>
      entry(id, t.listName('other'), 1, 2),
    )
    await t.mustPut(...left)
    for (const id of [ids[2], ids[5]]) await t.mustRemove(id ?? '', 1)
    if (t.other !== t.kind) {
      const others = [1, 2, 8, 9].map((at) => change(entry(t.id(`other-${at}`), list, at), t.other))
      await t.mustWrite(others)
    }
    for (const forward of bothWays) {
      for (const limit of [1, 2]) {
        const expected = limit === 1 ? kept.slice(forward ? 0 : 1, forward ? 1 : 2) : kept
        const what = `a page of ${limit} of a list in which two records are left`
        await t.lists(list, expected, what, { forward, limit, more: limit === 1 })
      }
    }
  },

  async 'a record is in each of its three lists, at its place in that list'(t) {
    // The library writes no record in three lists, and some kinds in one.
    const names = (t.shapes === 'any' ? ['one', 'two', 'three'] : ['one']).map(t.listName)
    // A different order in each list: ascending in the first, descending in the second, mixed in the third.
    const places = [0, 1, 2, 3, 4].map((i) => [i, 10 - i, (i * 2) % 5])
    const records = places.map((ats, i) =>
      record(t.id(i), 1, { lists: names.map((list, n) => ({ list, at: ats[n] ?? 0 })) }),
    )
    await t.mustPut(...records)
    for (const [n, list] of names.entries()) {
      const expected = records.toSorted((a, b) => placeOf(a, list) - placeOf(b, list))
      const what = `records of list ${n + 1} of the three that each record is in`
      for (const forward of bothWays) await t.lists(list, expected, what, { forward })
      const middle = expected[2] as TestRecord
      const cursor = { at: placeOf(middle, list), id: middle.id }
      await t.lists(list, expected.slice(3), `what follows the cursor in list ${n + 1} of three`, {
        cursor,
      })
    }
  },

  async 'the next version of a record moves it in its lists or removes it from them'(t) {
    const [one, two] = [t.listName('one'), t.listName('two')]
    const [a, other] = [t.id('a'), entry(t.id('b'), one, 2)]
    await t.mustPut(entry(a, one, 1))
    await t.mustPut(other)
    const in1 = (at: number) => ({ list: one, at })
    const in2 = (at: number) => ({ list: two, at })
    const versions: [lists: { list: string; at: number }[], inOne: string, inTwo: string][] = [
      [[in1(3)], 'ba', ''],
      [[in2(3)], 'b', 'a'],
      [[in2(9), in1(0)], 'ab', 'a'],
      [[], 'b', ''],
      [[in1(1)], 'ab', ''],
    ]
    // In real shapes, some kinds have one list.
    const tried = versions.filter(([lists]) => t.shapes === 'any' || lists.length === 1)
    for (const [i, [lists, inOne, inTwo]] of tried.entries()) {
      const next = record(a, i + 2, { lists })
      await t.mustPut(next)
      const what = `a list after a version whose lists are ${show(lists)}`
      const all = (names: string) => [...names].map((name) => (name === 'a' ? next : other))
      await t.lists(one, all(inOne), what)
      await t.lists(two, all(inTwo), what)
    }
  },
})

const races = cases(searchingLists, {
  async 'paging returns each earlier record exactly once while other writers commit'(t) {
    const index = seededIndex('while others write')
    await t.rounds(1, async (round) => {
      for (const forward of bothWays) {
        const list = t.listName(`${forward} ${round}`)
        const id = (name: string) => t.id(`${forward}-${round}-${name}`)
        const places = Array.from({ length: 12 }, () => index(5))
        const old = (i: number, version: number) =>
          entry(id(`old${(i * 7) % 12}`), list, places[i] ?? 0, version)
        await t.mustPut(...places.map((_, i) => old(i, 1)))
        let paging = true
        const write = async () => {
          for (let i = 0; paging && i < 200; i++) {
            const next = entry(id(`new${i}`), list, index(5))
            await t.mustPut(next, old(i % 12, 2 + Math.floor(i / 12)))
            if (i >= 3) await t.removeOne(t.kind, id(`new${i - 3}`), 1)
          }
        }
        const read = async () => {
          try {
            return await pageThrough(t, list, forward, 2)
          } finally {
            paging = false
          }
        }
        const [found] = await Promise.all([read(), write()])
        const seen = idsOf(found)
        demandSame(
          seen.filter((each) => each.startsWith(id('old'))).sort(compareIds),
          places.map((_, i) => id(`old${i}`)).sort(compareIds),
          'ids of the records that existed before the first page was read, paged while others were added, ' +
            'changed and removed (each expected exactly once)',
        )
        demandSame(seen, [...new Set(seen)], 'ids on all pages, compared with each of them once')
      }
    })
  },

  async 'a page does not reject, and keeps every other record, while its records are removed'(t) {
    await t.rounds(2, async (round) => {
      const list = t.listName(round)
      const ids = Array.from({ length: 12 }, (_, i) => t.id(`${round}-${10 + i}`))
      await t.mustPut(...ids.map((id, at) => entry(id, list, at)))
      const kept = ids.filter((_, i) => i % 3 === 0)
      const removing = ids
        .filter((id) => !kept.includes(id))
        .map(async (id, i) => {
          await steps(2 * i)
          return t.mustRemove(id, 1)
        })
      const reading = Array.from({ length: 6 }, async (_, i) => {
        await steps(3 * i)
        const page = await t.page(list)
        const found = idsOf(page.records).filter((id) => kept.includes(id))
        demandSame(found, kept, 'ids on a page that are not removed while it is read')
      })
      await Promise.all([...removing, ...reading])
    })
  },
})

export const listCases = [order, membership, races].flat()

/** Returns the place of a record in a list. */
function placeOf(stored: Stored, list: string): number {
  const place = stored.lists?.find((each) => each.list === list)
  demand(place !== undefined, `list returned a record that is not in the list: ${show(stored)}`)
  return place.at
}

/** Pages through a whole list and returns its records in list order. */
async function pageThrough(
  t: Trial,
  list: string,
  forward: boolean,
  limit: number,
): Promise<Stored[]> {
  const found: Stored[] = []
  let cursor: ListQuery['cursor']
  for (let pages = 0; pages < 1_000; pages++) {
    const page = await t.page(list, { forward, limit, ...(cursor !== undefined && { cursor }) })
    const { length } = page.records
    demand(length <= limit, `list returned ${length} records; its limit was ${limit}`)
    demand(length > 0 || !page.more, 'list returned no records with more: true')
    const last = page.records.at(forward ? -1 : 0)
    if (last !== undefined) cursor = { at: placeOf(last, list), id: last.id }
    found.splice(forward ? found.length : 0, 0, ...page.records)
    if (!page.more) return found
  }
  throw new Error('1000 pages did not reach the end of a list that has fewer records')
}
