import * as v from 'valibot'
import { parseValue } from '../core/amount.js'
import { ok, type Problem, type Result } from '../core/result.js'
import { isObject } from './json.js'
import { canonicalUrl } from './url.js'

/** What is wrong with a body: where, and why, without a word of what it held. */
export interface BodyProblem extends Problem {
  readonly path: string
}

/** Why the party that a request names cannot be read. */
export interface Unreadable<Refusal extends string> {
  readonly ok: false
  readonly refusal: Refusal
  readonly reason: string
}

/** What was read, or the first problem. */
export type Parsed<T> = Result<T, BodyProblem>

/** Runs a schema and answers its output, or the first problem in words of our own. */
export function parseWith<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
): Parsed<v.InferOutput<Schema>> {
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (result.success) return ok(result.output)
  const [issue] = result.issues
  return { ok: false, path: pathOf(issue), problem: problemOf(issue) }
}

/** Long enough for any name that a specification has, and too short for a secret. */
const speakableKey = /^[A-Za-z0-9_-]{1,32}$/

/** Where the problem is. A member that the client named in its own way is not repeated, only its place. */
function pathOf(issue: v.BaseIssue<unknown>): string {
  const keys = issue.path?.map(({ key }) => String(key)) ?? []
  const unspeakable = keys.findIndex((key) => !speakableKey.test(key))
  return (unspeakable === -1 ? keys : keys.slice(0, unspeakable)).join('.')
}

function problemOf(issue: v.BaseIssue<unknown>): string {
  if (issue.kind !== 'schema') return issue.message
  if (issue.expected === 'never') return 'is not allowed here'
  if (issue.received === 'undefined') return 'is missing'
  const closed = issue.type === 'picklist' || issue.type === 'literal' || issue.type === 'variant'
  return closed ? 'must be one of the allowed values' : 'has the wrong type'
}

/** A schema of objects that takes objects only: valibot takes arrays for objects too. */
export function objectOf<Schema extends v.GenericSchema>(schema: Schema) {
  return v.pipe(v.custom<v.InferInput<Schema>>(isObject), schema)
}

/**
 * A schema of objects that clients send. A member that is `null` counts as left out, because some clients write
 * every member that they know of.
 */
export function requestObjectOf<Schema extends v.GenericSchema>(schema: Schema) {
  return v.pipe(v.custom<v.InferInput<Schema>>(isObject), v.transform(withoutNulls), schema)
}

function withoutNulls<Value>(value: Value): Value {
  if (!isObject(value) || !Object.values(value).includes(null)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) as Value
}

/** Text of at least one character, all of them visible. */
export function printableText(lengthMax: number) {
  return v.pipe(
    v.string(),
    v.regex(/^[\x21-\x7e]+$/, 'must contain only printable ASCII characters'),
    v.maxLength(lengthMax, `must have at most ${lengthMax} characters`),
  )
}

const assetCodeLengthMax = 64

/** @see Open Payments OpenAPI, schema `amount` */
export const amountSchema = objectOf(
  v.object({
    value: v.pipe(
      v.string(),
      v.check((text) => parseValue(text) !== undefined, 'must be an unsigned 64-bit integer'),
    ),
    assetCode: printableText(assetCodeLengthMax),
    assetScale: v.pipe(
      v.number(),
      v.integer('must be an integer'),
      v.minValue(0, 'must not be less than 0'),
      v.maxValue(255, 'must not be greater than 255'),
    ),
  }),
)

/** A URL that identifies something, in its canonical form. */
export const urlSchema = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const url = canonicalUrl(dataset.value)
    if (url !== undefined) return url
    addIssue({ message: 'is no canonical https URL without userinfo, query and fragment' })
    return NEVER
  }),
)

/** @see Open Payments OpenAPI, schema `receiver` */
export const receiverSchema = v.pipe(
  urlSchema,
  v.regex(/\/incoming-payments\/.+$/, 'must be the URL of an incoming payment'),
)

/** A check that says in its own words what is wrong with a text. */
export function refusing(problemIn: (text: string) => string | undefined) {
  return v.rawCheck<string>(({ dataset, addIssue }) => {
    const problem = dataset.typed ? problemIn(dataset.value) : undefined
    if (problem !== undefined) addIssue({ message: problem })
  })
}
