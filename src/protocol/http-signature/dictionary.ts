import {
  type InnerList,
  type Item,
  isInnerList,
  parseDictionary,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'

/** A dictionary of Structured Fields (RFC 9651). */
export type Dictionary = ReadonlyMap<string, DictionaryMember>

export interface DictionaryMember {
  readonly value: Item | InnerList
  /** The text in a signature base. If it is absent, the signature base contains the serialized value. */
  readonly text?: string
  /** The names of parameters that are Decimals. Their values are numbers, like Integers. */
  readonly decimals?: readonly string[]
}

/** The longest dictionary that is parsed, in characters. */
export const dictionaryLengthMax = 2048

const ascii = /^[\x20-\x7e\t]*$/
/** A backslash is an escape in a String, but not in a Display String. */
const string = '(%)"[^"]*"|"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"'
const strings = new RegExp(string, 'g')
const stringsAndSeparators = new RegExp(`${string}|[,;]`, 'g')
const memberTexts = new RegExp(`(?:${string}|[^",])+`, 'g')
/** A Decimal, Date or Display String, which the serializer may change: it writes 1.0 as 1, and %"%0a" as %"%a". */
const inexact = /[=( ](?:-?[0-9]+\.|@|%")/
/** Text that the serializer may change: optional spaces, signs and zeros, `=?1`, base64. */
const respelt = / {2}|[(;] | \)|[=( ](?:-0|0[0-9])|\?1|:/
const decimalParameters = /; *([a-z*][a-z0-9_\-.*]*)=-?[0-9]+\./g

/**
 * Parses a dictionary. Returns `undefined` for a text that is too long, for a syntax error, and for a duplicate key in
 * one scope: in RFC 9651 the last one wins, but RFC 9421 does not allow duplicates.
 */
export function parseStrictDictionary(text: string): Dictionary | undefined {
  if (text.length > dictionaryLengthMax || !ascii.test(text)) return undefined
  const parsed = parse(text)
  // The parser returns the last of several members or parameters with one key.
  if (parsed === undefined || separatorsIn(text) > separatorsOf(parsed)) return undefined
  const texts = text.match(memberTexts)
  const members = new Map<string, DictionaryMember>()
  for (const [key, value] of parsed) {
    members.set(key, memberOf(value, key, texts?.[members.size] ?? ''))
  }
  return members
}

function parse(text: string): ReadonlyMap<string, Item | InnerList> | undefined {
  try {
    return parseDictionary(text)
  } catch {
    return undefined
  }
}

/** How many commas and semicolons separate the members and parameters in a text. */
function separatorsIn(text: string): number {
  let count = 0
  for (const found of text.match(stringsAndSeparators) ?? []) if (found.length === 1) count += 1
  return count
}

function separatorsOf(parsed: ReadonlyMap<string, Item | InnerList>): number {
  let count = Math.max(parsed.size - 1, 0)
  for (const value of parsed.values()) {
    count += value[1].size
    if (isInnerList(value)) for (const item of value[0]) count += item[1].size
  }
  return count
}

function memberOf(value: Item | InnerList, key: string, written: string): DictionaryMember {
  const outline = inexact.test(written) ? written.replace(strings, '$1"') : ''
  const isInexact = inexact.test(outline)
  if (!isInexact && respelt.test(written)) return { value }
  const rest = written.trim().slice(key.length)
  const text = rest.startsWith('=') ? rest.slice(1) : `?1${rest}`
  if (!isInexact) return { value, text }
  const decimals = Array.from(outline.matchAll(decimalParameters), ([, name = '']) => name)
  return { value, text, decimals }
}

/** Returns the bytes of a Byte Sequence, or `undefined` for another item. */
export function byteSequence(member: DictionaryMember | undefined): Uint8Array | undefined {
  const value = member?.value[0]
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined
}

/** Returns a member as a signature base contains it. */
export function memberText({ value, text }: DictionaryMember): string {
  return text ?? (isInnerList(value) ? serializeInnerList(value) : serializeItem(value))
}

/** Returns a dictionary as a signature base contains it. */
export function dictionaryText(dictionary: Dictionary): string {
  return Array.from(dictionary, ([key, { value, text }]) => {
    if (text === undefined) return serializeDictionary(new Map([[key, value]]))
    return value[0] === true ? key + text.slice('?1'.length) : `${key}=${text}`
  }).join(', ')
}
