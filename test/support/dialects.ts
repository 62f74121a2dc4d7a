import type { SignOptions } from './sign.js'

/** How the clients of one language write JSON, URLs and signatures. */
export interface Dialect {
  readonly name: string
  /** JSON text, as its encoder writes it. */
  readonly json: (value: unknown) => string
  /** A value in a query, as it escapes it. */
  readonly query: (value: string) => string
  /** The components that it covers, in its order. */
  readonly components: readonly string[]
  readonly parameters: (kid: string, created: number) => readonly string[]
  readonly label: string
}

const messageOnly = ['"@method"', '"@target-uri"']
const content = ['"content-digest"', '"content-length"', '"content-type"']

export const typescript: Dialect = {
  name: 'TypeScript',
  json: JSON.stringify,
  query: (value) => new URLSearchParams({ x: value }).toString().slice('x='.length),
  components: [...messageOnly, '"authorization"', ...content],
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`],
  label: 'sig1',
}

/** `json.NewEncoder(…).Encode` of a map, and `url.QueryEscape`: where there is no space, as `rawurlencode`. */
export const go: Dialect = {
  name: 'Go',
  json: (value) => `${encode(value, (text) => escaped(text, /[&<>\u2028\u2029]/g), sorted)}\n`,
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.~]/).replaceAll('%20', '+'),
  components: [...messageOnly, '"authorization"', ...content],
  parameters: (kid, created) => [`created=${created}`, `keyid="${kid}"`, 'alg="ed25519"'],
  label: 'sig1',
}

/** `json_encode` without flags, and `http_build_query`. */
export const php: Dialect = {
  name: 'PHP',
  json: (value) =>
    encode(value, (text) => escaped(text, /[^\0-\x7f]/g).replaceAll('/', '\\/'), asTheyAre),
  query: (value) => percentEncoded(value, /[A-Za-z0-9\-_.]/).replaceAll('%20', '+'),
  components: [...content, ...messageOnly, '"authorization"'],
  parameters: (kid, created) => [`keyid="${kid}"`, `created=${created}`],
  label: 'sig1',
}

/** Nobody's in particular: everything in yet another way that the specifications leave open. */
export const unusual: Dialect = {
  name: 'nobody in particular',
  json: (value) => JSON.stringify(value, undefined, '\t'),
  query: (value) =>
    percentEncoded(value, /[A-Za-z0-9\-_.~]/).replace(/%../g, (byte) => byte.toLowerCase()),
  components: [...content, '"authorization"', ...messageOnly].toReversed(),
  parameters: (kid, created) => [
    'tag="gnap"',
    `expires=${created + 60}`,
    'alg="ed25519"',
    `created=${created}`,
    `keyid="${kid}"`,
  ],
  label: 'the-client.s_own*label',
}

export const dialects: readonly Dialect[] = [typescript, go, php, unusual]

/** What `signedRequest` is told beside the request itself. There is no nonce: no published client sends one. */
export function signingAs(
  { components, parameters, label }: Dialect,
  { key, created, token, body }: Pick<SignOptions, 'key' | 'created' | 'token' | 'body'>,
): Pick<SignOptions, 'components' | 'parameters' | 'label'> {
  const missing = [
    ...(token === undefined ? ['"authorization"'] : []),
    ...(body === undefined ? content : []),
  ]
  return {
    components: components.filter((component) => !missing.includes(component)),
    parameters: parameters(key.kid, created),
    label,
  }
}

type Entries = readonly (readonly [name: string, value: unknown])[]

const asTheyAre = (entries: Entries) => entries

/** By the bytes of their names, not by their numbers. */
const sorted = (entries: Entries) => entries.toSorted(([a], [b]) => (a < b ? -1 : 1))

function encode(
  value: unknown,
  write: (text: string) => string,
  order: (entries: Entries) => Entries,
): string {
  if (typeof value === 'string') return write(JSON.stringify(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const inner = (member: unknown) => encode(member, write, order)
  if (Array.isArray(value)) return `[${value.map(inner).join(',')}]`
  const members = order(Object.entries(value)).map(
    ([name, member]) => `${inner(name)}:${inner(member)}`,
  )
  return `{${members.join(',')}}`
}

function escaped(text: string, characters: RegExp): string {
  return text.replace(
    characters,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function percentEncoded(text: string, unreserved: RegExp): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      if (unreserved.test(character)) return character
      return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}
