import { storeBounds } from 'open-payments-server/adapter'
import { demand, demandFalse, demandSame } from './expectations.js'
import { cases, change, record, type TestRecord, type Trial } from './trial.js'

const due = { rule: 'due', needs: { due: true } } as const
const removal = { rule: 'remove' } as const
const removalOfPlaces = { rule: 'remove', needs: { lists: 1, due: true } } as const

const queries = cases(due, {
  async 'due returns what is due at or before the instant, by time and then by the bytes of ids'(
    t,
  ) {
    const order = {
      first: 5,
      '': 30,
      '-B': 30,
      '-b': 30,
      '.': 30,
      _a: 30,
      a0: 30,
      now: 100,
      late: 110,
    }
    const id = (name: string) => `${t.namespace}${name}`
    const records = Object.entries(order).map(([name, dueAt]) => record(id(name), 1, { dueAt }))
    const idle = [record(id('never')), record(id('kept'), 1, { retainUntil: 1 })]
    await t.mustPut(...inOtherOrder(records), ...idle)
    const counts = { 110: 9, 100: 8, 99: 7, 29: 1, 4: 0 }
    await Promise.all(
      Object.entries(counts).map(([before, count]) =>
        t.dues(records.slice(0, count), { before: Number(before) }),
      ),
    )
  },

  async 'due returns the earliest records when more are due than its limit'(t) {
    const records = [1, 2, 3, 4, 5, 6, 7].map((dueAt) => record(t.id(dueAt), 1, { dueAt }))
    await t.mustPut(...inOtherOrder(records))
    await Promise.all(
      [1, 2, 6, 7, 8].map((limit) => t.dues(records.slice(0, limit), { before: 7, limit })),
    )
  },

  async 'due from an instant returns everything that is due from then on'(t) {
    const records = [1, 2, 3, 4, 5, 6].map((dueAt) => record(t.id(dueAt), 1, { dueAt }))
    await t.mustPut(...inOtherOrder(records))
    await t.dues(records.slice(2, 4), { from: 3, before: 4 })
    await t.dues([], { from: 7, before: 9 })
  },

  'records that were put off do not count towards the limit of due': (t) =>
    countsOnlyWhatIsDue(t, (ids) => t.mustPut(...ids.map((id) => record(id, 2, { dueAt: 50 })))),

  'records that no longer have a due time do not count towards the limit of due': (t) =>
    countsOnlyWhatIsDue(t, (ids) => t.mustPut(...ids.map((id) => record(id, 2)))),

  'removed records do not count towards the limit of due': (t) =>
    countsOnlyWhatIsDue(t, async (ids) => {
      for (const id of ids) await t.mustRemove(id, 1)
    }),

  async 'records of other kinds and namespaces do not count towards the limit of due'(t) {
    const own = record(t.id('own'), 1, { dueAt: 2 })
    const earlier = [1, 2, 3].map((i) => record(t.id(i), 1, { dueAt: 1 }))
    const foreign = [1, 2, 3].map((i) => record(`${otherNamespace(t)}-${i}`, 1, { dueAt: 1 }))
    await t.mustPut(own, ...foreign)
    await t.mustWrite(earlier.map((next) => change(next, t.other)))
    // If there is only one kind to try, the other kind is the same.
    const expected = t.other === t.kind ? [...earlier, own] : [own]
    for (const limit of [1, 3]) await t.dues(expected.slice(0, limit), { before: 5, limit })
  },

  async 'due orders instants over the whole range of safe integers'(t) {
    const { MIN_SAFE_INTEGER: min, MAX_SAFE_INTEGER: max } = Number
    // Text, 32-bit integers and doubles order or round these differently.
    const real = [
      0, 9, 10, 999, 1_000, 2_147_483_648, 1_700_000_000_000, 1_700_000_000_001, 4_102_444_800_000,
    ]
    const all = t.shapes === 'real' ? real : [min, min + 1, -1_000, -999, ...real, max - 1, max]
    const id = (i: number) => t.id(String((i * 4) % all.length).padStart(2, '0'))
    const records = all.map((dueAt, i) => record(id(i), 1, { dueAt }))
    await t.mustPut(...records.toReversed())
    await Promise.all(all.map((before, i) => t.dues(records.slice(0, i + 1), { before })))
  },

  async 'due compares the namespace, the first 8 characters of the id, byte for byte'(t) {
    const [start, end] = [t.namespace.slice(0, 4), t.namespace.slice(5)]
    // Pattern matching, case folding and collations treat these as equal.
    const namespaces = ['_', '-', 'x', 'X', '.', '%'].map((middle) => `${start}${middle}${end}`)
    const dueIn = (each: string) =>
      each.includes('%')
        ? []
        : [each, `${each}-a`, `${each}0123456789`].map((id) => record(id, 1, { dueAt: 1 }))
    await t.mustPut(...namespaces.flatMap(dueIn))
    await Promise.all(
      namespaces.map((namespace) => t.dues(dueIn(namespace), { namespace, before: 1 })),
    )
  },

  async 'due returns records of its kind only'(t) {
    const due = (name: string) => record(t.id(name), 1, { dueAt: 1 })
    const [a, b, c] = [due('a'), due('b'), due('c')] as const
    await t.mustPut(a, b)
    await t.mustWrite([b, c].map((next) => change(next, t.other)))
    await Promise.all([t.dues([a, b], { before: 1 }), t.dues([b, c], { before: 1, kind: t.other })])
  },

  async 'the next version of a record changes or removes its due time'(t) {
    const a = (version: number, dueAt?: number) =>
      record(t.id('a'), version, dueAt === undefined ? {} : { dueAt })
    const b = record(t.id('b'), 1, { dueAt: 5 })
    await t.mustPut(a(1, 1), b)
    await t.dues([a(1, 1), b], { before: 9 })
    await t.mustPut(a(2, 7))
    await t.dues([b, a(2, 7)], { before: 9 })
    await t.dues([b], { before: 6 })
    await t.mustPut(a(3))
    await t.dues([b], { before: 9 })
    await t.mustPut(a(4, 2))
    await t.dues([a(4, 2), b], { before: 9 })
    await t.mustRemove(b.id, 1)
    await t.dues([a(4, 2)], { before: 9 })
  },

  /** The due time stays the same, so a copy in an index has no other reason to change. */
  async 'due returns the latest version of a record after the permitted lag'(t) {
    for (const version of [1, 2, 3]) {
      const next = record(t.id('a'), version, { dueAt: 1 })
      await t.mustPut(next)
      await t.dues([next], { before: 1 })
    }
  },
})

const removals = cases(removal, {
  async 'remove only removes a record at the given version'(t) {
    const id = t.id('a')
    await t.mustPut(record(id))
    await t.mustPut(record(id, 2))
    for (const version of [0, 1, 3]) {
      const removed = await t.removeOne(t.kind, id, version)
      demandFalse(removed, `removing version ${version} of a record at version 2`)
      await t.finds(record(id, 2), 'the record, which must still exist')
    }
    await t.mustRemove(id, 2)
  },

  async 'remove returns false for a record that does not exist or exists as another kind only'(t) {
    const [a, b] = [record(t.id('a')), t.id('b')]
    await t.mustPut(a)
    for (const version of [0, 1]) {
      demandFalse(await t.removeOne(t.kind, b, version), 'removing a record that does not exist')
      const foreign = await t.removeOne(t.other, a.id, version)
      demandFalse(foreign, `removing a ${t.other} with an id that only a ${t.kind} has`)
    }
    await t.finds(a, 'the record after a removal of its id as another kind')
  },

  async 'remove of several records says for each, in their order, whether it was removed'(t) {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => record(t.id(name))) as [
      TestRecord,
      TestRecord,
      TestRecord,
      TestRecord,
    ]
    await t.mustPut(c, a, b, d)
    await t.mustPut(record(b.id, 2))
    await t.mustWrite([change(record(a.id), t.other)])
    const at = (id: string, version: number, kind = t.kind) => ({ kind, id, version })
    const asked = [at(d.id, 1), at(b.id, 1), at(t.id('none'), 1), at(a.id, 1), at(c.id, 2)]
    // If there is only one kind to try, the other kind is the same.
    const another = t.other === t.kind ? [] : [at(a.id, 1, t.other)]
    demandSame(
      await t.remove([...asked, ...another]),
      [true, false, false, true, false, ...another.map(() => true)],
      'the answers of remove for records of which some are at another version or do not exist',
    )
    await t.finds(record(b.id, 2), 'the record of a removal at an earlier version')
    await t.finds(c, 'the record of a removal at a later version')
    demand((await t.version(a.id)) === 0, 'load returned a removed record; expected undefined')
    demand(
      (await t.version(a.id, t.other)) === 0,
      'load returned a removed record; expected undefined',
    )
  },

  async 'remove takes the maximum number of records'(t) {
    const written = Array.from({ length: 24 }, (_, i) => record(t.id(`x${i}`)))
    await t.mustPut(...written)
    const asked = Array.from({ length: storeBounds.removeRecords }, (_, i) => {
      // Every 40th exists.
      const id = i % 40 === 0 ? t.id(`x${i / 40}`) : t.id(`absent${i}`)
      return { kind: t.kind, id, version: 1 }
    })
    const expected = asked.map(({ id }) => written.some((each) => each.id === id))
    demandSame(await t.remove(asked), expected, 'the answers of remove for 1,000 records')
  },
})

const removalsOfPlaces = cases(removalOfPlaces, {
  async 'records that are removed together are gone from every list, and not due'(t) {
    const list = t.listName()
    const all = ['a', 'b', 'c'].map((name, at) =>
      record(t.id(name), 1, { dueAt: 1, lists: [{ list, at }] }),
    )
    const [a, b, c] = all as [TestRecord, TestRecord, TestRecord]
    await t.mustPut(...all)
    await t.remove([a, c].map(({ id }) => ({ kind: t.kind, id, version: 1 })))
    await t.lists(list, [b], 'a list of three records of which two were removed together')
    await t.dues([b], { before: 1 })
  },

  async 'a removed record is gone from load and from every list'(t) {
    const list = t.listName()
    const [a, b] = [t.id('a'), t.id('b')]
    const kept = record(b, 1, { dueAt: 1, lists: [{ list, at: 1 }] })
    await t.mustPut(record(a, 1, { dueAt: 1, lists: [{ list, at: 0 }] }), kept)
    await t.mustRemove(a, 1)
    demand((await t.version(a)) === 0, 'load returned a removed record; expected undefined')
    for (const forward of [true, false]) {
      const query = { forward, limit: 1 }
      await t.lists(list, [kept], 'a list of two records of which one was removed', query)
    }
    demandFalse(await t.removeOne(t.kind, a, 1), 'removing a record for a second time')
    await t.finds(kept, 'the record next to the removed one')
  },

  async 'a record that is created again after its removal is in none of its lists, and not due'(t) {
    const [id, list] = [t.id('a'), t.listName()]
    await t.mustPut(record(id, 1, { dueAt: 1, lists: [{ list, at: 1 }] }))
    await t.mustRemove(id, 1)
    await t.mustPut(record(id))
    await t.lists(list, [], 'a list whose only record was removed, and created again without lists')
    await t.dues([], { before: 1 })
  },

  async 'a removal that fails changes no list and no due time'(t) {
    const [id, list] = [t.id('a'), t.listName()]
    const kept = record(id, 2, { dueAt: 1, lists: [{ list, at: 1 }] })
    await t.mustPut(record(id, 1, { dueAt: 1, lists: [{ list, at: 1 }] }))
    await t.mustPut(kept)
    for (const version of [1, 3]) {
      const removed = await t.removeOne(t.kind, id, version)
      demandFalse(removed, `removing version ${version} of a record at version 2`)
      await t.lists(list, [kept], 'the list of a record that was not removed')
      await t.dues([kept], { before: 1 })
    }
  },
})

export const dueCases = [queries, removals, removalsOfPlaces].flat()

/** An index that keeps entries must find more than its limit until it has enough that count. */
async function countsOnlyWhatIsDue(
  t: Trial,
  retire: (ids: readonly string[]) => Promise<void>,
): Promise<void> {
  const retired = [1, 2, 3, 4].map(t.id)
  const [one, other] = [record(t.id('5'), 1, { dueAt: 2 }), record(t.id('6'), 1, { dueAt: 3 })]
  await t.mustPut(...retired.map((id) => record(id, 1, { dueAt: 1 })), one, other)
  await retire(retired)
  for (const limit of [1, 2, 3]) {
    await t.dues([one, other].slice(0, limit), { before: 5, limit })
  }
}

function otherNamespace({ namespace }: Trial): string {
  return `${namespace.slice(0, 7)}${namespace.endsWith('a') ? 'b' : 'a'}`
}

/** Returns records in an order that is neither by time nor by id. */
function inOtherOrder<Item>(items: readonly Item[]): Item[] {
  return items.map((_, i) => items[(i * 5 + 3) % items.length] as Item)
}
