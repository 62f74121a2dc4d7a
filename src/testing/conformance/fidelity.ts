import { seededIndex } from '../random.js'
import { anyJson, numbers, texts } from './hard-values.js'
import {
  type CaseDefinition,
  demand,
  demandSame,
  eventually,
  mustPut,
  record,
  show,
  type Trial,
} from './trial.js'

export const fidelityCases: readonly CaseDefinition[] = [
  {
    name: 'load, list and due return records of every real shape unchanged',
    rule: 4,
    check: keepsRealShapes,
  },
  ...Object.entries(texts).map(([name, text]) => ({
    name: `text is kept unchanged: ${name}`,
    rule: 4 as const,
    shapes: 'any' as const,
    check: (trial: Trial) => keepsText(trial, text),
  })),
  {
    name: 'numbers are kept unchanged, to the limits of double precision',
    rule: 4,
    shapes: 'any',
    check: (trial) => comesBack(trial, { numbers, each: Object.fromEntries(numbers.entries()) }),
  },
  {
    name: 'empty and absent values are kept unchanged and distinct',
    rule: 4,
    shapes: 'any',
    check: (trial) =>
      comesBack(trial, {
        values: [null, false, true, 0, '', [], {}, [[]], [{}], [null], { a: null }, [[], {}, '']],
        nothing: null,
        none: {},
        empty: [],
        lists: [],
      }),
  },
  {
    name: 'any key is kept, including __proto__ and numbers',
    rule: 4,
    shapes: 'any',
    check: keepsKeys,
  },
  {
    name: 'the order of the keys of an object is kept',
    rule: 4,
    shapes: 'any',
    check: keepsKeyOrder,
  },
  {
    name: 'a value nested 200 levels deep is kept',
    rule: 4,
    shapes: 'any',
    check: keepsDepth,
  },
  {
    name: 'a value of 64 KiB and one of 1000 members are kept',
    rule: 4,
    shapes: 'any',
    check: keepsSize,
  },
  {
    name: 'load, list and due return any JSON unchanged',
    rule: 4,
    shapes: 'any',
    check: keepsAnything,
  },
]

/** The dresser gives each record another real shape and other values, and compares them on each read. */
async function keepsRealShapes(trial: Trial): Promise<void> {
  const { store, namespace, dueLagMs } = trial
  const ids = Array.from({ length: 16 }, (_, i) => `${namespace}-${String(i).padStart(2, '0')}`)
  for (const version of [1, 2]) {
    const written = ids.map((id) => record(id, version))
    await mustPut(store, ...written)
    await Promise.all(
      written.map(async (next) =>
        demandSame(await store.load(store.kind, next.id), next, `the ${store.kind} from load`),
      ),
    )
  }
  const list = `${namespace} list`
  const listed = { lists: [{ list, at: 1 }] }
  if (trial.writes({ lists: 1 })) {
    const next = ids.map((id) => record(id, 3, listed))
    await mustPut(store, ...next)
    const page = await store.list({ kind: store.kind, list, forward: true, limit: 100 })
    demandSame(page, { records: next, more: false }, `each ${store.kind} from list`)
  } else {
    await mustPut(store, ...ids.map((id) => record(id, 3)))
  }
  if (!trial.writes({ due: true })) return
  const due = ids.map((id) => record(id, 4, { dueAt: 1 }))
  await mustPut(store, ...due)
  await eventually(dueLagMs, async () =>
    demandSame(await store.due(store.kind, namespace, 1, 100), due, `each ${store.kind} from due`),
  )
}

async function comesBack({ store, namespace }: Trial, members: object): Promise<void> {
  const id = `${namespace}-a`
  // A store may create and replace in different ways: check both.
  for (const version of [1, 2]) {
    const written = record(id, version, members)
    await mustPut(store, written)
    demandSame(
      await store.load(store.kind, id),
      written,
      'the record from load, compared with the committed one',
    )
  }
}

function keepsText(trial: Trial, text: string): Promise<void> {
  return comesBack(trial, { text, [`key ${text}`]: 1, nested: [{ [text]: [text, text] }] })
}

function keepsKeys(trial: Trial): Promise<void> {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'then',
    'toJSON',
    'length',
  ]
  names.push(
    '',
    ' ',
    '0',
    '-1',
    '1e3',
    '$ref',
    '$set',
    'a.b',
    'a[0]',
    'id ',
    'ID',
    'Version',
    'kind',
  )
  const entries = names.map((name) => [name, { [name]: name }] as const)
  // Object.fromEntries defines own members, __proto__ included.
  const own = Object.fromEntries(entries)
  return comesBack(trial, { ...own, inner: own, list: [own] })
}

async function keepsKeyOrder({ bare: store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const inner = { z: 1, a: 2, m: { y: 1, b: 2, longer: 3, c: 4 }, aa: 3, Z: 4, _: 5 }
  const written = { zebra: inner, ...record(id), apple: [inner], Mango: 1, b: 2 }
  await mustPut(store, written)
  const found = await store.load(store.kind, id)
  demandSame(found, written, 'the record from load, compared with the committed one')
  demand(
    JSON.stringify(found) === JSON.stringify(written),
    `the order of keys changed: committed ${show(written)}, load returned ${show(found)} ` +
      '(a column of type jsonb sorts keys; store text)',
  )
}

async function keepsDepth(trial: Trial): Promise<void> {
  let [arrays, objects]: unknown[] = ['bottom', 'bottom']
  for (let level = 0; level < 200; level++) {
    arrays = [arrays]
    objects = { a: objects }
  }
  await comesBack(trial, { arrays, objects })
}

async function keepsSize(trial: Trial): Promise<void> {
  const index = seededIndex('keeps size')
  const alphabet = 'abcdefghijklmnopqrstuvwxyz é€'
  const long = Array.from({ length: 64 * 1024 }, () => alphabet[index(alphabet.length)]).join('')
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`member ${i}`, i]))
  await comesBack(trial, { long, many })
}

async function keepsAnything({ store, namespace }: Trial): Promise<void> {
  const index = seededIndex(`keeps anything ${store.kind}`)
  for (let batch = 0; batch < 2; batch++) {
    const wanted = `${namespace} list ${batch}`
    const written = Array.from({ length: 8 }, (_, i) =>
      record(`${namespace}-${batch}-${i}`, 1, {
        value: anyJson(index, 4),
        lists: [{ list: wanted, at: i }],
      }),
    )
    await mustPut(store, ...written)
    await Promise.all(
      written.map(async (next) =>
        demandSame(
          await store.load(store.kind, next.id),
          next,
          'the record from load, compared with the committed one',
        ),
      ),
    )
    const page = await store.list({ kind: store.kind, list: wanted, forward: true, limit: 20 })
    demandSame(page.records, written, 'the records from list, compared with the committed ones')
    const due = await store.due(store.kind, namespace, 1, 20)
    demandSame(due, [], 'the result of due when no record has a dueAt')
  }
}
