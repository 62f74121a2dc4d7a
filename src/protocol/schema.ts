import * as v from 'valibot'
import { parseValue } from '../core/amount.js'
import { ok, type Problem, type Result } from '../core/decision.js'
import { resourceUrlForm } from '../core/public-reasons.js'
import { type Json, type JsonObject, sameJson } from '../core/stored.js'
import { encodeUtf8 } from '../util/bytes.js'
import { problemOf } from '../util/input.js'
import { isObject, isStorable, parseJson } from './json.js'
import { canonicalUrl, parseUrl } from './url.js'

/** The path of an invalid member, and why it is invalid. Does not contain its value. */
export interface BodyProblem extends Problem {
  readonly path: string
}

/** The value that was read, or the first problem. */
export type Parsed<T> = Result<T, BodyProblem>

/** Runs a schema and returns its output, or the first problem with a message of this library. */
export function parseWith<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
): Parsed<v.InferOutput<Schema>> {
  const result = v.safeParse(schema, input, { abortEarly: true, message: problemOf })
  if (result.success) return ok(result.output)
  const [issue] = result.issues
  return { ok: false, path: pathOf(issue), problem: issue.message }
}

/** Matches all member names of the specifications, and is too short for a secret. */
const speakableKey = /^[A-Za-z0-9_-]{1,32}$/

/** Returns the path of a problem. Omits names that the client chose, which may be secrets. */
function pathOf(issue: v.BaseIssue<unknown>): string {
  const keys = issue.path?.map(({ key }) => String(key)) ?? []
  const unspeakable = keys.findIndex((key) => !speakableKey.test(key))
  return (unspeakable === -1 ? keys : keys.slice(0, unspeakable)).join('.')
}

/** A schema that accepts only objects. An object schema of valibot accepts arrays too. */
export function objectOf<Schema extends v.GenericSchema>(schema: Schema) {
  return v.pipe(v.custom<v.InferInput<Schema>>(isObject), schema)
}

/**
 * A schema for objects that clients send. Treats a `null` member as absent, because some clients write all members
 * of a type.
 */
export function requestObjectOf<Schema extends v.GenericSchema>(schema: Schema) {
  return v.pipe(v.custom<v.InferInput<Schema>>(isObject), v.transform(withoutNulls), schema)
}

function withoutNulls<Value>(value: Value): Value {
  if (!isObject(value) || !Object.values(value).includes(null)) return value
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null)) as Value
}

/** A schema for non-empty text of printable ASCII characters without spaces. */
export function printableText(lengthMax: number) {
  return v.pipe(
    v.string(),
    v.check((text) => printable.test(text), 'must contain only printable ASCII characters'),
    v.check((text) => text.length <= lengthMax, `must have at most ${lengthMax} characters`),
  )
}

const printable = /^[\x21-\x7e]+$/
const assetCodeLengthMax = 64
const assetScaleMax = 255

export const assetMembers = {
  assetCode: printableText(assetCodeLengthMax),
  assetScale: v.pipe(
    v.number(),
    v.check(isAssetScale, `must be an integer from 0 to ${assetScaleMax}`),
  ),
} as const

/** @see Open Payments OpenAPI, schema `amount` */
export const amountSchema = objectOf(
  v.object({
    value: v.pipe(
      v.string(),
      v.check((text) => parseValue(text) !== undefined, 'must be an unsigned 64-bit integer'),
    ),
    ...assetMembers,
  }),
)

function isAssetScale(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= assetScaleMax
}

/** A URL that identifies a resource. The output is its canonical form. */
export const urlSchema = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const url = canonicalUrl(dataset.value)
    if (url !== undefined) return url
    addIssue({ message: resourceUrlForm })
    return NEVER
  }),
)

const incomingPaymentPath = /\/incoming-payments\/.+$/
const escapedSeparator = /%(?:2f|5c|25)/i

/**
 * Refuses escaped slashes and backslashes, and escaped percent signs, which can escape them twice. A server that
 * decodes a path before it splits the path would resolve another resource.
 *
 * @see Open Payments OpenAPI, schema `receiver`
 */
export const receiverSchema = v.pipe(
  urlSchema,
  v.check((url) => incomingPaymentPath.test(url), 'must be the URL of an incoming payment'),
  v.check((url) => !escapedSeparator.test(url), 'must not contain an escaped slash'),
)

export function refusing<Value>(problemIn: (value: Value) => string | undefined) {
  return v.rawCheck<Value>(({ dataset, addIssue }) => {
    const problem = dataset.typed ? problemIn(dataset.value) : undefined
    if (problem !== undefined) addIssue({ message: problem })
  })
}

const bytesMax = 8 * 1024
const levelsMax = 8

/**
 * Reads the `metadata` of a request body: an object of at most 8 KiB and 8 levels. Returns the parsed object itself,
 * because responses repeat it unchanged and a schema would copy it.
 */
export function readMetadata(body: Json | undefined): Parsed<{ readonly metadata?: JsonObject }> {
  const metadata = isObject(body) ? body['metadata'] : undefined
  if (metadata === undefined || metadata === null) return ok({})
  const problem = isObject(metadata) ? excessOf(metadata) : 'has the wrong type'
  return problem === undefined
    ? ok({ metadata: metadata as JsonObject })
    : { ok: false, path: 'metadata', problem }
}

/** Returns a copy of an object of the host that JSON can express, of at most 8 KiB and 8 levels. */
export function readHostObject(value: unknown): Result<JsonObject, Problem> {
  const copy = jsonOf(value)
  if (!isObject(copy) || !sameJson(value, copy)) {
    return { ok: false, problem: 'must be an object of JSON' }
  }
  const problem = excessOf(copy)
  return problem === undefined ? ok(copy) : { ok: false, problem }
}

function excessOf(value: JsonObject): string | undefined {
  if (!isStorable(value, levelsMax)) return `must not be nested more than ${levelsMax} levels deep`
  const isTooLarge = encodeUtf8(JSON.stringify(value)).length > bytesMax
  return isTooLarge ? `must not be larger than ${bytesMax} bytes` : undefined
}

function jsonOf(value: unknown): Json | undefined {
  try {
    return parseJson(encodeUtf8(JSON.stringify(value)))
  } catch {
    return undefined
  }
}

export function uriProblem(text: string): string | undefined {
  return parseUrl(text) === undefined ? 'must be an absolute URI without userinfo' : undefined
}
