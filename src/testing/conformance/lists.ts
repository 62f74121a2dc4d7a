import {
  type CaseDefinition,
  compareIds,
  demandSame,
  idsOf,
  mustPut,
  mustRemove,
  pageOf,
  record,
  type Trial,
} from './trial.js'

export const listCases: readonly CaseDefinition[] = [
  {
    name: 'a list is ascending by place and then by the bytes of the id, in both directions',
    rule: 6,
    needs: { lists: 1 },
    check: ordersByPlaceAndId,
  },
  {
    name: 'a list orders places over the whole range of safe integers',
    rule: 6,
    needs: { lists: 1 },
    check: ordersWholeRange,
  },
  {
    name: 'a page contains the records next to its cursor, in both directions',
    rule: 6,
    needs: { lists: 1 },
    check: startsAtCursor,
  },
  {
    name: 'a cursor does not have to be an existing record',
    rule: 6,
    needs: { lists: 1 },
    check: startsBetweenRecords,
  },
  {
    name: 'a page reports more exactly when there is more',
    rule: 6,
    needs: { lists: 1 },
    check: saysMore,
  },
]

/** Endings of ids that differ in case, punctuation or length, in the order of their bytes. */
const endings = [
  '',
  '-',
  '-a',
  '.',
  '0',
  '09',
  '1',
  '10',
  'A',
  'Aa',
  'B',
  '_',
  'a',
  'a_',
  'aa',
  'b',
]

async function ordersByPlaceAndId({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const sorted = [...endings].sort(compareIds)
  const records = [3, 1, 2].flatMap((at) =>
    sorted.map((ending) =>
      record(`${namespace}-${at}${ending}`, 1, { lists: [{ list: wanted, at }] }),
    ),
  )
  // Neither in list order nor in reverse: insertion order must not help.
  const arriving = records.map((_, i) => records[(i * 29 + 5) % records.length] ?? record(''))
  await mustPut(store, ...arriving.slice(0, 20))
  await mustPut(store, ...arriving.slice(20))
  const expected = [1, 2, 3].flatMap((at) => sorted.map((ending) => `${namespace}-${at}${ending}`))
  for (const forward of [true, false]) {
    for (let repeat = 0; repeat < 2; repeat++) {
      const page = await pageOf(store, wanted, { forward })
      demandSame(
        idsOf(page.records),
        expected,
        `ids of a list read ${forward ? 'forwards' : 'backwards'}, ascending by (at, id) byte for byte`,
      )
    }
  }
}

async function ordersWholeRange({ store, namespace, shapes }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number
  const real = [0, 1, 9, 10, 2_147_483_648, 1_700_000_000_000, 1_700_000_000_001]
  const places = shapes === 'real' ? real : [min, min + 1, -1_000, -999, -1, ...real, max - 1, max]
  const records = places.map((at, i) =>
    record(`${namespace}-${String((i * 5) % places.length).padStart(2, '0')}`, 1, {
      lists: [{ list: wanted, at }],
    }),
  )
  await mustPut(store, ...[...records].reverse())
  for (const forward of [true, false]) {
    const page = await pageOf(store, wanted, { forward })
    demandSame(
      page.records,
      records,
      'records of a list with places from the least safe integer to the greatest',
    )
  }
  const reads = places.map(async (at, i) => {
    const cursor = { at, id: records[i]?.id ?? '' }
    const [after, before] = await Promise.all([
      pageOf(store, wanted, { cursor }),
      pageOf(store, wanted, { cursor, forward: false }),
    ])
    demandSame(idsOf(after.records), idsOf(records.slice(i + 1)), `ids after the place ${at}`)
    demandSame(idsOf(before.records), idsOf(records.slice(0, i)), `ids before the place ${at}`)
  })
  await Promise.all(reads)
}

async function startsAtCursor({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const ids = Array.from({ length: 9 }, (_, i) => `${namespace}-${String(i).padStart(2, '0')}`)
  // Three records share each place.
  const at = (i: number) => Math.floor(i / 3)
  await mustPut(
    store,
    ...ids.map((id, i) => record(id, 1, { lists: [{ list: wanted, at: at(i) }] })),
  )
  const reads = [1, 2, 20].flatMap((limit) =>
    ids.map(async (id, i) => {
      const cursor = { at: at(i), id }
      const next = await pageOf(store, wanted, { cursor, limit })
      demandSame(
        { ids: idsOf(next.records), more: next.more },
        { ids: ids.slice(i + 1, i + 1 + limit), more: i + 1 + limit < ids.length },
        `a page of ${limit} after record ${i} of 9`,
      )
      const previous = await pageOf(store, wanted, { cursor, limit, forward: false })
      demandSame(
        { ids: idsOf(previous.records), more: previous.more },
        { ids: ids.slice(Math.max(0, i - limit), i), more: i > limit },
        `a page of ${limit} backwards from record ${i} of 9 (expected those next to the cursor)`,
      )
    }),
  )
  await Promise.all(reads)
}

async function startsBetweenRecords({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  const id = (name: string) => `${namespace}-${name}`
  const places = { a: 11, c: 13, e: 13, g: 15 }
  await mustPut(
    store,
    ...Object.entries(places).map(([name, at]) =>
      record(id(name), 1, { lists: [{ list: wanted, at }] }),
    ),
  )
  await mustRemove(store, id('c'), 1)
  const expected: [at: number, name: string, before: string[], after: string[]][] = [
    [13, 'c', ['a'], ['e', 'g']],
    [13, 'd', ['a'], ['e', 'g']],
    [13, 'C', ['a'], ['e', 'g']],
    [13, 'f', ['a', 'e'], ['g']],
    [12, 'z', ['a'], ['e', 'g']],
    [14, 'a', ['a', 'e'], ['g']],
    [1, 'z', [], ['a', 'e', 'g']],
    [19, 'a', ['a', 'e', 'g'], []],
  ]
  const reads = expected.map(async ([at, name, before, after]) => {
    const cursor = { at, id: id(name) }
    const [next, previous] = await Promise.all([
      pageOf(store, wanted, { cursor }),
      pageOf(store, wanted, { cursor, forward: false }),
    ])
    demandSame(
      { before: idsOf(previous.records), after: idsOf(next.records) },
      { before: before.map(id), after: after.map(id) },
      `ids before and after the cursor (${at}, …-${name}), which is not a record`,
    )
  })
  await Promise.all(reads)
}

async function saysMore({ store, namespace }: Trial): Promise<void> {
  const wanted = `${namespace} list`
  for (const forward of [true, false]) {
    const page = await pageOf(store, `${namespace} empty`, { forward, limit: 3 })
    demandSame(page, { records: [], more: false }, 'a page of a list without records')
  }
  const records = [1, 2, 3, 4].map((at) =>
    record(`${namespace}-${at}`, 1, { lists: [{ list: wanted, at }] }),
  )
  await mustPut(store, ...records)
  for (const limit of [1, 2, 3, 4, 5]) {
    for (const forward of [true, false]) {
      const page = await pageOf(store, wanted, { forward, limit })
      const expected = forward ? records.slice(0, limit) : records.slice(Math.max(0, 4 - limit))
      demandSame(
        page,
        { records: expected, more: limit < 4 },
        `a page of ${limit} of four records, ${forward ? 'forwards from the first' : 'backwards from the last'}`,
      )
    }
  }
}
