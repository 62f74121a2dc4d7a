import type { Json } from '../core/decision.js'
import { decodeUtf8 } from '../util/bytes.js'

const depthMax = 32

/**
 * Reads JSON text as it came over the wire. Answers `undefined` for bytes that are not UTF-8 or not JSON,
 * for objects with a `__proto__` member, for numbers beyond the range of a double and for nesting beyond
 * 32 levels: none of these could be handled, stored or given back as it was.
 */
export function parseJson(bytes: Uint8Array): Json | undefined {
  const text = decodeUtf8(bytes)
  if (text === undefined) return undefined
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch {
    return undefined
  }
  return depthOf(value, depthMax) === undefined ? undefined : value
}

/**
 * How many levels of objects and arrays a value has: 0 for a scalar. Answers `undefined` beyond `max`,
 * and for members and numbers that JSON cannot carry faithfully.
 */
export function depthOf(value: Json, max: number): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : undefined
  if (typeof value !== 'object' || value === null) return 0
  if (max === 0) return undefined
  if (Object.hasOwn(value, '__proto__')) return undefined
  let deepest = 0
  for (const member of Object.values(value)) {
    const depth = depthOf(member, max - 1)
    if (depth === undefined) return undefined
    deepest = Math.max(deepest, depth)
  }
  return deepest + 1
}

/** Whether a value is a JSON object, neither an array nor null. */
export function isObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
