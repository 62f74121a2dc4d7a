import { seededIndex } from '../random.js'
import {
  type CaseDefinition,
  demand,
  demandSame,
  mustPut,
  record,
  show,
  type Trial,
} from './trial.js'

/** Text that encodings, SQL, JSON columns and templates may change. */
const texts = {
  'U+0000': '\u0000 and a\u0000b',
  'control characters': '\u0001\b\t\n\u000b\f\r\u001b\u001f\u007f\u0080\u009f',
  'a lone high surrogate': 'a\ud800b',
  'a lone low surrogate': 'a\udc00b',
  'surrogates in the wrong order': '\udc00\ud800',
  'a surrogate at the end': 'a\udbff',
  'text outside the basic plane': '💶 👩‍👩‍👧 𝒳 \u{10ffff}',
  'noncharacters and a byte order mark': '\ufeff\ufffe\uffff\ufdd0\ufffd',
  'line separators': '\u2028\u2029\u0085',
  'composed and decomposed letters': 'é e\u0301 Å \u212b \u00c5',
  quotes: `' " \` '' "" \\' \\" $1 $$ :name ? ?? %s`,
  backslashes: '\\ \\\\ \\u0000 \\ud800 \\n \\x00 \\0',
  markup: '<a href="x">&amp;</a>]]><!-- -->',
  spaces: '  a  \u00a0\u3000 ',
  'empty text': '',
  'text that looks like other types': 'null true false 1e3 NaN undefined [object Object]',
}

const numbers = [
  0,
  -0,
  1,
  -1,
  0.1,
  0.1 + 0.2,
  1 / 3,
  5e-324,
  2.2250738585072014e-308,
  1.7976931348623157e308,
  -1.7976931348623157e308,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  2 ** 64,
  1e21,
  1e-7,
  123456789.12345679,
  4.35,
  1e23,
  9.5367431640625e-7,
]

export const fidelityCases: readonly CaseDefinition[] = [
  ...Object.entries(texts).map(([name, text]) => ({
    name: `text is kept unchanged: ${name}`,
    rule: 4 as const,
    check: (trial: Trial) => keepsText(trial, text),
  })),
  {
    name: 'numbers are kept unchanged, to the limits of double precision',
    rule: 4,
    check: (trial) => comesBack(trial, { numbers, each: Object.fromEntries(numbers.entries()) }),
  },
  {
    name: 'empty and absent values are kept unchanged and distinct',
    rule: 4,
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
    check: keepsKeys,
  },
  { name: 'the order of the keys of an object is kept', rule: 4, check: keepsKeyOrder },
  {
    name: 'a value nested 200 levels deep is kept',
    rule: 4,
    check: keepsDepth,
  },
  {
    name: 'a value of 64 KiB and one of 1000 members are kept',
    rule: 4,
    check: keepsSize,
  },
  {
    name: 'load, list and due return any JSON unchanged',
    rule: 4,
    check: keepsAnything,
  },
]

async function comesBack({ store, namespace }: Trial, members: object): Promise<void> {
  const id = `${namespace}-a`
  // A store may create and replace in different ways: check both.
  for (const version of [1, 2]) {
    const written = record(id, version, members)
    await mustPut(store, written)
    demandSame(
      await store.load('grant', id),
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

async function keepsKeyOrder({ store, namespace }: Trial): Promise<void> {
  const id = `${namespace}-a`
  const inner = { z: 1, a: 2, m: { y: 1, b: 2, longer: 3, c: 4 }, aa: 3, Z: 4, _: 5 }
  const written = { zebra: inner, ...record(id), apple: [inner], Mango: 1, b: 2 }
  await mustPut(store, written)
  const found = await store.load('grant', id)
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
  const index = seededIndex('keeps anything')
  for (let batch = 0; batch < 6; batch++) {
    const wanted = `${namespace} list ${batch}`
    const written = Array.from({ length: 8 }, (_, i) =>
      record(`${namespace}-${batch}-${i}`, 1, {
        value: anyJson(index, 4),
        lists: [{ list: wanted, at: i }],
      }),
    )
    await mustPut(store, ...written)
    for (const next of written) {
      demandSame(
        await store.load('grant', next.id),
        next,
        'the record from load, compared with the committed one',
      )
    }
    const page = await store.list({ kind: 'grant', list: wanted, forward: true, limit: 20 })
    demandSame(page.records, written, 'the records from list, compared with the committed ones')
    const due = await store.due('grant', namespace, 1, 20)
    demandSame(due, [], 'the result of due when no record has a dueAt')
  }
}

const pieces = [...Object.values(texts), 'a', 'Z', '0', 'plain text']

/** Returns a random JSON value made of numbers and texts that are hard to keep. */
function anyJson(index: (bound: number) => number, depth: number): unknown {
  const word = () => `${pieces[index(pieces.length)]}${pieces[index(pieces.length)]}`
  const branches = depth === 0 ? 4 : 6
  const members = Array.from({ length: index(4) }, () => depth - 1)
  switch (index(branches)) {
    case 0:
      return [null, true, false][index(3)]
    case 1:
      return numbers[index(numbers.length)]
    case 2:
      return index(2 ** 31) / (1 + index(1_000))
    case 3:
      return word()
    case 4:
      return members.map((less) => anyJson(index, less))
    default:
      return Object.fromEntries(members.map((less) => [word(), anyJson(index, less)]))
  }
}
