import {
  type BareItem,
  type InnerList,
  type Item,
  isInnerList,
  type Parameters,
  parseDictionary,
  serializeBareItem,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { fromBase64 } from '../../util/bytes.js'

export type { InnerList, Item, Parameters }
export { isInnerList, serializeDictionary, serializeInnerList, serializeItem }

export type DictionaryMember = Item | InnerList

/** A dictionary of Structured Fields (RFC 9651), as strict as RFC 9421 section 4 requires. */
export interface StrictDictionary {
  readonly members: ReadonlyMap<string, DictionaryMember>
  /** `label parameter` of every parameter written as a Decimal, which the parser returns like an Integer. */
  readonly decimals: ReadonlySet<string>
  /** The text of a list, if it equals its serialization. */
  readonly canonicalList?: string
}

/**
 * Parses a dictionary. Returns `undefined` for a syntax error, and for a duplicate key in one scope: in RFC 9651 the
 * last one wins, but RFC 9421 does not allow duplicates.
 */
export function parseStrictDictionary(text: string): StrictDictionary | undefined {
  return parseCanonicalBytes(text) ?? parseCanonicalList(text) ?? parseAnyDictionary(text)
}

/** Parses a dictionary of any form with the general parser. */
export function parseAnyDictionary(text: string): StrictDictionary | undefined {
  let members: ReadonlyMap<string, DictionaryMember>
  try {
    members = parseDictionary(text)
  } catch {
    return undefined
  }
  const decimals = scan(text)
  return decimals === undefined ? undefined : { members, decimals }
}

const none: ReadonlySet<string> = new Set()
const noParameters: Parameters = new Map()
const canonicalBytes = /^([a-z*][a-z0-9_\-.*]*)=:([A-Za-z0-9+/]*={0,2}):$/

/** Parses a single Byte Sequence, the usual form of `Signature` and `Content-Digest`. */
function parseCanonicalBytes(text: string): StrictDictionary | undefined {
  const [, label, base64] = canonicalBytes.exec(text) ?? []
  const bytes = base64 === undefined ? undefined : fromBase64(base64)
  if (label === undefined || bytes === undefined) return undefined
  const value = bytes as Uint8Array<ArrayBuffer>
  return { members: new Map([[label, [value, noParameters]]]), decimals: none }
}

const key = '[a-z*][a-z0-9_\\-.*]*'
const plainString = '"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"'
const plainValue = `(?:(?:0|[1-9][0-9]{0,14})|${plainString})`
const canonicalParameter = new RegExp(`;(${key})=(${plainValue})`, 'y')
const canonicalList = new RegExp(
  `^(${key})=(\\((${plainString}(?: ${plainString})*)\\)(?:;${key}=${plainValue})*)$`,
)

/**
 * Parses a single list of strings with string and integer parameters in canonical form, the usual `Signature-Input`.
 * The general parser takes as long as all other checks together.
 */
function parseCanonicalList(text: string): StrictDictionary | undefined {
  const [, label, list, items] = canonicalList.exec(text) ?? []
  if (label === undefined || list === undefined || items === undefined) return undefined
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
  const member: InnerList = [names.map((name): Item => [name, noParameters]), parameters]
  return { members: new Map([[label, member]]), decimals: none, canonicalList: list }
}

/** Returns the bytes of a Byte Sequence, or `undefined` for another item. */
export function byteSequence(member: DictionaryMember | undefined): Uint8Array | undefined {
  if (member === undefined || isInnerList(member)) return undefined
  const [value] = member
  if (value instanceof Uint8Array) return value
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined
}

/** Serializes field lines as a list of Byte Sequences, for the parameter `bs` (RFC 9421 section 2.1.3). */
export function serializeByteSequences(lines: readonly Uint8Array[]): string {
  return lines.map((line) => serializeBareItem(line as Uint8Array<ArrayBuffer>)).join(', ')
}

export function isText(value: BareItem | undefined): value is string {
  return typeof value === 'string'
}

/**
 * Scans a dictionary that parses, for two properties that the parsed form does not show. Returns `undefined` for
 * duplicate keys, and otherwise the parameters that are written as decimals.
 */
function scan(text: string): Set<string> | undefined {
  const labels = new Set<string>()
  const decimals = new Set<string>()
  let label = ''
  let scope = new Set<string>()
  let inList = false
  let atMember = true
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (character === ' ' || character === '\t') {
      if (inList) scope = new Set()
    } else if (atMember) {
      const end = endOfKey(text, i)
      label = text.slice(i, end)
      if (labels.has(label)) return undefined
      labels.add(label)
      scope = new Set()
      atMember = false
      i = end - 1
    } else if (character === '"') {
      // A Display String, %"…", has no backslash escapes.
      i = text[i - 1] === '%' ? text.indexOf('"', i + 1) : endOfString(text, i)
    } else if (character === '(' || character === ')') {
      inList = character === '('
      scope = new Set()
    } else if (character === ',') {
      atMember = true
    } else if (character === ';') {
      const start = endOfSpaces(text, i + 1)
      const end = endOfKey(text, start)
      const key = text.slice(start, end)
      if (scope.has(key)) return undefined
      scope.add(key)
      if (!inList && isDecimal(text, end + 1)) decimals.add(`${label} ${key}`)
      i = end - 1
    }
  }
  return decimals
}

function endOfKey(text: string, start: number): number {
  let end = start
  while (end < text.length && !' \t=;,()'.includes(text.charAt(end))) end++
  return end
}

function endOfSpaces(text: string, start: number): number {
  let end = start
  while (text[end] === ' ') end++
  return end
}

function endOfString(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1
  return end
}

function isDecimal(text: string, start: number): boolean {
  let end = start
  while (end < text.length && '-0123456789'.includes(text.charAt(end))) end++
  return end > start && text[end] === '.'
}
