import type { ListEntry, RecordKind, Stored } from 'open-payments-server/adapter'
import { seededIndex } from '../random.js'
import type { Corpus } from './corpus.js'
import { demandSame, RuleError } from './expectations.js'

/**
 * Which records the suite writes. `any`: records of real shapes, and also records with any JSON, in any list and due
 * at any instant. `real`: only records of the shapes that the library writes.
 */
export type Shapes = 'any' | 'real'

/**
 * A case names only the members of a record that matter to it: its id, version and command id, its lists and its due
 * time. A dresser adds the other members of a real record of the kind, with random values.
 */
export interface Dresser {
  dress(kind: RecordKind, record: Stored): Stored
  /** Returns the members that `dress` did not add. Throws if the others are not as it added them. */
  undress(kind: RecordKind, found: Stored, method: string): Stored
  /** Whether the library writes records of the kind that have the due time or the number of lists that a case needs. */
  readonly writes: (kind: RecordKind, needs: Needs) => boolean
}

/** The properties that a case needs a kind to have. With the shapes `real` it runs on the kinds that have it. */
export interface Needs {
  readonly lists?: number
  readonly due?: boolean
}

type Index = (bound: number) => number

export function createDresser(corpus: Corpus, shapes: Shapes): Dresser {
  const isReal = shapes === 'real'
  const made = new Map<string, { readonly body: object; readonly real: RealPlaces }>()

  function dress(kind: RecordKind, record: Stored): Stored {
    const { body, fill } = additions(kind, record)
    return { ...body, ...fill, ...record, ...(fill.lists !== undefined && { lists: fill.lists }) }
  }

  /** Depends on the kind, id, version and command id, and on whether the record is due and in lists. */
  function additions(kind: RecordKind, record: Stored) {
    const { dueAt: ownDue, lists: ownLists = [] } = record
    const placed = { lists: ownLists.length, due: ownDue !== undefined }
    const places = isReal ? `${placed.due} ${placed.lists}` : ''
    const key = `${kind} ${record.id} ${record.version} ${record.commandId} ${places}`
    const known = made.get(key)
    if (known !== undefined) return { body: known.body, fill: fillOf(known.real, record, key) }
    const index = seededIndex(key)
    const fitting = (corpus.get(kind) ?? []).filter((each) => !isReal || has(each, placed))
    const picked = fitting[index(fitting.length)]
    if (picked === undefined) throw new Error(`the library writes no ${kind} like ${record.id}`)
    const { id, version, commandId, dueAt, retainUntil, lists, ...members } = picked
    const body = vary(members, '', index) as object
    const real = isReal ? { dueAt, retainUntil, lists } : {}
    made.set(key, { body, real })
    return { body, fill: fillOf(real, record, key) }
  }

  return {
    dress,
    undress(kind, found, method) {
      const own = isReal ? withoutFill(found) : found
      const { body } = additions(kind, own)
      const rest = Object.fromEntries(
        Object.entries(own).filter(([key]) => !Object.hasOwn(body, key)),
      ) as unknown as Stored
      try {
        demandSame(
          found,
          dress(kind, rest),
          `a ${kind} from ${method}, compared with the committed one`,
        )
      } catch (error) {
        throw new RuleError(4, error)
      }
      return rest
    },
    writes: (kind, needs) => !isReal || (corpus.get(kind) ?? []).some((each) => has(each, needs)),
  }
}

function has(real: Stored, { lists = 0, due = false }: Needs): boolean {
  return (real.lists?.length ?? 0) >= lists && (!due || real.dueAt !== undefined)
}

/** The first instant that only a dresser uses, in the year 2223. */
const fillerStart = 8_000_000_000_000
const fillerList = 'https://filler.example/'

interface Fill {
  readonly dueAt?: number
  readonly retainUntil?: number
  readonly lists?: readonly ListEntry[]
}

type RealPlaces = { readonly [Name in keyof Fill]: Fill[Name] | undefined }

/** Returns the due time, the retention and the lists that a real record has and the given one lacks. */
function fillOf(real: RealPlaces, { id, lists = [] }: Stored, seed: string): Fill {
  const index = seededIndex(`fill ${seed}`)
  const missing = Math.max(0, (real.lists?.length ?? 0) - lists.length)
  const filler = Array.from({ length: missing }, (_, i) => {
    return { list: `${id.slice(0, 8)} ${fillerList}${id} ${i}`, at: fillerStart + index(1_000) }
  })
  return {
    ...(real.dueAt !== undefined && { dueAt: fillerStart + index(1_000_000) }),
    ...(real.retainUntil !== undefined && { retainUntil: fillerStart + index(1_000_000) }),
    ...(real.lists !== undefined && { lists: [...lists, ...filler] }),
  }
}

function withoutFill({ dueAt, retainUntil, lists, ...found }: Stored): Stored {
  const own = lists?.filter(({ list }) => !list.includes(fillerList))
  return {
    ...found,
    ...(dueAt !== undefined && dueAt < fillerStart && { dueAt }),
    ...(retainUntil !== undefined && retainUntil < fillerStart && { retainUntil }),
    ...(own !== undefined && own.length > 0 && { lists: own }),
  }
}

/** Members whose values are part of the shape of a record. */
const constant = new Set(['state', 'type', 'actions', 'as', 'method', 'hashMethod', 'format'])
/** Text that the host or a client chose. */
const free = new Set(['failure', 'resourceOwner'])
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Replaces the values of a real record by random ones of the same kind. */
function vary(value: unknown, name: string, index: Index): unknown {
  if (name === 'metadata') return { note: anyText(index), more: anyJson(index, 3) }
  if (constant.has(name)) return value
  if (typeof value === 'string') return varyText(value, name, index)
  if (typeof value === 'number') return varyNumber(value, index)
  if (Array.isArray(value)) return value.map((each) => vary(each, name, index))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, vary(each, key, index)]),
  )
}

/** Instants stay instants after the year 2017, with milliseconds; small numbers stay small. */
function varyNumber(value: number, index: Index): number {
  if (value > 1e12) return 1_500_000_000_000 + index(2 ** 31) * 500 + index(500)
  return index(256)
}

function varyText(text: string, name: string, index: Index): string {
  if (free.has(name)) return anyText(index)
  if (/^\d+$/.test(text) && name !== 'itemId') return varyAmount(index)
  if (name === 'assetCode') return ['USD', 'usd', 'EUR', 'XOF', 'BTC'][index(5)] ?? text
  if (text.startsWith('https://')) return `${text}/${word(8, index)}%2F${word(4, index)}`
  return text.length < 16 ? text : word(text.length, index)
}

/** Any value of 64 bits, most of which a double cannot hold. */
function varyAmount(index: Index): string {
  const bits = 1 + index(64)
  const value = (BigInt(index(2 ** 32)) << 32n) | BigInt(index(2 ** 32))
  return (value >> BigInt(64 - bits)).toString()
}

function word(length: number, index: Index): string {
  let made = ''
  while (made.length < length) {
    // Each number of 30 bits gives five characters.
    let bits = index(2 ** 30)
    for (let i = 0; i < 5; i++, bits >>>= 6) made += alphabet[bits & 63]
  }
  return made.slice(0, length)
}

/** Text that encodings, SQL, JSON columns and templates may change. */
export const texts = {
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

export const numbers = [
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

const pieces = [...Object.values(texts), 'a', 'Z', '0', 'plain text']

/** Returns random text that is hard to keep. */
function anyText(index: (bound: number) => number): string {
  return `${pieces[index(pieces.length)]}${pieces[index(pieces.length)]}`
}

/** Returns a random JSON value made of numbers and texts that are hard to keep. */
export function anyJson(index: (bound: number) => number, depth: number): unknown {
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
      return anyText(index)
    case 4:
      return members.map((less) => anyJson(index, less))
    default:
      return Object.fromEntries(members.map((less) => [anyText(index), anyJson(index, less)]))
  }
}
