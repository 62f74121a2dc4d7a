import type { Json } from '../core/decision.js'
import { decodeUtf8 } from '../util/bytes.js'

const depthMax = 32

/**
 * Parses JSON from the wire. Returns `undefined` for bytes that are not UTF-8 or not JSON, and for values that cannot
 * be processed and stored without loss: objects with a `__proto__` member, numbers beyond the range of a double, and
 * nesting deeper than 32 levels.
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
 * Returns the number of nested levels of objects and arrays, 0 for a scalar. Returns `undefined` for more than `max`
 * levels, and for a `__proto__` member or a number that is not finite.
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

/** Formats a value so that equal values have equal texts, whatever the order of their members. */
export function canonicalJson(value: object): string {
  return JSON.stringify(value, (_, member: Json) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(byName)) : member,
  )
}

function byName([a]: readonly [string, Json], [b]: readonly [string, Json]): number {
  return a < b ? -1 : 1
}

/** Whether a value is a JSON object, neither an array nor null. */
export function isObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
