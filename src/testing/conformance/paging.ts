import type { ListQuery, Stored } from 'open-payments-server'
import { seededIndex } from '../random.js'
import {
  type CaseDefinition,
  compareIds,
  demand,
  demandSame,
  idsOf,
  mustPut,
  mustRemove,
  placeOf,
  record,
  steps,
  type Trial,
  type TrialStore,
} from './trial.js'

export const pagingCases: readonly CaseDefinition[] = [
  {
    name: 'paging returns each record exactly once for every page size, including equal places',
    rule: 6,
    needs: { lists: 1 },
    check: pagesOnce,
  },
  {
    name: 'paging returns each earlier record exactly once while other writers commit',
    rule: 6,
    needs: { lists: 1 },
    search: true,
    check: pagesWhileOthersWrite,
  },
  {
    name: 'a page does not reject, and keeps every other record, while its records are removed',
    rule: 6,
    needs: { lists: 1 },
    search: true,
    check: pagesWhileOthersRemove,
  },
]

type Turn = Pick<ListQuery, 'forward' | 'limit'>

/** Pages through a whole list and returns its records in list order. */
async function pageThrough(
  store: TrialStore,
  wanted: string,
  { forward, limit }: Turn,
): Promise<Stored[]> {
  const found: Stored[] = []
  let cursor: ListQuery['cursor']
  for (let pages = 0; pages < 1_000; pages++) {
    const from = cursor === undefined ? {} : { cursor }
    const page = await store.list({ kind: store.kind, list: wanted, forward, limit, ...from })
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
  await mustPut(store, ...records.slice(0, 20))
  await mustPut(store, ...records.slice(20))
  const expected = [...records].sort(
    (a, b) => placeOf(a, wanted) - placeOf(b, wanted) || compareIds(a.id, b.id),
  )
  const reads = [3, 7, 39, 40, 41].flatMap((limit) =>
    [true, false].map(async (forward) => {
      const found = await pageThrough(store, wanted, { forward, limit })
      demandSame(
        idsOf(found),
        idsOf(expected),
        `ids of 40 records in pages of ${limit}, ${forward ? 'forwards' : 'backwards'}`,
      )
    }),
  )
  await Promise.all(reads)
}

async function pagesWhileOthersWrite({ store, namespace, rounds }: Trial): Promise<void> {
  const index = seededIndex('while others write')
  await rounds(1, async (round) => {
    for (const forward of [true, false]) {
      const limit = 2
      const wanted = `${namespace} list ${forward} ${round}`
      const id = (name: string) => `${namespace}-${forward}-${round}-${name}`
      const listed = (name: string, version: number, at: number) =>
        record(id(name), version, { lists: [{ list: wanted, at }] })
      const places = Array.from({ length: 12 }, () => index(5))
      await mustPut(store, ...places.map((at, i) => listed(`old${(i * 7) % 12}`, 1, at)))

      let paging = true
      const write = async () => {
        for (let i = 0; paging && i < 200; i++) {
          const touched = i % 12
          await mustPut(
            store,
            listed(`new${i}`, 1, index(5)),
            listed(`old${(touched * 7) % 12}`, 2 + Math.floor(i / 12), places[touched] ?? 0),
          )
          if (i >= 3) await store.remove(store.kind, id(`new${i - 3}`), 1)
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
        'ids seen while paging, of the 12 records committed before the first page (each expected exactly once)',
      )
      demand(
        new Set(seen).size === seen.length,
        'a record committed while paging was returned twice',
      )
    }
  })
}

async function pagesWhileOthersRemove({ store, namespace, rounds }: Trial): Promise<void> {
  await rounds(2, async (round) => {
    const wanted = `${namespace} list ${round}`
    const ids = Array.from({ length: 12 }, (_, i) => `${namespace}-${round}-${10 + i}`)
    await mustPut(store, ...ids.map((id, at) => record(id, 1, { lists: [{ list: wanted, at }] })))
    const kept = ids.filter((_, i) => i % 3 === 0)
    const removing = ids
      .filter((id) => !kept.includes(id))
      .map(async (id, i) => {
        await steps(2 * i)
        return mustRemove(store, id, 1)
      })
    const reading = Array.from({ length: 6 }, async (_, i) => {
      await steps(3 * i)
      const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 20 })
      demandSame(
        idsOf(page.records).filter((id) => kept.includes(id)),
        kept,
        'ids on a page that are not removed while it is read',
      )
    })
    await Promise.all([...removing, ...reading])
  })
}
