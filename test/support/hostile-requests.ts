import type { HttpRequest } from '../../src/entry-adapter.js'
import type * as Library from '../../src/index.js'
import type { Handler, ServerOptions } from '../../src/index.js'
import { jwkOf, testKey } from './keys.js'
import { contentDigest } from './sign.js'

type Line = readonly [name: string, value: string]

/** The server that a hostile request is sent to; `authAtOrigin` has a grant endpoint without a path. */
export type HostileTarget = 'auth' | 'authAtOrigin' | 'resources'

/**
 * A request of at most 64 KiB by a stranger: its signature fields are well formed, no signature is valid, and it makes
 * the server work as much as possible.
 */
export interface HostileRequest {
  readonly name: string
  readonly server: HostileTarget
  /** Variants of the request, which differ in their key. */
  readonly variants: readonly HttpRequest[]
}

interface Parts {
  readonly name: string
  readonly server?: HostileTarget
  readonly target?: string
  /** Components that each signature covers in addition to the required ones. */
  readonly components?: readonly string[]
  readonly labels?: number
  /** Parameters of each signature in addition to the required ones. */
  readonly parameters?: string
  readonly lines?: readonly Line[]
  readonly body?: string
  readonly keyid?: string
}

const junkSignature = `:${Buffer.alloc(64, 7).toString('base64')}:`
const targets = { auth: '/auth', authAtOrigin: '/', resources: '/op/incoming-payments' }
const token = `GNAP opa_${'A'.repeat(30)}.${'b'.repeat(43)}`

function list<Item>(count: number, item: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => item(index))
}

function fill(piece: string, length: number): string {
  return piece.repeat(Math.max(0, Math.floor(length / piece.length)))
}

/** Returns lines of a field with these members, of `length` characters in total. */
function fieldLines(name: string, length: number, member: (index: number) => string): Line[] {
  const lines: Line[] = []
  let line = ''
  for (let index = 0, left = length; left > 0; index++) {
    const next = member(index)
    left -= next.length + 2
    if (line.length + next.length > 8_000) {
      lines.push([name, line])
      line = ''
    }
    line += line === '' ? next : `, ${next}`
  }
  return [...lines, [name, line]]
}

/** Returns the request at a time in seconds. */
function requestOf(parts: Parts, at: number): HttpRequest {
  const { server = 'resources', components = [], labels = 4, keyid = 'k' } = parts
  const body = Buffer.from(parts.body ?? '')
  const lines: Line[] = [...(parts.lines ?? [])]
  const required = ['"@method"', '"@target-uri"']
  if (server === 'resources') {
    lines.push(['authorization', token])
    required.push('"authorization"')
  }
  if (body.length > 0) {
    const digests = [contentDigest(body, 'sha-512'), contentDigest(body, 'sha-256')].join(', ')
    const found = lines.findIndex(([name]) => name === 'content-digest')
    const [, more] = lines[found] ?? []
    if (found !== -1) lines.splice(found, 1)
    lines.push(['content-digest', more === undefined ? digests : `${digests}, ${more}`])
    lines.push(['content-type', 'application/json'])
    required.push('"content-digest"')
  }
  const covered = [...required, ...components].slice(0, 16).join(' ')
  const parameters = `;created=${at};keyid="${keyid}"${parts.parameters ?? ''}`
  lines.push(...list(labels, (i): Line => ['signature-input', `s${i}=(${covered})${parameters}`]))
  lines.push(...list(labels, (i): Line => ['signature', `s${i}=${junkSignature}`]))
  return { method: 'POST', url: parts.target ?? targets[server], headers: lines, body }
}

/** Returns the size of a request in an HTTP/1.1 message. */
export function sizeOf({ method, url, headers, body }: HttpRequest): number {
  const lines = headers.map(([name, value]) => name.length + value.length + 4)
  return method.length + url.length + 12 + lines.reduce((a, b) => a + b, 0) + 2 + body.length
}

/** Requests whose query, headers or covered components are costly; `size` is that of the costly part. */
function signatureAttacks(size: number): Parts[] {
  const parameters = list(10, (i) => `q${i}=1`).join('&')
  const query = (text: string) => `${targets.resources}?${parameters}&${text}`
  const queryParameters = list(10, (i) => `"@query-param";name="q${i}"`)
  const notes = list(13, (i): Line => [`x-${i}`, 'a'.repeat(Math.min(8_000, size / 13))])
  const keys = list(10, (i) => `"content-digest";key="a${i}"`)
  const long = Math.min(7_900, size)
  return [
    {
      name: 'query of short parameters',
      target: query(fill('a&', size)),
      components: queryParameters,
    },
    {
      name: 'query of escapes, 50 parameters',
      target: query(fill(`${fill('%F0%9F%98%80', size / 50)}&`, size)),
      components: queryParameters,
    },
    {
      name: 'query of escapes',
      target: query(fill('%F0%9F%98%80&', size)),
      components: queryParameters,
    },
    {
      name: 'one long query parameter',
      target: `${query('')}z=${fill('~', size)}`,
      components: ['"@query-param";name="z"', ...queryParameters],
    },
    { name: 'path of escapes', target: `${targets.resources}/${fill('%2', size)}` },
    {
      name: 'members of a dictionary',
      lines: fieldLines('content-digest', long, (i) => `a${i}`),
      components: keys,
    },
    {
      name: 'signature fields that cover themselves',
      components: ['signature', 'signature-input'].flatMap((name) => [
        `"${name}"`,
        `"${name}";sf`,
        `"${name}";bs`,
        `"${name}";key="s0"`,
      ]),
      parameters: `;x="${fill('a', size / 4 - 280)}"`,
    },
    { name: 'labels', lines: fieldLines('signature-input', size, (i) => `a${i}`) },
    { name: 'signatures', lines: fieldLines('signature', size, (i) => `a${i}`) },
    {
      name: 'long list',
      lines: fieldLines('signature-input', size, (i) => `a${i}=(${fill('a ', long)})`),
      labels: 1,
    },
    {
      name: 'parameters',
      lines: fieldLines('signature', size, (i) => `a${i}${fill(';a', long)}`),
      labels: 1,
    },
    {
      name: 'decimal parameters of a long label',
      lines: [
        [
          'signature-input',
          `${'a'.repeat(long / 2)}${list(long / 16, (i) => `;a${i}=1.0`).join('')}`,
        ],
      ],
      labels: 1,
    },
    {
      name: 'blanks in header values',
      lines: fieldLines('x-a', size, () => ` x${fill(' ', long)}x`),
    },
    { name: 'covered header lines', lines: notes, components: notes.map(([name]) => `"${name}"`) },
    {
      name: 'covered header lines in base64',
      lines: notes,
      components: notes.map(([name]) => `"${name}";bs`),
    },
    {
      name: 'blanks in Authorization',
      server: 'auth',
      lines: [['authorization', `GNAP${fill(' ', long)}"`]],
      components: ['"authorization"'],
    },
  ]
}

/** JSON texts of some length that cost much to parse or to check. */
const costlyJson: Readonly<Record<string, (length: number) => string>> = {
  'empty arrays': (length) => `[${fill('[],', length)}0]`,
  'nested arrays': (length) => `[${fill(`${'['.repeat(20)}${']'.repeat(20)},`, length)}0]`,
  'deep nesting': (length) => '['.repeat(length / 2) + ']'.repeat(length / 2),
  'empty objects': (length) => `[${fill('{},', length)}0]`,
  members: (length) => `{${list(length / 10, (i) => `"m${i}":1`).join(',')}}`,
  'numeric members': (length) => `{${list(length / 14, (i) => `"${i * 7919}":1`).join(',')}}`,
  'objects of different shapes': (length) =>
    `[${list(length / 14, (i) => `{"m${i}":{}}`).join(',')}]`,
  digits: (length) => `[${fill('1,', length)}0]`,
  'numbers between two doubles': (length) => `[${fill('9007199254740993,', length)}0]`,
  'long numbers': (length) => `[${fill(`0.${'1'.repeat(760)},`, length)}0]`,
  strings: (length) => `[${fill('"",', length)}0]`,
  escapes: (length) => `"${fill('\\u00e9', length)}"`,
  'characters of four bytes': (length) => `"${fill('😀', length / 2)}"`,
}

function bodyAttacks(): Parts[] {
  const client = '"client":"https://nobody.example"'
  // Lengths below and above the limit on the number of values.
  return Object.entries(costlyJson).flatMap(([name, json]) =>
    [2_000, 8_000, 17_000, 60_000].map((length) => ({
      name: `body of ${name}, ${length} bytes`,
      server: 'auth' as const,
      body: `{${client},"x":${json(length)}}`,
    })),
  )
}

/** Requests with a key of the stranger's own, so that the server verifies their signatures. */
function ownKey(index: number): { readonly keyid: string; readonly client: string } {
  const key = testKey(`stranger ${index}`)
  return { keyid: key.kid, client: `"client":{"jwk":${JSON.stringify(jwkOf(key))}}` }
}

function keyAttacks(index: number): Parts[] {
  const { keyid, client } = ownKey(index)
  const small = { keyid, body: `{${client}}` }
  const covering = (length: number) => {
    const lines = list(2, (i): Line => [`x-${i}`, 'a'.repeat(length / 2)])
    return { lines, components: lines.map(([name]) => `"${name}"`) }
  }
  const everything = (length: number, form: string) => {
    const { lines, components } = covering(length)
    const member = (i: number) => `a${i}`.padEnd(14, '.')
    const members = list(120, member).join(',')
    return {
      keyid,
      lines: [...lines, ['content-digest', members] as const],
      parameters: `;x="${fill('a', 150)}"`,
      components: [
        ...components,
        `"content-digest"${form}`,
        ...list(2, (i) => `"content-digest";key="${member(i)}"`),
      ],
      body: `{${client},"x":${costlyJson['numbers between two doubles']?.(8_300)},"y":"${fill('é', 21_000)}"}`,
    }
  }
  const query = `?${list(4, (i) => `q${i}=1`).join('&')}&z=${fill('~', 500)}&${fill(`${'%41'.repeat(24)}&`, 3_300)}`
  const parameters = [...list(4, (i) => `"@query-param";name="q${i}"`), '"@query-param";name="z"']
  const asked = everything(2, ';key="sha-512"')
  return [
    { name: 'own key', server: 'auth', ...small },
    { name: 'own key at the origin', server: 'authAtOrigin', ...small },
    { name: 'own key, long base', server: 'auth', ...small, ...covering(7_600) },
    {
      name: 'own key at the origin, long base',
      server: 'authAtOrigin',
      ...small,
      ...covering(7_600),
    },
    {
      name: 'own key at the origin, everything',
      server: 'authAtOrigin',
      ...everything(300, ';sf'),
    },
    {
      name: 'own key, everything and a query',
      server: 'auth',
      ...asked,
      target: targets.auth + query,
      components: [...asked.components, ...parameters],
    },
  ]
}

/** Returns the hostile requests at a time in seconds; those with a key in as many variants. */
export function hostileRequests(at: number, variants = 1): readonly HostileRequest[] {
  const sizes = [1_000, 1_900, 3_900, 7_900, 15_000, 50_000]
  const alone = [
    ...sizes.flatMap((size) =>
      signatureAttacks(size).map((parts) => ({ ...parts, name: `${parts.name}, ${size} bytes` })),
    ),
    ...bodyAttacks(),
  ].map((parts) => ({ ...parts, variants: [requestOf(parts, at)] }))
  const keyed = keyAttacks(0).map(({ name, server }, index) => ({
    name,
    server,
    variants: list(variants, (variant) => requestOf(keyAttacks(variant)[index] as Parts, at)),
  }))
  return [...alone, ...keyed].map(({ name, server = 'resources', variants }) => ({
    name,
    server,
    variants,
  }))
}

/** Creates servers that know no key and no grant. */
export function serversWithoutKeys(
  library: typeof Library,
  options: Pick<ServerOptions, 'store' | 'clock'>,
): Readonly<Record<HostileTarget, Handler>> {
  const grantEndpoint = 'https://wallet.example/auth'
  const clientKeys = { find: async () => undefined }
  const consentUrl = 'https://wallet.example/consent'
  const authorizationServerAt = (grantEndpoint: string) =>
    library.createAuthorizationServer({ ...options, clientKeys, consentUrl, grantEndpoint })
  const auth = authorizationServerAt(grantEndpoint)
  const resources = library.createResourceServer({
    ...options,
    baseUrl: 'https://wallet.example/op',
    grants: auth,
    walletAddresses: { find: async () => undefined },
    paymentMethods: library.ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: Buffer.alloc(32, 7),
    }),
  })
  return {
    auth: auth.handle,
    authAtOrigin: authorizationServerAt('https://wallet.example').handle,
    resources: resources.handle,
  }
}
