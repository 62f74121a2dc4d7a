import * as v from 'valibot'
import { given } from './given.js'
import { InvalidInputError, pathOf, unknownName, unknownNameIn } from './invalid-input.js'

/**
 * Reads a value that the host passes in by a schema, with the defaults of its members.
 *
 * @param path the name of the option or parameter; empty for the options of a function.
 * @throws {InvalidInputError} with the path of the first invalid part.
 */
export function readInput<Schema extends v.GenericSchema>(
  path: string,
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> {
  const read = v.safeParse(schema, value, { abortEarly: true, message: problemOf })
  if (read.success) return read.output
  const [{ path: keys = [], message }] = read.issues
  const where = [...(path === '' ? [] : pathOf(path)), ...keys.map(({ key }) => key as string)]
  throw new InvalidInputError(where.length === 0 ? 'options' : where, message)
}

/** The message of a schema that has none of its own. It completes the sentence that begins with the path. */
export function problemOf({ expected, received, type }: v.BaseIssue<unknown>): string {
  if (expected === 'never') return 'is not allowed here'
  if (received === 'undefined') return 'is missing'
  const isClosed = type === 'picklist' || type === 'literal' || type === 'variant'
  return isClosed ? 'must be one of the allowed values' : 'has the wrong type'
}

/** The schemas of all members of a type, so that the compiler reports a missing one. */
export type Members<Type> = { readonly [Name in keyof Required<Type>]: v.GenericSchema }

export const string = v.string('must be a string')

const wellFormed = v.check((value: string) => value.isWellFormed(), 'must be well-formed Unicode')

/**
 * Well-formed text, such as an id: different lone surrogates have the same UTF-8 encoding, so ids that contain them
 * would have the same hash.
 */
export const text = textWhere((value) => value !== '', 'must be a non-empty string')

export function textOfAtMost(lengthMax: number) {
  return textWhere(
    (value) => value !== '' && value.length <= lengthMax,
    `must have 1 to ${lengthMax} characters`,
  )
}

function textWhere(isValid: (value: string) => boolean, problem: string) {
  return v.pipe(v.string(problem), v.check(isValid, problem), wellFormed)
}

export const integer = v.custom<number>(Number.isSafeInteger, 'must be an integer')

export const positiveInteger = v.custom<number>(
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
  'must be a positive integer',
)

/** An integer within bounds, which are included. */
export function integerFrom(min: number, max: number) {
  return v.custom<number>(
    (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
    `must be an integer from ${min} to ${max}`,
  )
}

export const number = v.number('must be a number')

export const boolean = v.boolean('must be a boolean')

/** A function of a type, which is not checked. */
export function callback<Callback>() {
  return v.custom<Callback>((value) => typeof value === 'function', 'must be a function')
}

/** An abort signal, possibly from another realm. */
export const abortSignal = v.custom<AbortSignal>(
  (value) => typeof Object(value).aborted === 'boolean',
  'must be an AbortSignal',
)

export function oneOf<const Names extends readonly string[]>(...names: Names) {
  return v.picklist(names, `must be one of ${names.join(', ')}`)
}

/** A value in which a function finds no problem. The problem completes the sentence that begins with the path. */
export function checked<Value>(problemOf: (value: unknown) => string | undefined) {
  return v.custom<Value>(
    (value) => problemOf(value) === undefined,
    ({ input }) => problemOf(input) ?? '',
  )
}

/** An object with these methods, such as a port or a store; the same object. */
export function port<Port>(...methods: readonly (keyof Port & string)[]) {
  return checked<Port>((value) => problemOfPort(value, methods))
}

function problemOfPort(value: unknown, methods: readonly string[]): string | undefined {
  if (value === undefined || value === null) return 'is required'
  const given = value as Record<string, unknown>
  if (typeof given['then'] === 'function') return 'is a promise: await it first'
  // An array has a method `find` of its own.
  const missing = methods.find(
    (method) => typeof given[method] !== 'function' || Array.isArray(value),
  )
  return missing && `must have a method ${missing}`
}

export function listOf<Item extends v.GenericSchema>(item: Item) {
  return v.array(item, 'must be an array')
}

/** Some members of an object, which may have others. */
export function having<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(anObject, membersOf(entries))
}

/**
 * All members of an object. An unknown member is invalid, because a misspelled optional member would otherwise be
 * ignored.
 */
export function exactly<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(anObject, noOther('members', entries), membersOf(entries))
}

/**
 * The options of a function, or a group of options. An unknown option is invalid, and the message lists the known ones.
 */
export function optionsOf<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.pipe(anObject, noOther('options', entries), membersOf(entries))
}

/** A group of options that have defaults. */
export function group<Entries extends v.ObjectEntries>(entries: Entries) {
  return v.optional(optionsOf(entries), {} as never)
}

const anObject = v.custom<object>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be an object',
)

/** Reads members, so that an absent one has the message of its own schema. */
function membersOf<Entries extends v.ObjectEntries>(entries: Entries) {
  const names = Object.keys(entries)
  return v.pipe(
    v.custom<object>(() => true),
    v.transform((value) => {
      const read = value as Record<string, unknown>
      return Object.fromEntries(names.map((name) => [name, read[name]]))
    }),
    v.object(entries),
    v.transform(given),
  )
}

function noOther(noun: string, entries: v.ObjectEntries) {
  return v.rawCheck<object>(({ dataset, addIssue }) => {
    const input = dataset.value as Record<string, unknown>
    const key = unknownNameIn(input, entries)
    if (key === undefined) return
    const path = [{ type: 'object', origin: 'key', input, key, value: input[key] }] as const
    addIssue({ message: unknownName(noun, entries), path: [...path] })
  })
}

/** Keeps the sum of a time and a duration within the range of `Date`. */
const durationMaxMs = 100 * 366 * 86_400_000

export const duration = checked<number>((value) => {
  const isWhole = Number.isSafeInteger(value) && Number(value) >= 0
  if (isWhole && Number(value) <= durationMaxMs) return undefined
  return 'must be an integer number of milliseconds, at most 100 years'
})

export const positiveDuration = v.pipe(
  duration,
  v.check((ms) => ms > 0, 'must be positive'),
)
