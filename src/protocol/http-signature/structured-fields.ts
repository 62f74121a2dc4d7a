import { toBase64 } from '../../util/bytes.js'

/**
 * A value of an Item: an Integer is a number, a String is text, a Byte Sequence is bytes. `OpaqueItem` is a value that the
 * library only writes again.
 */
export type BareItem = number | string | boolean | Uint8Array | OpaqueItem

/** A Decimal, Token, Date or Display String, in its serialized form. */
export class OpaqueItem {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Parameters = Map<string, BareItem>
export type Item = [value: BareItem, parameters: Parameters]
/** `written` is its text, if it is known and a signature base contains it as it is. */
export type InnerList = [items: Item[], parameters: Parameters, written?: string]
export type DictionaryMember = Item | InnerList

/** A dictionary of Structured Fields (RFC 9651). */
export type Dictionary = ReadonlyMap<string, DictionaryMember>

export function isInnerList(member: DictionaryMember): member is InnerList {
  return Array.isArray(member[0])
}

/** The maximum number of members, items and parameters in a dictionary. */
const partsMax = 128

/** A text with the position of the next character to parse. */
interface Cursor {
  readonly text: string
  at: number
  /** How many more members, items and parameters may follow. */
  partsLeft: number
}

const keyForm = /[a-z*][a-z0-9_\-.*]*/y
const spaces = / */y
const whitespace = /[ \t]*/y
const integerForm = /-?[0-9]{1,15}(?![0-9.])/y
const decimalForm = /-?[0-9]{1,12}\.[0-9]{1,3}(?![0-9.])/y
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
  const cursor: Cursor = { text, at: 0, partsLeft: partsMax }
  const members = new Map<string, DictionaryMember>()
  take(cursor, spaces)
  for (let more = cursor.at < text.length; more; ) {
    const label = take(cursor, keyForm)
    if (label === undefined || members.has(label) || !mayContinue(cursor)) return undefined
    const member = takes(cursor, '=') ? parseMember(cursor) : parseFlag(cursor)
    if (member === undefined) return undefined
    members.set(label, member)
    take(cursor, whitespace)
    more = takes(cursor, ',')
    take(cursor, whitespace)
    // Text after a member must be separated by a comma, and text must follow a comma.
    if (more === (cursor.at === text.length)) return undefined
  }
  return members
}

function parseMember(cursor: Cursor): DictionaryMember | undefined {
  return takes(cursor, '(') ? parseInnerList(cursor) : parseItem(cursor)
}

function parseFlag(cursor: Cursor): Item | undefined {
  const parameters = parseParameters(cursor)
  return parameters && [true, parameters]
}

function parseInnerList(cursor: Cursor): InnerList | undefined {
  const items: Item[] = []
  take(cursor, spaces)
  while (!takes(cursor, ')')) {
    const item = mayContinue(cursor) ? parseItem(cursor) : undefined
    if (item === undefined) return undefined
    items.push(item)
    if (take(cursor, spaces) === '' && cursor.text[cursor.at] !== ')') return undefined
  }
  const parameters = parseParameters(cursor)
  return parameters && [items, parameters]
}

function parseItem(cursor: Cursor): Item | undefined {
  const value = parseBareItem(cursor)
  if (value === undefined) return undefined
  const parameters = parseParameters(cursor)
  return parameters && [value, parameters]
}

function parseParameters(cursor: Cursor): Parameters | undefined {
  const parameters: Parameters = new Map()
  while (takes(cursor, ';')) {
    take(cursor, spaces)
    const key = take(cursor, keyForm)
    if (key === undefined || parameters.has(key) || !mayContinue(cursor)) return undefined
    const value = takes(cursor, '=') ? parseBareItem(cursor) : true
    if (value === undefined) return undefined
    parameters.set(key, value)
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
      const integer = take(cursor, integerForm)
      if (integer !== undefined) return Number(integer)
      const text = canonicalDecimal(take(cursor, decimalForm)) ?? take(cursor, tokenForm)
      return text === undefined ? undefined : new OpaqueItem(text)
    }
  }
}

/** At least one digit follows the point, and otherwise no zeros end it (RFC 9651 section 4.1.5). */
function canonicalDecimal(text: string | undefined): string | undefined {
  return (
    text &&
    Number(text)
      .toFixed(3)
      .replace(/0{1,2}$/, '')
  )
}

function parseBoolean(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : text === '?1'
}

function parseDate(text: string | undefined): OpaqueItem | undefined {
  if (text === undefined) return undefined
  return new OpaqueItem(`@${Number(text.slice(1))}`)
}

/** Decodes base64, also without padding and with stray bits, as RFC 9651 section 4.2.7 recommends. */
function parseBytes(text: string | undefined): Uint8Array | undefined {
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

function parseDisplayString(text: string | undefined): OpaqueItem | undefined {
  if (text === undefined) return undefined
  try {
    const decoded = decodeURIComponent(text.slice(2, -1))
    const escaped = decoded.replace(/[^ !#$&-~]/gu, (character) =>
      encodeURIComponent(character).toLowerCase(),
    )
    return new OpaqueItem(`%"${escaped}"`)
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

export function isText(value: BareItem | undefined): value is string {
  return typeof value === 'string'
}

/** Serializes a dictionary (RFC 9651 section 4.1.2). */
export function serializeDictionary(dictionary: Dictionary): string {
  return Array.from(dictionary, ([key, member]) => {
    const [value, parameters] = member
    if (value === true) return key + serializeParameters(parameters)
    return `${key}=${serializeMember(member)}`
  }).join(', ')
}

/** Serializes an Item or Inner List, or returns the text of a list that has one. */
export function serializeMember(member: DictionaryMember): string {
  if (!isInnerList(member)) return serializeBareItem(member[0]) + serializeParameters(member[1])
  const [items, parameters, written] = member
  return written ?? `(${items.map(serializeMember).join(' ')})${serializeParameters(parameters)}`
}

function serializeParameters(parameters: Parameters): string {
  return Array.from(parameters, ([key, value]) =>
    value === true ? `;${key}` : `;${key}=${serializeBareItem(value)}`,
  ).join('')
}

export function serializeBareItem(value: BareItem): string {
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`
  if (typeof value === 'boolean') return value ? '?1' : '?0'
  if (value instanceof Uint8Array) return `:${toBase64(value)}:`
  return value instanceof OpaqueItem ? value.text : String(value)
}

/** The longest dictionary that is parsed, in characters. */
export const dictionaryLengthMax = 2048

/**
 * Parses a dictionary. Returns `undefined` for a text that is too long, for a syntax error, and for a duplicate key in
 * one scope: in RFC 9651 the last one wins, but RFC 9421 does not allow duplicates.
 */
export function parseStrictDictionary(text: string): Dictionary | undefined {
  if (text.length > dictionaryLengthMax) return undefined
  return parseCanonicalList(text) ?? parseDictionary(text)
}

const noParameters: Parameters = new Map()
const key = '[a-z*][a-z0-9_\\-.*]*'
const plainString = '"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"'
const plainValue = `(?:(?:0|[1-9][0-9]{0,14})|${plainString})`
const canonicalParameter = new RegExp(`;(${key})=(${plainValue})`, 'y')
const canonicalList = new RegExp(
  `^(?<label>${key})=(?<list>\\((?<items>${plainString}(?: ${plainString})*)\\)(?:;${key}=${plainValue})*)$`,
)

/** The groups of `canonicalList`, each of which takes part in every match. */
type CanonicalGroups = Readonly<Record<'label' | 'list' | 'items', string>>

/**
 * Parses a single list of strings with string and integer parameters in canonical form, the usual `Signature-Input`.
 * The general parser takes twice as long, and its result has to be serialized again for the signature base.
 */
function parseCanonicalList(text: string): Dictionary | undefined {
  const groups = canonicalList.exec(text)?.groups as CanonicalGroups | undefined
  if (groups === undefined) return undefined
  const { label, list, items } = groups
  const tail = list.slice(items.length + 2)
  const names = items.slice(1, -1).split('" "')
  const parameters: Parameters = new Map()
  let count = 0
  canonicalParameter.lastIndex = 0
  for (let found = canonicalParameter.exec(tail); found; found = canonicalParameter.exec(tail)) {
    const [, name = '', value = ''] = found
    parameters.set(name, value.startsWith('"') ? value.slice(1, -1) : Number(value))
    count += 1
  }
  // The general parser rejects duplicate parameters.
  if (parameters.size < count) return undefined
  const member: InnerList = [names.map((name): Item => [name, noParameters]), parameters, list]
  return new Map([[label, member]])
}
