/** A rule of the `Store` contract, by number, or the part of it that a case checks. */
export type ConformanceRule = 1 | 2 | 3 | 4 | 5 | 6 | 'ids' | 'due' | 'remove' | 'load'

/** The breach of another rule than the one that the case is named after. */
export class RuleError extends Error {
  readonly rule: ConformanceRule

  constructor(rule: ConformanceRule, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.rule = rule
  }
}

/** Fails the case unless the condition holds. The message states what the store did and what was expected. */
export function demand(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new Error(typeof message === 'string' ? message : message())
}

/** Fails the case unless a call returned `false`. */
export function demandFalse(outcome: boolean, what: string): void {
  if (outcome !== false) throw new Error(`${what} returned ${show(outcome)}; expected false`)
}

/** Fails the case unless both are the same JSON, regardless of key order. */
export function demandSame(actual: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(expected, actual, '')
  if (difference !== undefined) throw new Error(`${what}: ${difference}`)
}

/** Returns whether both are the same JSON, regardless of key order. */
export function isSame(actual: unknown, expected: unknown): boolean {
  return differenceOf(expected, actual, '') === undefined
}

/** Prints a value on one line, shortened for messages and without invisible characters. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  const visible = text.replace(/[^ -~]/g, escaped)
  return visible.length > 160 ? `${visible.slice(0, 157)}…` : visible
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Describes the first difference between two JSON values. */
function differenceOf(expected: unknown, actual: unknown, path: string): string | undefined {
  const here = path === '' ? 'the whole value' : path
  if (!isObject(expected) || !isObject(actual)) {
    if (JSON.stringify(expected) === JSON.stringify(actual)) return undefined
    return `${here} must be ${show(expected)} but is ${show(actual)}`
  }
  if (Array.isArray(expected) !== Array.isArray(actual)) {
    return `${here} must be ${show(expected)} but is ${show(actual)}`
  }
  for (const key of Object.keys(expected)) {
    if (!Object.hasOwn(actual, key)) return `${here} lacks ${show(key)}`
    const inner = differenceOf(expected[key], actual[key], `${path}[${show(key)}]`)
    if (inner !== undefined) return inner
  }
  const extra = Object.keys(actual).find((key) => !Object.hasOwn(expected, key))
  return extra === undefined ? undefined : `${here} has the unexpected member ${show(extra)}`
}

/** Returns whether a value is an object or an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
