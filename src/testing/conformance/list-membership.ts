import {
  type CaseDefinition,
  change,
  demandSame,
  idsOf,
  mustCommit,
  mustPut,
  pageOf,
  record,
  type Trial,
} from './trial.js'

export const listMembershipCases: readonly CaseDefinition[] = [
  {
    name: 'a list contains exactly the records of its kind that name it',
    rule: 6,
    needs: { lists: 1 },
    check: keepsListsApart,
  },
  {
    name: 'a record is in each of its three lists, at its place in that list',
    rule: 6,
    needs: { lists: 1 },
    check: inItsLists,
  },
  {
    name: 'the next version of a record moves it in its lists or removes it from them',
    rule: 6,
    needs: { lists: 1 },
    check: movesWithVersion,
  },
]

async function keepsListsApart({ store, namespace }: Trial): Promise<void> {
  const long = `${namespace} https://wallet.example/${'a'.repeat(500)}`
  const keys = [
    `${namespace} https://wallet.example/alice`,
    `${namespace} https://wallet.example/Alice`,
    `${namespace} https://wallet.example/alice `,
    `${namespace} https://wallet.example/alice/`,
    `${namespace} https://wallet.example/alic`,
    `${namespace} https://wallet.example/alice https://shop.example`,
    `${namespace} https://wallet.example/%61lice`,
    `${namespace} https://wallet.example/al%`,
    `${namespace} https://wallet.example/al_ce`,
    `${namespace} a 'quoted' "list", \\ {and} [more]`,
    `${namespace} zażółć 💶`,
    `${namespace} zazolc`,
    `${long}1`,
    `${long}2`,
  ]
  for (const [i, wanted] of keys.entries()) {
    const lists = [{ list: wanted, at: 1 }]
    await mustCommit(store, [
      change(record(`${namespace}-${i}`, 1, { lists })),
      change(record(`${namespace}-${i}-other`, 1, { lists }), store.other),
    ])
  }
  await mustPut(
    store,
    record(`${namespace}-unlisted`),
    record(`${namespace}-none`, 1, { lists: [] }),
  )
  const reads = keys.map(async (wanted, i) => {
    for (const forward of [true, false]) {
      const page = await pageOf(store, wanted, { forward })
      demandSame(
        { ids: idsOf(page.records), more: page.more },
        { ids: [`${namespace}-${i}`], more: false },
        `ids of each ${store.kind} in the list ${JSON.stringify(wanted)}, which exactly one and one ${store.other} name`,
      )
    }
  })
  await Promise.all(reads)
}

async function inItsLists({ store, namespace, shapes }: Trial): Promise<void> {
  // The library writes no record in three lists, and some kinds in one.
  const several = shapes === 'any' ? ['one', 'two', 'three'] : ['one']
  const names = several.map((name) => `${namespace} ${name}`)
  // A different order in each list: ascending in the first, descending in the second, mixed in the third.
  const places = [0, 1, 2, 3, 4].map((i) => [i, 10 - i, (i * 2) % 5])
  const records = places.map((ats, i) =>
    record(`${namespace}-${i}`, 1, {
      lists: names.map((wanted, n) => ({ list: wanted, at: ats[n] ?? 0 })),
    }),
  )
  await mustPut(store, ...records)
  for (const [n, wanted] of names.entries()) {
    const order = [0, 1, 2, 3, 4].sort((a, b) => (places[a]?.[n] ?? 0) - (places[b]?.[n] ?? 0))
    for (const forward of [true, false]) {
      const page = await pageOf(store, wanted, { forward })
      const expected = order.map((i) => records[i])
      demandSame(
        page.records,
        expected,
        `records of list ${n + 1} of the three that each record is in`,
      )
    }
    const middle = order[2] ?? 0
    const cursor = { at: places[middle]?.[n] ?? 0, id: `${namespace}-${middle}` }
    const rest = await pageOf(store, wanted, { cursor })
    const expected = order.slice(3).map((i) => `${namespace}-${i}`)
    demandSame(idsOf(rest.records), expected, `ids after the cursor in list ${n + 1} of three`)
  }
}

async function movesWithVersion({ store, namespace, shapes }: Trial): Promise<void> {
  const [one, two] = [`${namespace} one`, `${namespace} two`]
  const [a, b] = [`${namespace}-a`, `${namespace}-b`]
  await mustPut(store, record(a, 1, { lists: [{ list: one, at: 1 }] }))
  await mustPut(store, record(b, 1, { lists: [{ list: one, at: 2 }] }))

  const versions: [lists: { list: string; at: number }[], inOne: string[], inTwo: string[]][] = [
    [[{ list: one, at: 3 }], [b, a], []],
    [[{ list: two, at: 3 }], [b], [a]],
    [
      [
        { list: two, at: 9 },
        { list: one, at: 0 },
      ],
      [a, b],
      [a],
    ],
    [[], [b], []],
    [[{ list: one, at: 1 }], [a, b], []],
  ]
  // In real shapes, some kinds have one list.
  const tried = versions.filter(([lists]) => shapes === 'any' || lists.length === 1)
  for (const [i, [lists, inOne, inTwo]] of tried.entries()) {
    const next = record(a, i + 2, { lists })
    await mustPut(store, next)
    const pages = await Promise.all([pageOf(store, one), pageOf(store, two)])
    demandSame(
      pages.map((page) => idsOf(page.records)),
      [inOne, inTwo],
      `ids of two lists after a version whose lists are ${JSON.stringify(lists)}`,
    )
    const listed = pages.flatMap((page) => page.records).filter(({ id }) => id === a)
    for (const each of listed) demandSame(each, next, 'the record from list')
  }
}
