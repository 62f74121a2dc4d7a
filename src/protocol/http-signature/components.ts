import { ok, type Problem, type Result } from '../../core/result.js'
import { encodeUtf8 } from '../../util/bytes.js'
import {
  type Item,
  isInnerList,
  parseStrictDictionary,
  serializeByteSequences,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
} from './structured-fields.js'

/** Header field lines by lower-case name, in the order in which they were received. */
export type FieldLines = ReadonlyMap<string, readonly string[]>

/** The received message that a signature covers. Its origin comes from the configuration. */
export interface SignedMessage {
  readonly method: string
  /** Scheme and authority of the server, from its configuration. */
  readonly origin: string
  /** Path and query, as received. */
  readonly target: string
  readonly fields: FieldLines
  /** True if the runtime has joined field lines, which cannot be separated again. */
  readonly fieldsMerged?: boolean
  readonly body: Uint8Array
}

/** The value of a component, or why it has none (RFC 9421 section 2.5). */
export type ComponentValue = Result<string, Problem>

/** Printable ASCII and tabs, which cannot add lines to a signature base. */
const safeValue = /^[\x20-\x7e\t]*$/
const fieldName = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/
const dictionaryFields = new Set(['content-digest', 'signature', 'signature-input'])

/** Returns the value of a covered component in the received message. */
export function componentValue([name, parameters]: Item, message: SignedMessage): ComponentValue {
  if (typeof name !== 'string')
    return { ok: false, problem: 'a component identifier is not a String' }
  if (parameters.has('req'))
    return { ok: false, problem: `"${name}" has the parameter req, which only responses may use` }
  if (name.startsWith('@')) {
    if (name === '@query-param') return queryParameter(message, parameters)
    if (parameters.size > 0) return { ok: false, problem: `"${name}" has an unknown parameter` }
    const value = derived(name, message)
    return value === undefined
      ? { ok: false, problem: `"${name}" is not a component of a request` }
      : ok(value)
  }
  if (!fieldName.test(name))
    return { ok: false, problem: `"${name}" is not a lower-case field name` }
  const lines = message.fields.get(name)
  if (lines === undefined) return { ok: false, problem: `"${name}" is not in the request` }
  return fieldValue(name, lines, parameters, message)
}

/** Joins the lines of a field to its value (RFC 9421 section 2.1). */
export function combinedValue(lines: readonly string[]): string {
  return lines.length === 1 ? (lines[0] ?? '') : lines.join(', ')
}

function derived(name: string, { method, origin, target }: SignedMessage): string | undefined {
  const query = target.indexOf('?')
  switch (name) {
    case '@method':
      return method
    case '@target-uri':
      return origin + target
    case '@authority':
      return origin.slice(origin.indexOf('//') + 2)
    case '@scheme':
      return origin.slice(0, origin.indexOf(':'))
    case '@request-target':
      return target
    case '@path':
      return query === -1 ? target : target.slice(0, query)
    case '@query':
      return query === -1 ? '?' : target.slice(query)
    default:
      return undefined
  }
}

function queryParameter({ target }: SignedMessage, parameters: Item[1]): ComponentValue {
  const name = parameters.get('name')
  if (typeof name !== 'string' || parameters.size !== 1) {
    return { ok: false, problem: '"@query-param" must have the parameter name and no other' }
  }
  const query = target.includes('?') ? target.slice(target.indexOf('?') + 1) : ''
  const values = [...new URLSearchParams(query)].filter(([key]) => reencode(key) === name)
  const [only, ...others] = values
  if (only === undefined || others.length > 0) {
    return {
      ok: false,
      problem: '"@query-param" must name a query parameter that occurs exactly once',
    }
  }
  return ok(reencode(only[1]))
}

/** The form-urlencoded set of RFC 9421 section 2.2.8: `encodeURIComponent`, plus characters that it does not encode. */
function reencode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function fieldValue(
  name: string,
  lines: readonly string[],
  parameters: Item[1],
  message: SignedMessage,
): ComponentValue {
  const combined = combinedValue(lines)
  if (!safeValue.test(combined)) return { ok: false, problem: `"${name}" is not ASCII` }
  if (parameters.size === 0) return ok(combined)
  for (const [key, value] of parameters) {
    const known = key === 'key' ? typeof value === 'string' : key === 'sf' || key === 'bs'
    if (!known || (key !== 'key' && value !== true)) {
      return { ok: false, problem: `"${name}" has an unknown parameter` }
    }
  }
  if (parameters.has('bs')) return byteSequences(name, lines, parameters, message)
  return structured(name, combined, parameters.get('key'))
}

function byteSequences(
  name: string,
  lines: readonly string[],
  parameters: Item[1],
  message: SignedMessage,
): ComponentValue {
  if (parameters.size > 1) return { ok: false, problem: `"${name}" combines bs with sf or key` }
  if (message.fieldsMerged)
    return { ok: false, problem: `"${name}";bs requires separate field lines` }
  return ok(serializeByteSequences(lines.map(encodeUtf8)))
}

function structured(name: string, combined: string, key: unknown): ComponentValue {
  if (!dictionaryFields.has(name))
    return { ok: false, problem: `"${name}" has no known structured type` }
  const dictionary = parseStrictDictionary(combined)?.members
  if (dictionary === undefined)
    return { ok: false, problem: `"${name}" is not a Structured Fields dictionary` }
  if (typeof key !== 'string') return ok(serializeDictionary(new Map(dictionary)))
  const member = dictionary.get(key)
  if (member === undefined) return { ok: false, problem: `"${name}" has no member with that key` }
  return ok(isInnerList(member) ? serializeInnerList(member) : serializeItem(member))
}
