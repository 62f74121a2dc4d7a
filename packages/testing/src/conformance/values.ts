import { type RecordKind, storeBounds } from 'open-payments-server/adapter'
import { seededIndex } from '../random.js'
import { demand, demandSame, isSame, show } from './expectations.js'
import { anyJson, numbers, texts } from './records.js'
import { cases, change, guard, kinds, record, type TestRecord, type Trial } from './trial.js'

const exact = { rule: 4 } as const
const exactInAnyShape = { rule: 4, shapes: 'any' } as const
const own = { rule: 4, needs: { lists: 1, due: true } } as const
const ids = { rule: 'ids' } as const
const idsInLists = { rule: 'ids', needs: { lists: 1 } } as const

const realRecords = cases(exact, {
  /** The dresser gives each record another real shape and other values, and compares them on each read. */
  async 'load, list and due return records of every real shape unchanged'(t) {
    const all = (version: number, more: object = {}) =>
      Array.from({ length: 16 }, (_, i) => record(t.id(String(i).padStart(2, '0')), version, more))
    for (const version of [1, 2]) {
      await t.mustPut(...all(version))
      await Promise.all(all(version).map((next) => t.finds(next, `the ${t.kind} from load`)))
    }
    const listed = t.writes({ lists: 1 }) ? { lists: [{ list: t.listName(), at: 1 }] } : {}
    await t.mustPut(...all(3, listed))
    if ('lists' in listed) await t.lists(t.listName(), all(3, listed), `each ${t.kind} from list`)
    if (!t.writes({ due: true })) return
    await t.mustPut(...all(4, { dueAt: 1 }))
    await t.dues(all(4, { dueAt: 1 }), { before: 1 })
  },
})

const anyRecords = cases(exactInAnyShape, {
  ...Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [
      `text is kept unchanged: ${name}`,
      (t: Trial) => comesBack(t, { text, [`key ${text}`]: 1, nested: [{ [text]: [text, text] }] }),
    ]),
  ),

  'numbers are kept unchanged, to the limits of double precision': (t) =>
    comesBack(t, { numbers, each: Object.fromEntries(numbers.entries()) }),

  'empty and absent values are kept unchanged and distinct': (t) =>
    comesBack(t, {
      values: [null, false, true, 0, '', [], {}, [[]], [{}], [null], { a: null }, [[], {}, '']],
      nothing: null,
      none: {},
      empty: [],
      lists: [],
    }),

  'any key is kept, including __proto__ and numbers': (t) => {
    const names =
      '__proto__ constructor toString hasOwnProperty then toJSON length 0 -1 1e3 $ref $set a.b a[0] ID Version kind'
    const all = [...names.split(' '), '', ' ', 'id ']
    // Object.fromEntries defines own members, __proto__ included.
    const members = Object.fromEntries(all.map((name) => [name, { [name]: name }] as const))
    return comesBack(t, { ...members, inner: members, list: [members] })
  },

  async 'the order of the keys of an object is kept'(t) {
    const inner = { z: 1, a: 2, m: { y: 1, b: 2, longer: 3, c: 4 }, aa: 3, Z: 4, _: 5 }
    const written = { zebra: inner, ...record(t.id('a')), apple: [inner], Mango: 1, b: 2 }
    await t.bare.mustPut(written)
    await t.bare.finds(written, 'the record from load, compared with the committed one')
    const found = await t.bare.find(t.kind, written.id)
    demand(
      JSON.stringify(found) === JSON.stringify(written),
      `the order of keys changed: committed ${show(written)}, load returned ${show(found)} ` +
        '(a column of type jsonb sorts keys; store text)',
    )
  },

  'a value nested 200 levels deep is kept': (t) => {
    let [arrays, objects]: unknown[] = ['bottom', 'bottom']
    for (let level = 0; level < 200; level++) [arrays, objects] = [[arrays], { a: objects }]
    return comesBack(t, { arrays, objects })
  },

  'a value of the maximum size and one of 1000 members are kept': (t) => {
    const index = seededIndex('keeps size')
    const alphabet = 'abcdefghijklmnopqrstuvwxyz é€'
    // Some characters have several bytes: the whole record has about 95 % of the bytes.
    const length = Math.floor(storeBounds.valueBytes * 0.8)
    const long = Array.from({ length }, () => alphabet[index(alphabet.length)]).join('')
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`member ${i}`, i]))
    return comesBack(t, { long, many })
  },

  async 'load, list and due return any JSON unchanged'(t) {
    const index = seededIndex(`keeps anything ${t.kind}`)
    for (let batch = 0; batch < 2; batch++) {
      const list = t.listName(batch)
      const written = Array.from({ length: 8 }, (_, i) =>
        record(t.id(`${batch}-${i}`), 1, { value: anyJson(index, 4), lists: [{ list, at: i }] }),
      )
      await t.mustPut(...written)
      await Promise.all(written.map((next) => t.finds(next, 'the record from load')))
      await t.lists(list, written, 'the records from list, compared with the committed ones')
      const due = await t.due(t.kind, t.namespace, 1, 20)
      demandSame(due, [], 'the result of due when no record has a dueAt')
    }
  },

  async 'a value that changes during its commit is stored as it was at one moment'(t) {
    const store = t.bare
    for (let round = 0; round < 6; round++) {
      const lists = [{ list: t.listName(), at: round }]
      const given = { ...record(t.id(round)), marks: [0, 0], lists, last: 0 }
      const running = store.put(given)
      for (let i = 0; i < round; i++) await undefined
      given.marks[0] = 1
      given.marks[1] = 1
      given.last = 1
      demand(await running, 'commit of a new record did not return true')
      given.marks[0] = 2
      const found = await store.find(store.kind, given.id)
      demand(
        [0, 1].some((mark) => isSame(found, { ...given, marks: [mark, mark], last: mark })),
        `a value changed during its commit; the stored value must be the one before or after the change, but is ` +
          show(found),
      )
      const { records } = await store.page(t.listName())
      demandSame(records.at(-1), found, 'the record from list, compared with the one from load')
    }
  },
})

/** These commit and read whole records as they are, without the dresser. */
const ownValues = cases(own, {
  async 'changing a loaded value changes neither the record nor other loaded values'(t) {
    const [store, written] = [t.bare, wholeRecord(t)]
    await store.mustPut(structuredClone(written))
    const mine = await store.find(t.kind, written.id)
    const others = await store.find(t.kind, written.id)
    deface(mine)
    demandSame(others, written, 'a loaded value after another loaded value was changed')
    await store.finds(written, 'the record after a loaded value was changed')
    await store.lists(t.listName(), [written], 'the list after a loaded value was changed')
    await store.mustPut({ ...written, version: 2 })
  },

  async 'changing a value from list or due changes nothing else'(t) {
    const [store, written] = [t.bare, wholeRecord(t)]
    await store.mustPut(structuredClone(written))
    const reads = {
      'a page of a list': () => store.page(t.listName()),
      'a result of due': () => store.due(t.kind, t.namespace, 5, 5),
    }
    for (const [what, read] of Object.entries(reads)) {
      deface(await read())
      await store.finds(written, `the record after ${what} was changed`)
      await store.lists(t.listName(), [written], `the list after ${what} was changed`)
    }
  },

  async 'changing a value after its commit changes nothing in the store'(t) {
    const store = t.bare
    for (const version of [1, 2]) {
      const given = { ...wholeRecord(t), version }
      const written = structuredClone(given)
      const changes = [{ kind: store.kind, next: given, expectedVersion: version - 1 }]
      demand(await store.commit({ changes, guards: [] }), 'commit returned false; expected true')
      deface(changes)
      const when = 'after the caller changed the value that it committed'
      await store.finds(written, `the record ${when}`)
      await store.lists(t.listName(), [written], `the list ${when}`)
    }
  },
})

const identity = cases(ids, {
  async 'ids that differ in one byte are different records'(t) {
    const endings =
      'a A a. a.. .a a- a_ a0 0a a00 aa . - _ __proto__ constructor toString null NULL I i 1e3 1000'
    const all = ['', ...endings.split(' ')].map((ending) => `${t.namespace}${ending}`)
    const unwritten = ['b', 'B', 'Aa', 'aA', 'hasOwnProperty'].map(
      (ending) => `${t.namespace}${ending}`,
    )
    await Promise.all(all.map((id) => t.mustPut(record(id))))
    await Promise.all(all.map((id) => t.finds(record(id), `the record with the id ${show(id)}`)))
    await Promise.all(
      [...unwritten, t.namespace.slice(0, -1)].map(async (id) => {
        const found = await t.find(t.kind, id)
        demand(
          found === undefined,
          `load returned ${show(found)} for the id ${show(id)}, which was never written; compare ids byte for byte`,
        )
      }),
    )
    await Promise.all(all.map((id) => t.mustPut(record(id, 2))))
    await Promise.all(
      all.map(async (id) => {
        await t.mustRemove(id, 2)
        demand((await t.version(id)) === 0, `${show(id)} still exists after its removal`)
      }),
    )
  },

  async 'kind and id together identify a record'(t) {
    const id = t.id('same')
    const others = kinds.filter((kind) => kind !== t.kind)
    const at = (kind: RecordKind, version: number) =>
      record(id, version, { commandId: `${kind} ${version}` })
    await t.mustWrite(others.map((kind) => change(at(kind, 1), kind)))
    demand(
      (await t.version(id)) === 0,
      `a ${t.kind} exists although only records of other kinds with its id were written`,
    )
    await t.mustPut(at(t.kind, 1))
    await t.mustPut(at(t.kind, 2))
    const findOthers = (when: string) =>
      Promise.all(others.map((kind) => t.finds(at(kind, 1), `the ${kind} ${when}`, kind)))
    await t.finds(at(t.kind, 2), `the ${t.kind} of eight records with the same id`)
    await findOthers('of eight records with the same id')
    await t.mustWrite([], [...others.map((kind) => guard(id, 1, kind)), guard(id, 2)])
    await t.mustRemove(id, 2)
    demand((await t.version(id)) === 0, 'a record still exists after its removal')
    await findOthers(`after the ${t.kind} with the same id was removed`)
  },

  /** The shortest id is the namespace of its server. */
  async 'an id of 8 characters is valid'(t) {
    const written = record(t.namespace)
    await t.mustPut(written, record(`${t.namespace}.`))
    await t.finds(written, 'a record with an id of 8 characters')
    await t.mustRemove(written.id, 1)
    demandSame(
      await t.versions([written.id, `${t.namespace}.`]),
      [0, 1],
      'versions of a record with an id of 8 characters after its removal, and of one with a longer id',
    )
  },
})

const longIds = cases(idsInLists, {
  async 'an id of 128 characters is stored in full'(t) {
    const start = `${t.namespace}${'-_.Za0'.repeat(20)}`.slice(0, 127)
    const lists = [{ list: t.listName(), at: 1 }]
    const records = ['A', 'a', 'b'].map((ending) => record(`${start}${ending}`, 1, { lists }))
    await t.mustPut(...records.toReversed())
    for (const next of records) await t.finds(next, 'a record with an id of 128 characters')
    const cut = await t.find(t.kind, start)
    const what = `the first 127 characters of an id of 128 found a record: ${show(cut)}`
    demand(cut === undefined, what)
    await t.lists(t.listName(), records, 'a list of ids that differ in the last of 128 characters')
  },
})

export const valueCases = [realRecords, anyRecords, ownValues, identity, longIds].flat()

async function comesBack(t: Trial, members: object): Promise<void> {
  // A store may create and replace in different ways: check both.
  for (const version of [1, 2]) {
    const written = record(t.id('a'), version, members)
    await t.mustPut(written)
    await t.finds(written, 'the record from load, compared with the committed one')
  }
}

function wholeRecord(t: Trial): TestRecord {
  const parts = t.shapes === 'any' ? { deep: { list: [1, { a: 'a' }] }, text: 'a' } : {}
  return t.dress(
    record(t.id('a'), 1, { dueAt: 5, lists: [{ list: t.listName(), at: 5 }], ...parts }),
  )
}

/** Changes a value in place wherever it is mutable; a store may also return frozen values. */
function deface(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) deface(member)
  if (Array.isArray(value)) Reflect.set(value, value.length, 'defaced')
  for (const key of Object.keys(value)) {
    if (typeof Reflect.get(value, key) !== 'object') Reflect.set(value, key, 'defaced')
  }
  Reflect.set(value, 'defaced', true)
}
