import type { Json } from '../core/stored.js'
import { decodeUtf8 } from '../util/bytes.js'

/** A `Content-Type` of JSON. */
export const jsonType = /^application\/json[\t ]*(?:;|$)/i

/** A `Content-Type` of JSON, or of a format that is based on it, such as `application/jwk-set+json`. */
export const jsonBasedType = /^application\/(?:[\w.-]+\+)?json[\t ]*(?:;|$)/i

const levelsMax = 32

/** The maximum number of `[`, `{` and `,` outside of strings. Parsing costs much more per value than per byte. */
const separatorsMax = 512

/**
 * Parses JSON from the wire. Returns `undefined` for bytes that are not UTF-8 or not JSON, for values that cannot
 * be processed and stored without loss, for nesting deeper than 32 levels, and for more than about 512 values.
 *
 * @param most the maximum number of values, for a sender that the host trusts.
 */
export function parseJson(bytes: Uint8Array, most = separatorsMax): Json | undefined {
  if (bytes.length > most && separatorsIn(bytes) > most) return undefined
  const text = decodeUtf8(bytes)
  if (text === undefined) return undefined
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch {
    return undefined
  }
  return isStorable(value, levelsMax) ? value : undefined
}

const [quote, comma, opening, backslash, brace] = [0x22, 0x2c, 0x5b, 0x5c, 0x7b]

function separatorsIn(bytes: Uint8Array): number {
  let count = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === quote) i = endOfString(bytes, i)
    else if (byte === comma || byte === opening || byte === brace) count += 1
  }
  return count
}

/** Returns the position of the quote that ends the string. */
function endOfString(bytes: Uint8Array, start: number): number {
  let end = start + 1
  while (end < bytes.length && bytes[end] !== quote) end += bytes[end] === backslash ? 2 : 1
  return end
}

/**
 * Whether a value has at most this number of nested levels of objects and arrays (a scalar has none), and contains
 * neither a `__proto__` member nor a number that is not finite.
 */
export function isStorable(value: Json, levels: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  if (levels <= 0) return false
  if (Array.isArray(value)) return value.every((item) => isStorable(item, levels - 1))
  const members = value as Readonly<Record<string, Json>>
  return Object.keys(members).every(
    (name) => name !== '__proto__' && isStorable(members[name] ?? null, levels - 1),
  )
}

/** Formats a value so that equal values have equal texts, whatever the order of their members. */
export function canonicalJson(value: object): string {
  return JSON.stringify(inOrder(value))
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, inOrder(value[name])]))
}

/** Whether a value is a JSON object, neither an array nor null. */
export function isObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
