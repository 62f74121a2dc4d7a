import {
  type BareItem,
  DisplayString,
  type InnerList,
  type Item,
  isInnerList,
  type Parameters,
  serializeBareItem,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
  Token,
} from 'structured-headers'

export type { InnerList, Item, Parameters }
export { isInnerList, serializeDictionary, serializeInnerList, serializeItem }

export type DictionaryMember = Item | InnerList

/** A dictionary of Structured Fields (RFC 9651). */
export interface Dictionary {
  readonly members: ReadonlyMap<string, DictionaryMember>
  /** `label parameter` of every parameter of a member that is written as a Decimal: its value is a number, too. */
  readonly decimals: ReadonlySet<string>
}

/** The maximum number of members, items and parameters in a dictionary. */
const partsMax = 128

/** A text with the position of the next character to parse. */
interface Cursor {
  readonly text: string
  at: number
  /** How many more members, items and parameters may follow. */
  partsLeft: number
  readonly decimals: Set<string>
}

const keyForm = /[a-z*][a-z0-9_\-.*]*/y
const spaces = / */y
const whitespace = /[ \t]*/y
const numberForm = /-?(?:[0-9]{1,12}\.[0-9]{1,3}|[0-9]{1,15})(?![0-9.])/y
const stringForm = /"[ !#-[\]-~]*(?:\\["\\][ !#-[\]-~]*)*"/y
const tokenForm = /[A-Za-z*][:/!#$%&'*+\-.^_`|~A-Za-z0-9]*/y
const bytesForm = /:[A-Za-z0-9+/=]*:/y
const booleanForm = /\?[01]/y
const dateForm = /@-?[0-9]{1,15}(?![0-9])/y
const displayForm = /%"[ !#$&-~]*(?:%[0-9a-f]{2}[ !#$&-~]*)*"/y

/**
 * Parses a dictionary (RFC 9651 section 4.2.2). Returns `undefined` for a syntax error, for more than 128 members,
 * items and parameters, and for a duplicate key in one scope: in RFC 9651 the last one wins, but RFC 9421 does not
 * allow duplicates. Takes time linear in the length of the text.
 */
export function parseDictionary(text: string): Dictionary | undefined {
  const cursor: Cursor = { text, at: 0, partsLeft: partsMax, decimals: new Set() }
  const members = new Map<string, DictionaryMember>()
  take(cursor, spaces)
  for (let more = cursor.at < text.length; more; ) {
    const label = take(cursor, keyForm)
    if (label === undefined || members.has(label) || !mayContinue(cursor)) return undefined
    const member = takes(cursor, '=') ? parseMember(cursor, label) : parseFlag(cursor, label)
    if (member === undefined) return undefined
    members.set(label, member)
    take(cursor, whitespace)
    more = takes(cursor, ',')
    take(cursor, whitespace)
    // Text after a member must be separated by a comma, and text must follow a comma.
    if (more === (cursor.at === text.length)) return undefined
  }
  return { members, decimals: cursor.decimals }
}

function parseMember(cursor: Cursor, label: string): DictionaryMember | undefined {
  return takes(cursor, '(') ? parseInnerList(cursor, label) : parseItem(cursor, label)
}

function parseFlag(cursor: Cursor, label: string): Item | undefined {
  const parameters = parseParameters(cursor, label)
  return parameters && [true, parameters]
}

function parseInnerList(cursor: Cursor, label: string): InnerList | undefined {
  const items: Item[] = []
  take(cursor, spaces)
  while (!takes(cursor, ')')) {
    const item = mayContinue(cursor) ? parseItem(cursor) : undefined
    if (item === undefined) return undefined
    items.push(item)
    if (take(cursor, spaces) === '' && cursor.text[cursor.at] !== ')') return undefined
  }
  const parameters = parseParameters(cursor, label)
  return parameters && [items, parameters]
}

function parseItem(cursor: Cursor, label?: string): Item | undefined {
  const value = parseBareItem(cursor)
  if (value === undefined) return undefined
  const parameters = parseParameters(cursor, label)
  return parameters && [value, parameters]
}

/** Parses parameters. With the label of a member, records those that are decimals. */
function parseParameters(cursor: Cursor, label?: string): Parameters | undefined {
  const parameters: Parameters = new Map()
  while (takes(cursor, ';')) {
    take(cursor, spaces)
    const key = take(cursor, keyForm)
    if (key === undefined || parameters.has(key) || !mayContinue(cursor)) return undefined
    const start = cursor.at
    const value = takes(cursor, '=') ? parseBareItem(cursor) : true
    if (value === undefined) return undefined
    parameters.set(key, value)
    if (label === undefined || typeof value !== 'number') continue
    if (cursor.text.slice(start, cursor.at).includes('.')) cursor.decimals.add(`${label} ${key}`)
  }
  return parameters
}

function parseBareItem(cursor: Cursor): BareItem | undefined {
  switch (cursor.text[cursor.at]) {
    case '"':
      return take(cursor, stringForm)?.slice(1, -1).replace(/\\(.)/g, '$1')
    case ':':
      return parseBytes(take(cursor, bytesForm))
    case '?':
      return parseBoolean(take(cursor, booleanForm))
    case '@':
      return parseDate(take(cursor, dateForm))
    case '%':
      return parseDisplayString(take(cursor, displayForm))
    default: {
      const number = take(cursor, numberForm)
      if (number !== undefined) return Number(number)
      const token = take(cursor, tokenForm)
      return token === undefined ? undefined : new Token(token)
    }
  }
}

function parseBoolean(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : text === '?1'
}

function parseDate(text: string | undefined): Date | undefined {
  const date = new Date(Number(text?.slice(1)) * 1000)
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** Decodes base64, also without padding and with stray bits, as RFC 9651 section 4.2.7 recommends. */
function parseBytes(text: string | undefined): Uint8Array<ArrayBuffer> | undefined {
  if (text === undefined) return undefined
  let binary: string
  try {
    binary = atob(text.slice(1, -1))
  } catch {
    return undefined
  }
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

function parseDisplayString(text: string | undefined): DisplayString | undefined {
  if (text === undefined) return undefined
  try {
    return new DisplayString(decodeURIComponent(text.slice(2, -1)))
  } catch {
    return undefined
  }
}

/** Takes the text at the cursor that matches a sticky pattern. */
function take(cursor: Cursor, pattern: RegExp): string | undefined {
  const { text, at } = cursor
  pattern.lastIndex = at
  if (!pattern.test(text)) return undefined
  cursor.at = pattern.lastIndex
  return text.slice(at, cursor.at)
}

/** Takes this character if it is next, and returns whether it was. */
function takes(cursor: Cursor, character: string): boolean {
  if (cursor.text[cursor.at] !== character) return false
  cursor.at += 1
  return true
}

/** Counts a member, item or parameter, and returns whether it is allowed. */
function mayContinue(cursor: Cursor): boolean {
  cursor.partsLeft -= 1
  return cursor.partsLeft >= 0
}

/** Returns the bytes of a Byte Sequence, or `undefined` for another item. */
export function byteSequence(member: DictionaryMember | undefined): Uint8Array | undefined {
  if (member === undefined || isInnerList(member)) return undefined
  const [value] = member
  return value instanceof Uint8Array ? value : undefined
}

/** Serializes field lines as a list of Byte Sequences, for the parameter `bs` (RFC 9421 section 2.1.3). */
export function serializeByteSequences(lines: readonly Uint8Array[]): string {
  return lines.map((line) => serializeBareItem(line as Uint8Array<ArrayBuffer>)).join(', ')
}

export function isText(value: BareItem | undefined): value is string {
  return typeof value === 'string'
}
