import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { SignedMessage } from '../../../src/protocol/http-signature/components.js'
import { readDialect } from '../../../src/protocol/http-signature/dialects.js'
import {
  type Dictionary,
  parseStrictDictionary,
} from '../../../src/protocol/http-signature/dictionary.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { runs } from '../../support/runs.js'
import { type Sdk, sdkSignedRequest, sdks } from '../../support/sdk-signatures.js'
import type { SignOptions } from '../../support/sign.js'
import {
  messageCreated as created,
  messageKey as key,
  lineOf,
  messageOf,
  problemOf,
  profileFreshness,
  signedMessage,
  signOptions,
  withFields,
} from '../../support/signed-message.js'

const now = created * 1000
const body = '{"walletAddress":"https://wallet.example/bob"}'
const bytes = Buffer.alloc(64, 7)
const base64 = bytes.toString('base64')

const phpParameters = `keyid="shop-key";created=${created}`
const rustParameters = `created=${created};keyid="shop-key"`

/** Returns the two fields as each SDK writes them. */
const exact: Readonly<Record<Sdk, Fields>> = {
  php: {
    input: `sig1=("@method" "@target-uri" "authorization");${phpParameters}`,
    signature: `sig1=${base64}`,
  },
  rust: {
    input: `sig1=(@method @target-uri content-type authorization);${rustParameters}`,
    signature: base64,
  },
}

interface Fields {
  readonly input: string
  readonly signature: string
}

function read({ input, signature }: Fields) {
  return readDialect(input, signature)
}

function inspect(message: SignedMessage, strict = false) {
  return inspectSignatures(message, now, { ...profileFreshness, strict })
}

async function accepted(message: SignedMessage, strict = false): Promise<boolean> {
  const inspection = await inspect(message, strict)
  if (!inspection.ok) return false
  return (await verifyCandidates(inspection.value, key)) !== undefined
}

function messageBy(sdk: Sdk, options: Partial<SignOptions> = {}): SignedMessage {
  return messageOf(sdkSignedRequest(sdk, signOptions(options)))
}

function fieldsOf(message: SignedMessage): Fields {
  return { input: lineOf(message, 'signature-input'), signature: lineOf(message, 'signature') }
}

function withPair(message: SignedMessage, { input, signature }: Fields): SignedMessage {
  return withFields(message, { 'signature-input': [input], signature: [signature] })
}

/** Fields outside of every dialect, each derived from those that an SDK writes. */
function neighbours({ input, signature }: Fields): readonly (readonly [string, Fields])[] {
  return [
    ['no input', { input: '', signature }],
    ['no signature', { input, signature: '' }],
    ['a tab between components', { input: input.replace(' ', '\t'), signature }],
    ['a comma between components', { input: input.replace(' ', ', '), signature }],
    ['an upper-case component', { input: input.replace('@method', '@Method'), signature }],
    ['an upper-case parameter', { input: input.replace('created', 'Created'), signature }],
    ['an upper-case label', { input: input.replace('sig1', 'Sig1'), signature }],
    ['another label', { input: input.replace('sig1', 'sig2'), signature }],
    [
      'another label in both',
      { input: input.replace('sig1', 'sig2'), signature: signature.replace('sig1', 'sig2') },
    ],
    ['no label', { input: input.replace('sig1=', ''), signature }],
    ['two labels', { input: `${input}, ${input.replace('sig1', 'sig2')}`, signature }],
    ['the label twice', { input: `${input}, ${input}`, signature: `${signature}, ${signature}` }],
    ['two signatures', { input, signature: `${signature}, ${signature}` }],
    ['a quoted label', { input: input.replace('sig1', '"sig1"'), signature }],
    ['no components', { input: input.replace(/\(.*\)/, '()'), signature }],
    ['one unquoted component', { input: input.replace('"@method"', '@method'), signature }],
    ['one quoted component', { input: input.replace(' @target-uri', ' "@target-uri"'), signature }],
    ['a component in apostrophes', { input: input.replace(/"?@method"?/, "'@method'"), signature }],
    [
      'a component with a parameter',
      { input: input.replace(/(authorization"?)/, '$1;sf'), signature },
    ],
    ['a component of a request', { input: input.replace(/(@method"?)/, '$1;req'), signature }],
    ['another component', { input: input.replace('authorization', 'date'), signature }],
    ['@authority', { input: input.replace('@target-uri', '@authority'), signature }],
    [
      '@signature-params',
      { input: input.replace('authorization', '@signature-params'), signature },
    ],
    ['created twice', { input: `${input};created=${created}`, signature }],
    ['keyid twice', { input: `${input};keyid="shop-key"`, signature }],
    ['an alg', { input: `${input};alg="ed25519"`, signature }],
    ['a nonce', { input: `${input};nonce="n"`, signature }],
    ['an expiry', { input: `${input};expires=${created + 60}`, signature }],
    ['a tag', { input: `${input};tag="gnap"`, signature }],
    ['no created', { input: input.replace(/;created=\d+/, ''), signature }],
    ['no keyid', { input: input.replace(/;keyid="[^"]*"/, ''), signature }],
    ['no parameters', { input: input.replace(/;.*/, ''), signature }],
    ['a decimal created', { input: input.replace(/(created=\d+)/, '$1.0'), signature }],
    ['created with a leading zero', { input: input.replace('created=', 'created=0'), signature }],
    ['created of 16 digits', { input: input.replace('created=', 'created=123456'), signature }],
    ['a quoted created', { input: input.replace(/created=(\d+)/, 'created="$1"'), signature }],
    ['created as a Date', { input: input.replace('created=', 'created=@'), signature }],
    ['an unquoted keyid', { input: input.replace('"shop-key"', 'shop-key'), signature }],
    ['an empty keyid', { input: input.replace('shop-key', ''), signature }],
    ['a keyid with an escape', { input: input.replace('shop-key', 'shop\\"key'), signature }],
    ['a keyid beyond ASCII', { input: input.replace('shop-key', 'shöp-key'), signature }],
    ['both colons', { input, signature: `sig1=:${base64}:` }],
    ['colons without a label', { input, signature: `:${base64}:` }],
    ['a quoted signature', { input, signature: signature.replace(base64, `"${base64}"`) }],
    ['a signature parameter', { input, signature: `${signature};a=1` }],
    ['no padding', { input, signature: signature.replace('==', '') }],
    ['stray bits', { input, signature: signature.replace(/.==$/, 'x==') }],
    ['the base64url alphabet', { input, signature: signature.replace('Bw', '-_') }],
    ['63 bytes', { input, signature: signature.replace(base64, bytesOf(63)) }],
    ['65 bytes', { input, signature: signature.replace(base64, bytesOf(65)) }],
    ['128 bytes', { input, signature: signature.replace(base64, bytesOf(128)) }],
    ['hexadecimal', { input, signature: signature.replace(base64, bytes.toString('hex')) }],
    ['the word undefined, as old clients write it', { input: 'undefined', signature }],
  ]
}

function listOf(dictionary: Dictionary | undefined) {
  return dictionary?.get('sig1')?.value
}

function bytesOf(length: number): string {
  return Buffer.alloc(length, 7).toString('base64')
}

describe('the fields of the PHP SDK', () => {
  test('are parsed into components, parameters and bytes', () => {
    const fields = read(exact.php)
    const list = `("@method" "@target-uri" "authorization");created=${created};keyid="shop-key"`
    expect(listOf(fields?.inputs)).toEqual(listOf(parseStrictDictionary(`sig1=${list}`)))
    expect(fields?.signatures).toEqual(parseStrictDictionary(`sig1=:${base64}:`))
    expect(fields?.inputs.get('sig1')?.text).toBe(exact.php.input.slice('sig1='.length))
  })

  test('may have created before keyid', () => {
    const input = exact.php.input.replace(phpParameters, rustParameters)
    expect(input).not.toBe(exact.php.input)
    const fields = read({ ...exact.php, input })
    expect(fields?.inputs.get('sig1')?.text).toBe(input.slice('sig1='.length))
  })
})

describe('the fields of the Rust SDK', () => {
  test('are parsed like standard fields, and keep the spelling of the list', () => {
    const fields = read(exact.rust)
    const list = `("@method" "@target-uri" "content-type" "authorization");${rustParameters}`
    expect(listOf(fields?.inputs)).toEqual(listOf(parseStrictDictionary(`sig1=${list}`)))
    expect(fields?.signatures).toEqual(parseStrictDictionary(`sig1=:${base64}:`))
    expect(fields?.inputs.get('sig1')?.text).toBe(exact.rust.input.slice('sig1='.length))
  })
})

describe.each(sdks)('the dialect of %s', (sdk) => {
  const { input, signature } = exact[sdk]

  test('is not valid Structured Fields, so each message has only one interpretation', () => {
    expect(parseStrictDictionary(signature)).toBeUndefined()
    expect(parseStrictDictionary(input) === undefined).toBe(sdk === 'rust')
  })

  test.each([
    ['a GET', { method: 'GET' }],
    ['a GET with a token', { method: 'GET', token: 'opa_1.2' }],
    ['a POST with a body', { body }],
    ['a POST with a body and a token', { body, token: 'opa_1.2' }],
    ['the URL of an origin with a trailing slash', { url: 'https://wallet.example/' }],
    ['the URL of an origin without a trailing slash', { url: 'https://wallet.example' }],
    ['a query', { url: 'https://wallet.example/op/incoming-payments?a=%7e&b=c+d' }],
    ['components in another order', { components: ['"@target-uri"', '"@method"'] }],
  ] as const)('verifies %s, but not in strict mode', async (_, options) => {
    const message = messageBy(sdk, options)
    expect(await accepted(message)).toBe(true)
    expect(await accepted(message, true)).toBe(false)
  })

  test('yields a candidate like that of a standard signature', async () => {
    const inspection = await inspect(messageBy(sdk, { body, token: 'opa_1.2' }))
    const digest = createHash('sha512').update(body).digest('base64')
    const lines: Readonly<Record<string, string>> = {
      '@method': 'POST',
      '@target-uri': 'https://wallet.example/op/incoming-payments',
      authorization: 'GNAP opa_1.2',
      'content-digest': `sha-512=:${digest}:`,
      'content-length': String(body.length),
      'content-type': 'application/json',
    }
    const order =
      sdk === 'php'
        ? Object.keys(lines)
        : [
            '@method',
            '@target-uri',
            'content-type',
            'authorization',
            'content-digest',
            'content-length',
          ]
    const last =
      sdk === 'php'
        ? `(${order.map((name) => `"${name}"`).join(' ')});${phpParameters}`
        : `(${order.join(' ')});${rustParameters}`
    expect(inspection).toEqual({
      ok: true,
      value: [
        {
          keyid: 'shop-key',
          createdAt: now,
          signature: expect.any(Uint8Array),
          bases: expect.any(Function),
        },
      ],
    })
    const [candidate] = inspection.ok ? inspection.value : []
    expect(candidate?.bases()).toEqual([
      [...order.map((name) => `"${name}": ${lines[name]}`), `"@signature-params": ${last}`].join(
        '\n',
      ),
    ])
  })

  test('is read with one attempt for each pattern', () => {
    const attempts = [vi.spyOn(RegExp.prototype, 'test'), vi.spyOn(RegExp.prototype, 'exec')]
    const fields = read({ input, signature })
    const calls = attempts.flatMap(({ mock }) => mock.contexts.map(String))
    vi.restoreAllMocks()
    expect(fields).toBeDefined()
    expect(new Set(calls).size).toBe(calls.length)
  })

  test('is refused with one additional byte at any position', () => {
    expect(read({ input, signature })).toBeDefined()
    const more = ['"', ' ', '\t', ':', '=', ';', ',', '(', ')', '?', '\n', '-', '_', '*', 'é']
    for (const byte of more) {
      for (let at = 0; at <= signature.length; at++) {
        const longer = signature.slice(0, at) + byte + signature.slice(at)
        expect(read({ input, signature: longer }), longer).toBeUndefined()
      }
      for (let at = 0; at <= input.length; at++) {
        // An additional byte inside the keyid makes another valid keyid.
        const [start, end] = [input.indexOf('keyid="') + 7, input.lastIndexOf('"')]
        if (at >= start && at <= end && !'"\t\né'.includes(byte)) continue
        const longer = input.slice(0, at) + byte + input.slice(at)
        expect(read({ input: longer, signature }), longer).toBeUndefined()
      }
    }
  })

  test('is refused with any one byte removed', () => {
    for (let at = 0; at < signature.length; at++) {
      const shorter = signature.slice(0, at) + signature.slice(at + 1)
      expect(read({ input, signature: shorter }), shorter).toBeUndefined()
    }
    const values = /keyid="([^"]*)"|created=(\d+)/g
    const inValues = [...input.matchAll(values)].flatMap(({ index, 0: text }) => {
      const start = index + text.search(/(?<=keyid=")|(?<=created=)/)
      const end = index + text.length - (text.endsWith('"') ? 1 : 0)
      return Array.from({ length: end - start }, (_, offset) => start + offset)
    })
    expect(inValues).toHaveLength('shop-key'.length + String(created).length)
    for (let at = 0; at < input.length; at++) {
      if (inValues.includes(at)) continue
      const shorter = input.slice(0, at) + input.slice(at + 1)
      expect(read({ input: shorter, signature }), shorter).toBeUndefined()
    }
  })

  test.each(
    neighbours(exact[sdk]).filter(
      ([, fields]) => fields.input !== input || fields.signature !== signature,
    ),
  )('is refused with %s', (_, fields) => {
    expect(read(fields)).toBeUndefined()
  })

  test('is refused with a field of the other dialect or a standard field', () => {
    const other = exact[sdk === 'php' ? 'rust' : 'php']
    expect(read({ input, signature: other.signature })).toBeUndefined()
    expect(read({ input: other.input, signature })).toBeUndefined()
    expect(read({ input, signature: `sig1=:${base64}:` })).toBeUndefined()
  })

  test('must cover the same components as a standard signature', async () => {
    const problems = async (components: readonly string[], options: Partial<SignOptions> = {}) =>
      problemOf(
        await inspect(
          messageBy(sdk, { ...options, components: components.map((name) => `"${name}"`) }),
        ),
      )
    expect(await problems(['@method'])).toBe('@target-uri is not covered')
    expect(await problems(['@target-uri'])).toBe('@method is not covered')
    expect(await problems(['@method', '@target-uri', '@method'])).toBe('@method is covered twice')
    const authorization = await problems(['@method', '@target-uri'], { token: 'opa_1.2' })
    expect(authorization).toBe('authorization is not covered')
    const digest = await problems(['@method', '@target-uri'], { body })
    expect(digest).toBe('content-digest is not covered')
    const many = Array.from({ length: 17 }, () => '@method')
    expect(await problems(many)).toBe('more than 16 components are covered')
    const absent = await problems(['@method', '@target-uri', 'authorization'])
    expect(absent).toBe('"authorization" is not in the request')
  })

  test.each([
    ['too old', -301, 'created is too long ago'],
    ['too early', 61, 'created is in the future'],
  ])('is refused when it is %s', async (_, seconds, expected) => {
    expect(problemOf(await inspect(messageBy(sdk, { created: created + seconds })))).toBe(expected)
    const sign = Math.sign(seconds)
    expect(await accepted(messageBy(sdk, { created: created + seconds - sign }))).toBe(true)
  })

  test('is refused with a digest of another body', async () => {
    const message = { ...messageBy(sdk, { body }), body: Buffer.from(body.replace('bob', 'eve')) }
    expect(problemOf(await inspect(message))).toMatch(/digest/i)
  })

  test('is refused beside another signature', async () => {
    const message = messageBy(sdk)
    const standard = signedMessage({ label: 'sig2' })
    for (const name of ['signature-input', 'signature']) {
      for (const lines of [
        [lineOf(message, name), lineOf(standard, name)],
        [lineOf(standard, name), lineOf(message, name)],
      ]) {
        expect(await accepted(withFields(message, { [name]: lines }))).toBe(false)
      }
    }
    const both = {
      'signature-input': [lineOf(message, 'signature-input'), lineOf(standard, 'signature-input')],
      signature: [lineOf(message, 'signature'), lineOf(standard, 'signature')],
    }
    expect(await accepted(withFields(message, both))).toBe(false)
  })

  test('does not verify as the other dialect or as a standard signature', async () => {
    const message = messageBy(sdk, { components: ['"@method"', '"@target-uri"'] })
    const { input, signature } = fieldsOf(message)
    const [, text = ''] = /([A-Za-z0-9+/]+==)$/.exec(signature) ?? []
    const quoted = input.replace(/\(.*\)/, '("@method" "@target-uri")')
    const bare = input.replace(/\(.*\)/, '(@method @target-uri)')
    const parameters = [phpParameters, rustParameters]
    const spellings = [quoted, bare].flatMap((list) =>
      parameters.map((each) => list.replace(/;.*/, `;${each}`)),
    )
    const verdicts = []
    for (const spelling of spellings) {
      for (const each of [`sig1=:${text}:`, `sig1=${text}`, text]) {
        const fields = { input: spelling, signature: each }
        if (await accepted(withPair(message, fields))) verdicts.push(fields)
      }
    }
    // The PHP dialect has the standard signature base, so the same bytes may appear between colons.
    const standard = { input, signature: `sig1=:${text}:` }
    expect(verdicts).toEqual(
      sdk === 'php' ? [standard, { input, signature }] : [{ input, signature }],
    )
  })

  test('is refused with any byte of its two fields changed, for any message', async () => {
    const requests = fc.record({
      method: fc.constantFrom('GET', 'POST', 'DELETE'),
      path: fc.webPath(),
      token: fc.option(fc.stringMatching(/^[A-Za-z0-9._-]{1,40}$/), { nil: undefined }),
      body: fc.option(fc.json(), { nil: undefined }),
    })
    const change = fc.record({
      name: fc.constantFrom('signature-input', 'signature'),
      at: fc.nat(),
      byte: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    })
    await fc.assert(
      fc.asyncProperty(
        requests,
        change,
        async ({ method, path, token, body }, { name, at, byte }) => {
          const message = messageBy(sdk, {
            method,
            url: `https://wallet.example/op${path}`,
            ...(token === undefined ? {} : { token }),
            ...(body === undefined ? {} : { body }),
          })
          expect(await accepted(message)).toBe(true)
          const line = lineOf(message, name)
          const index = at % line.length
          const changed = line.slice(0, index) + byte + line.slice(index + 1)
          const verdict = await accepted(withFields(message, { [name]: [changed] }))
          expect(verdict, changed).toBe(changed === line)
        },
      ),
      { numRuns: runs(300) },
    )
  })
})

test('each malformed variant differs from the output of at least one SDK', () => {
  const [php, rust] = sdks.map((sdk) =>
    neighbours(exact[sdk]).map(
      ([, { input, signature }]) =>
        input !== exact[sdk].input || signature !== exact[sdk].signature,
    ),
  )
  expect(php?.length).toBeGreaterThan(50)
  expect(php?.every((differs, index) => differs || rust?.[index])).toBe(true)
})

describe('the dialect grammar', () => {
  test('refuses long fields without backtracking', () => {
    const [long, longer] = [50_000, 200_000].map((length) => '@method '.repeat(length / 8))
    const tries = [long, longer].flatMap((names = '') => [
      { input: `sig1=(${names}`, signature: base64 },
      { input: `sig1=("${names.replaceAll(' ', '" "')}`, signature: `sig1=${base64}` },
      { input: exact.php.input, signature: `sig1=${names.replaceAll(/[^a-z]/g, 'A')}` },
    ])
    for (const fields of tries) expect(read(fields)).toBeUndefined()
  })
})
