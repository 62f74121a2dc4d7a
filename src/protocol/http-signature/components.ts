import { type Item, serializeItem } from 'structured-headers'
import { ok, type Problem, type Result } from '../../core/decision.js'
import { type Dictionary, dictionaryText, memberText, parseStrictDictionary } from './dictionary.js'

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

/** Parses a field of the message as a dictionary. An absent field is an empty dictionary. */
export type DictionaryReader = (name: string) => Dictionary | undefined

/** Returns a function that parses each field at most once, however many signatures cover its members. */
export function dictionaryReader({ fields }: SignedMessage): DictionaryReader {
  const parsed = new Map<string, Dictionary | undefined>()
  return (name) => {
    if (parsed.has(name)) return parsed.get(name)
    const dictionary = parseStrictDictionary(combinedValue(fields.get(name) ?? []))
    parsed.set(name, dictionary)
    return dictionary
  }
}

/** Returns the value of a covered component. `identity` is what `identityOf` returns for the component. */
export type ComponentReader = (component: Item, identity: string) => ComponentValue

/**
 * Returns a function that reads components of a message. It computes the value of each component with parameters at
 * most once, however many signatures cover it.
 */
export function componentReader(
  message: SignedMessage,
  dictionaryOf: DictionaryReader,
): ComponentReader {
  const sources = { message, dictionaryOf, queryParameter: queryReader(message.target) }
  const parametrized = new Map<string, ComponentValue>()
  return (component, identity) => {
    if (component[1].size === 0) return componentValue(component, sources)
    const known = parametrized.get(identity)
    if (known !== undefined) return known
    const value = componentValue(component, sources)
    parametrized.set(identity, value)
    return value
  }
}

/** Parameters identify a component regardless of their order (RFC 9421 section 2). */
export function identityOf(component: Item): string {
  const [name, parameters] = component
  if (parameters.size === 0 && typeof name === 'string') return name
  if (parameters.size <= 1) return serializeItem(component)
  const sorted = new Map([...parameters].sort(([a], [b]) => (a < b ? -1 : 1)))
  return serializeItem([name, sorted])
}

/** The sources of the values of components. */
interface Sources {
  readonly message: SignedMessage
  readonly dictionaryOf: DictionaryReader
  readonly queryParameter: QueryReader
}

/** The maximum number of characters in the values that one signature covers. */
export const coveredLengthMax = 8 * 1024

/** Printable ASCII and tabs, which cannot add lines to a signature base. */
const safeValue = /^[\x20-\x7e\t]*$/
const fieldName = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/
const dictionaryFields = new Set(['content-digest', 'signature', 'signature-input'])

function componentValue([name, parameters]: Item, sources: Sources): ComponentValue {
  if (typeof name !== 'string')
    return { ok: false, problem: 'a component identifier is not a String' }
  if (parameters.has('req'))
    return { ok: false, problem: `"${name}" has the parameter req, which only responses may use` }
  if (name.startsWith('@')) {
    if (name === '@query-param') return queryParameter(parameters, sources)
    if (parameters.size > 0) return { ok: false, problem: `"${name}" has an unknown parameter` }
    const value = derived(name, sources.message)
    return value === undefined
      ? { ok: false, problem: `"${name}" is not a component of a request` }
      : ok(value)
  }
  if (!fieldName.test(name))
    return { ok: false, problem: `"${name}" is not a lower-case field name` }
  const lines = sources.message.fields.get(name)
  if (lines === undefined) return { ok: false, problem: `"${name}" is not in the request` }
  return fieldValue(name, lines, parameters, sources)
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

function queryParameter(parameters: Item[1], sources: Sources): ComponentValue {
  const name = parameters.get('name')
  if (typeof name !== 'string' || parameters.size !== 1) {
    return { ok: false, problem: '"@query-param" must have the parameter name and no other' }
  }
  const value = sources.queryParameter(name)
  if (value !== undefined) return ok(value)
  return {
    ok: false,
    problem: `"@query-param" must name a parameter that occurs exactly once, of at most ${queryParametersMax}`,
  }
}

function fieldValue(
  name: string,
  lines: readonly string[],
  parameters: Item[1],
  { message, dictionaryOf }: Sources,
): ComponentValue {
  const combined = combinedValue(lines)
  if (combined.length > coveredLengthMax) return { ok: false, problem: `"${name}" is too long` }
  if (!safeValue.test(combined)) return { ok: false, problem: `"${name}" is not ASCII` }
  if (parameters.size === 0) return ok(combined)
  for (const [key, value] of parameters) {
    const known = key === 'key' ? typeof value === 'string' : key === 'sf' || key === 'bs'
    if (!known || (key !== 'key' && value !== true)) {
      return { ok: false, problem: `"${name}" has an unknown parameter` }
    }
  }
  if (parameters.has('bs')) return byteSequences(name, lines, parameters, message)
  return structured(name, dictionaryOf, parameters.get('key'))
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
  return ok(lines.map((line) => `:${btoa(line)}:`).join(', '))
}

function structured(name: string, dictionaryOf: DictionaryReader, key: unknown): ComponentValue {
  if (!dictionaryFields.has(name))
    return { ok: false, problem: `"${name}" has no known structured type` }
  const dictionary = dictionaryOf(name)
  if (dictionary === undefined)
    return { ok: false, problem: `"${name}" is not a Structured Fields dictionary` }
  if (typeof key !== 'string') return ok(dictionaryText(dictionary))
  const member = dictionary.get(key)
  if (member === undefined) return { ok: false, problem: `"${name}" has no member with that key` }
  return ok(memberText(member))
}

/** The maximum number of parameters in a query with a covered parameter. */
export const queryParametersMax = 64

/** Returns the value of a query parameter, or `undefined` unless the parameter occurs exactly once. */
export type QueryReader = (name: string) => string | undefined

/**
 * Reads the query parameters of a request target for `@query-param` (RFC 9421 section 2.2.8): names and values are
 * decoded and encoded again. Parses the query once, at the first call. In a query with more than 64 parameters, it
 * finds none.
 */
export function queryReader(target: string): QueryReader {
  let parameters: ReadonlyMap<string, string | undefined> | undefined
  return (name) => {
    const decoded = decodedName(name)
    if (decoded === undefined) return undefined
    parameters ??= parametersOf(target)
    const value = parameters.get(decoded)
    return value === undefined ? undefined : encode(value)
  }
}

/** Returns each parameter by its decoded name; `undefined` if it occurs more than once. */
function parametersOf(target: string): ReadonlyMap<string, string | undefined> {
  const query = target.includes('?') ? target.slice(target.indexOf('?') + 1) : ''
  const parameters = new Map<string, string | undefined>()
  if (query.split('&', queryParametersMax + 1).length > queryParametersMax) return parameters
  for (const [name, value] of new URLSearchParams(query)) {
    parameters.set(name, parameters.has(name) ? undefined : value)
  }
  return parameters
}

/** Decodes a name in its only valid encoding, so that comparing decoded names is enough. */
function decodedName(name: string): string | undefined {
  try {
    const decoded = decodeURIComponent(name)
    return encode(decoded) === name ? decoded : undefined
  } catch {
    return undefined
  }
}

/** The characters of the form-urlencoded set that `encodeURIComponent` leaves unchanged. */
const escapes: Readonly<Record<string, string>> = {
  '!': '%21',
  "'": '%27',
  '(': '%28',
  ')': '%29',
  '~': '%7E',
}

function encode(text: string): string {
  const encoded = encodeURIComponent(text)
  if (!/[!'()~]/.test(encoded)) return encoded
  return Array.from(encoded, (character) => escapes[character] ?? character).join('')
}
