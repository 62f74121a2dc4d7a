import type { ListQuery, Store, Stored } from 'open-payments-server'
import { seededIndex } from '../random.js'
import {
  type CaseDefinition,
  compareIds,
  demand,
  demandSame,
  idsOf,
  mustPut,
  placeOf,
  record,
  type Trial,
} from './trial.js'

export const pagingCases: readonly CaseDefinition[] = [
  {
    name: 'paging returns each record exactly once for every page size, including equal places',
    rule: 6,
    check: pagesOnce,
  },
  {
    name: 'paging returns each earlier record exactly once while other writers commit',
    rule: 6,
    check: pagesWhileOthersWrite,
  },
]

type Turn = Pick<ListQuery, 'forward' | 'limit'>

/** Pages through a whole list and returns its records in list order. */
async function pageThrough(
  store: Store,
  wanted: string,
  { forward, limit }: Turn,
): Promise<Stored[]> {
  const found: Stored[] = []
  let cursor: ListQuery['cursor']
  for (let pages = 0; pages < 1_000; pages++) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.list({ kind: 'grant', list: wanted, forward, limit, ...from })
    demand(
      page.records.length <= limit,
      `list returned ${page.records.length} records; its limit was ${limit}`,
    )
    demand(
      page.records.length > 0 || !page.more,
      'list returned no records with more: true, so that paging never ends',
    )
    const last = page.records.at(forward ? -1 : 0)
    if (last !== undefined) cursor = { at: placeOf(last, wanted), id: last.id }
    found.splice(forward ? found.length : 0, 0, ...page.records)
    if (!page.more) return found
  }
  throw new Error('1000 pages did not reach the end of a list that has fewer records')
}

async function pagesOnce({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const index = seededIndex('pages once')
  const records = Array.from({ length: 40 }, (_, i) =>
    record(`${namespace}-${(i * 17) % 40}`, 1, { lists: [{ list: wanted, at: index(6) }] }),
  )
  await mustPut(store, ...records)
  const expected = [...records].sort(
    (a, b) => placeOf(a, wanted) - placeOf(b, wanted) || compareIds(a.id, b.id),
  )
  for (const limit of [1, 2, 3, 7, 39, 40, 41]) {
    for (const forward of [true, false]) {
      const found = await pageThrough(store, wanted, { forward, limit })
      demandSame(
        idsOf(found),
        idsOf(expected),
        `ids of 40 records in pages of ${limit}, ${forward ? 'forwards' : 'backwards'}`,
      )
    }
  }
}

async function pagesWhileOthersWrite({ store, namespace }: Trial): Promise<void> {
  const index = seededIndex('while others write')
  for (const forward of [true, false]) {
    for (const limit of [1, 3]) {
      const wanted = `${namespace} list ${forward} ${limit}`
      const id = (name: string) => `${namespace}-${forward}-${limit}-${name}`
      const listed = (name: string, version: number, at: number) =>
        record(id(name), version, { lists: [{ list: wanted, at }] })
      const places = Array.from({ length: 18 }, () => index(5))
      await mustPut(store, ...places.map((at, i) => listed(`old${(i * 7) % 18}`, 1, at)))

      let paging = true
      const write = async () => {
        for (let i = 0; paging && i < 200; i++) {
          const touched = i % 18
          await mustPut(
            store,
            listed(`new${i}`, 1, index(5)),
            listed(`old${(touched * 7) % 18}`, 2 + Math.floor(i / 18), places[touched] ?? 0),
          )
          if (i >= 3) await store.remove('grant', id(`new${i - 3}`), 1)
        }
      }
      const read = async () => {
        try {
          return await pageThrough(store, wanted, { forward, limit })
        } finally {
          paging = false
        }
      }
      const [found] = await Promise.all([read(), write()])

      const seen = idsOf(found)
      const old = seen.filter((each) => each.startsWith(id('old')))
      demandSame(
        [...old].sort(compareIds),
        places.map((_, i) => id(`old${i}`)).sort(compareIds),
        'ids seen while paging, of the 18 records committed before the first page (each expected exactly once)',
      )
      demand(
        new Set(seen).size === seen.length,
        'a record committed while paging was returned twice',
      )
    }
  }
}
