import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { PublicJwk } from '../../../src/index.js'
import type { SignedMessage } from '../../../src/protocol/http-signature/components.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { startOfTests } from '../../support/clock.js'
import { testKey } from '../../support/keys.js'
import { runs } from '../../support/runs.js'
import { contentDigest, headerOf, type SignOptions, signedRequest } from '../../support/sign.js'
import {
  messageCreated as created,
  messageKey as key,
  lineOf,
  messageOf,
  messageOrigin as origin,
  problemOf,
  profileFreshness,
  signedMessage,
  signOptions,
  withFields,
} from '../../support/signed-message.js'
import { unicodeText } from '../../support/unicode-text.js'

const body = '{"walletAddress":"https://wallet.example/bob"}'
const other = testKey('other')

function inspect(message: SignedMessage, now: number = startOfTests) {
  return inspectSignatures(message, now, profileFreshness)
}

async function problem(message: SignedMessage, now?: number): Promise<string | undefined> {
  return problemOf(await inspect(message, now))
}

async function candidatesOf(message: SignedMessage, now?: number) {
  const inspection = await inspect(message, now)
  if (!inspection.ok) throw new Error(inspection.problem)
  return inspection.value
}

/** Returns whether a signature of the message verifies with this key. */
async function accepts(message: SignedMessage, signer: PublicJwk = key, now?: number) {
  const inspection = await inspect(message, now)
  if (!inspection.ok) return false
  return (await verifyCandidates(inspection.value, signer)) !== undefined
}

/** Returns a message with this `Signature-Input`; inspection does not depend on the signature bytes. */
function messageWithInput(input: string, changes: Partial<SignedMessage> = {}): SignedMessage {
  const [label = 'sig1'] = input.split('=', 1)
  const fields = new Map([
    ['signature-input', [input]],
    ['signature', [`${label}=${someSignature}`]],
  ])
  const target = '/op/incoming-payments'
  return { method: 'GET', origin, target, fields, body: new Uint8Array(), ...changes }
}

const someSignature = `:${Buffer.alloc(64, 7).toString('base64')}:`
const covered = '("@method" "@target-uri")'
const parameters = `;created=${created};keyid="shop-key"`
const goodInput = `sig1=${covered}${parameters}`

/** Returns the message with an additional signature. */
function withSibling(message: SignedMessage, input: string, signature: string, first: boolean) {
  const join = (own: string, sibling: string) => (first ? [sibling, own] : [own, sibling])
  return withFields(message, {
    'signature-input': join(lineOf(message, 'signature-input'), input),
    signature: join(lineOf(message, 'signature'), signature),
  })
}

describe('a correctly signed request', () => {
  test('passes inspection and yields everything that verification needs', async () => {
    const message = signedMessage({ body, token: 'opa_1.2', nonce: 'n-1' })
    const [candidate, ...others] = await candidatesOf(message)
    expect(others).toEqual([])
    expect(candidate).toEqual({
      keyid: 'shop-key',
      createdAt: startOfTests,
      nonce: 'n-1',
      signature: expect.any(Uint8Array),
      bases: expect.any(Function),
    })
    expect(candidate?.bases()).toEqual([
      [
        '"@method": POST',
        '"@target-uri": https://wallet.example/op/incoming-payments',
        '"authorization": GNAP opa_1.2',
        `"content-digest": sha-512=:${createHash('sha512').update(body).digest('base64')}:`,
        `"content-length": ${body.length}`,
        '"content-type": application/json',
        '"@signature-params": ("@method" "@target-uri" "authorization" "content-digest" "content-length" "content-type");keyid="shop-key";created=1795262400;nonce="n-1"',
      ].join('\n'),
    ])
    expect(await accepts(message)).toBe(true)
  })

  test('has no nonce when the signature has none', async () => {
    const [candidate] = await candidatesOf(signedMessage())
    expect(candidate).not.toHaveProperty('nonce')
  })

  const variations: readonly (readonly [string, Partial<SignOptions>])[] = [
    ['a GET without a body', { method: 'GET' }],
    ['a DELETE with a token', { method: 'DELETE', token: 'opa_1.2' }],
    ['a digest by sha-256', { body, digest: 'sha-256' }],
    ['a body that is not UTF-8', { body: Buffer.from([0xff, 0x00, 0xfe]) }],
    ['a query', { url: `${origin}/op/incoming-payments?a=%7e&b=c+d` }],
    ['a custom method', { method: 'PURGE' }],
    ['another label', { label: '*a.b-c_9' }],
    ['a tag', { parameters: [`created=${created}`, 'keyid="shop-key"', 'tag="gnap"'] }],
    ['an alg', { parameters: ['alg="ed25519"', `created=${created}`, 'keyid="shop-key"'] }],
    [
      'an expiry',
      { parameters: [`created=${created}`, `expires=${created + 60}`, 'keyid="shop-key"'] },
    ],
    [
      'an unknown parameter',
      { parameters: [`created=${created}`, 'keyid="shop-key"', 'x=?0', 'y=t;z'] },
    ],
    ['an empty nonce', { nonce: '' }],
    [
      'more components than required',
      {
        headers: [['X-Note', 'a']],
        components: [
          '"@path"',
          '"x-note"',
          '"@method"',
          '"@query"',
          '"@authority"',
          '"@target-uri"',
        ],
      },
    ],
    [
      'a component with parameters',
      {
        body,
        components: [
          '"@method"',
          '"@target-uri"',
          '"content-digest"',
          '"content-digest";key="sha-512"',
        ],
        override: {
          '"content-digest";key="sha-512"': contentDigest(Buffer.from(body), 'sha-512').slice(8),
        },
      },
    ],
  ]

  test.each(variations)('verifies with %s', async (_, options) => {
    const message = signedMessage(options)
    expect(await accepts(message)).toBe(true)
    expect(await accepts(message, other)).toBe(false)
    expect(await accepts(message, { ...other, kid: key.kid })).toBe(false)
    expect(await accepts(message, { ...key, kid: other.kid })).toBe(false)
  })

  test('verifies regardless of the splitting, padding and case of its header lines', async () => {
    const headers = [
      ['X-Note', '  one\t'],
      ['x-empty', ''],
      ['X-NOTE', 'two, three  '],
    ] as const
    const components = ['"@method"', '"@target-uri"', '"x-note"', '"x-empty"']
    const override = { '"x-note"': 'one, two, three', '"x-empty"': '' }
    expect(await accepts(signedMessage({ headers, components, override }))).toBe(true)
  })

  test('verifies when the runtime has joined the header lines', async () => {
    const request = signedRequest(signOptions({ body, nonce: 'n' }))
    expect(await accepts(messageOf({ ...request, headersMerged: true }))).toBe(true)
  })
})

describe('collecting the signature fields', () => {
  test.each([
    ['Signature-Input', { 'signature-input': undefined }],
    ['Signature', { signature: undefined }],
    ['both', { 'signature-input': undefined, signature: undefined }],
  ])('refuses a message without %s', async (_, changes) => {
    expect(await problem(withFields(signedMessage(), changes))).toEqual(expect.any(String))
  })

  test('reads all lines of a field as one dictionary', async () => {
    const message = signedMessage()
    const split = withSibling(
      message,
      `sig2=${covered}${parameters}`,
      `sig2=${someSignature}`,
      true,
    )
    expect(split.fields.get('signature')).toHaveLength(2)
    expect(await candidatesOf(split)).toHaveLength(2)
    expect(await accepts(split)).toBe(true)
  })

  test.each([
    [4, true],
    [5, false],
  ])('limits the number of signatures: %i (accepted: %s)', async (count, allowed) => {
    const labels = Array.from({ length: count }, (_, index) => `s${index}`)
    const message = withFields(messageWithInput(goodInput), {
      'signature-input': [labels.map((label) => `${label}=${covered}${parameters}`).join(', ')],
      signature: [labels.map((label) => `${label}=${someSignature}`).join(', ')],
    })
    expect((await problem(message)) === undefined).toBe(allowed)
  })

  test.each([
    [16, true],
    [17, false],
  ])('limits the number of components: %i (accepted: %s)', async (count, allowed) => {
    const names = Array.from({ length: count - 2 }, (_, index) => `x-${index}`)
    const headers = names.map((name) => [name, 'a'] as const)
    const components = ['"@method"', '"@target-uri"', ...names.map((name) => `"${name}"`)]
    const message = signedMessage({ headers, components })
    expect((await problem(message)) === undefined).toBe(allowed)
    expect(await accepts(message)).toBe(allowed)
  })

  test('accepts a valid signature beside one with too many components', async () => {
    const many = Array.from({ length: 17 }, (_, index) => `"x-${index}"`).join(' ')
    const message = signedMessage()
    const input = `sig2=(${many})${parameters}`
    expect(await accepts(withSibling(message, input, `sig2=${someSignature}`, true))).toBe(true)
  })
})

describe('the syntax of the signature fields', () => {
  const malformedInputs = [
    '',
    'sig1',
    'sig1=',
    `${goodInput},`,
    `sig1=("@method" "@target-uri"${parameters}`,
    `sig1=(@method @target-uri)${parameters}`,
    `sig1="@method @target-uri"${parameters}`,
    `sig1=("@method","@target-uri")${parameters}`,
    `sig1=("@method"\t"@target-uri")${parameters}`,
    `SIG1=${covered}${parameters}`,
    `${covered}${parameters}`,
    `sig1=${covered};created=${created};keyid='shop-key'`,
    `${goodInput}é`,
  ]

  test.each(malformedInputs)('refuses Signature-Input %j', async (input) => {
    const message = withFields(messageWithInput(goodInput), { 'signature-input': [input] })
    expect(await problem(message)).toEqual(expect.any(String))
  })

  test.each([
    ['nothing', ''],
    ['bytes with only the first colon', `sig1=${someSignature.slice(0, -1)}`],
    ['bytes with only the last colon', `sig1=${someSignature.slice(1)}`],
    ['bytes without colons', someSignature],
    ['text', `sig1="${someSignature.slice(1, -1)}"`],
    ['a list', `sig1=(${someSignature})`],
    ['a flag', 'sig1'],
    ['63 bytes', `sig1=:${Buffer.alloc(63).toString('base64')}:`],
    ['65 bytes', `sig1=:${Buffer.alloc(65).toString('base64')}:`],
    ['an empty byte sequence', 'sig1=::'],
    ['characters that decoders ignore', `sig1=${someSignature.replace(':B', ':*B')}`],
    ['the base64url alphabet', `sig1=${someSignature.replaceAll('B', '-')}`],
    ['a trailing comma', `sig1=${someSignature},`],
    ['another label', `sig2=${someSignature}`],
    ['an additional label', `sig1=${someSignature}, sig2=${someSignature}`],
    ['a duplicate label', `sig1=${someSignature}, sig1=${someSignature}`],
  ])('refuses a Signature with %s', async (_, signature) => {
    const message = withFields(messageWithInput(goodInput), { signature: [signature] })
    expect(await problem(message)).toEqual(expect.any(String))
  })

  test('refuses labels of which only some are in both fields', async () => {
    const message = withFields(messageWithInput(goodInput), {
      'signature-input': [`${goodInput}, sig2=${covered}${parameters}`],
      signature: [`sig1=${someSignature}, sig3=${someSignature}`],
    })
    const both = 'a label is in Signature-Input alone, another in Signature alone'
    expect(await problem(message)).toBe(both)
  })

  test.each([
    ['Signature-Input', `${goodInput}, sig2=${covered}${parameters}`, `sig1=${someSignature}`],
    ['Signature', goodInput, `sig1=${someSignature}, sig2=${someSignature}`],
  ])('says that a label is in %s alone', async (name, input, signature) => {
    const fields = { 'signature-input': [input], signature: [signature] }
    const message = withFields(messageWithInput(goodInput), fields)
    expect(await problem(message)).toBe(`a label is in ${name} alone`)
  })

  test.each([
    ['Signature-Input', { 'signature-input': ['sig1='] }],
    ['Signature', { signature: ['sig1='] }],
  ])('names %s if it is malformed', async (name, fields) => {
    const message = withFields(messageWithInput(goodInput), fields)
    expect(await problem(message)).toMatch(new RegExp(`^${name} is not`))
  })

  test('says that there is no signature if both fields are empty', async () => {
    const message = withFields(messageWithInput(goodInput), {
      'signature-input': [''],
      signature: [''],
    })
    expect(await problem(message)).toBe('there is no signature')
  })

  test('accepts a Signature with parameters', async () => {
    const message = signedMessage()
    const signature = `${lineOf(message, 'signature')};note="a"`
    expect(await accepts(withFields(message, { signature: [signature] }))).toBe(true)
  })

  test.each([
    ['in one line', [`${goodInput}, ${goodInput}`], [`sig1=${someSignature}`]],
    ['in two lines', [goodInput, goodInput], [`sig1=${someSignature}`]],
    [
      'with different contents',
      [goodInput, `sig1=("@method")${parameters}`],
      [`sig1=${someSignature}`],
    ],
    ['in both fields', [goodInput, goodInput], [`sig1=${someSignature}`, `sig1=${someSignature}`]],
    [
      'after a Display String that ends in a backslash',
      [`sig1=${covered}${parameters};note=%"\\", sig2=("@method"), sig2=${covered}${parameters}`],
      [`sig1=${someSignature}, sig2=${someSignature}`],
    ],
  ])('refuses a duplicate label: %s', async (_, inputs, signatures) => {
    const message = messageWithInput(goodInput)
    const fields = { 'signature-input': inputs, signature: signatures }
    expect(await problem(withFields(message, fields))).toEqual(expect.any(String))
  })

  test('refuses a label in only one of the fields, even beside a valid signature', async () => {
    const message = signedMessage()
    const input = [lineOf(message, 'signature-input'), `sig2=${covered}${parameters}`]
    const signature = [lineOf(message, 'signature'), `sig2=${someSignature}`]
    expect(await problem(withFields(message, { 'signature-input': input }))).toBeDefined()
    expect(await problem(withFields(message, { signature }))).toBeDefined()
    expect(
      await problem(withFields(message, { 'signature-input': input, signature })),
    ).toBeUndefined()
  })
})

describe('the coverage of a signature', () => {
  test.each([
    ['nothing', '()'],
    ['only the method', '("@method")'],
    ['only the target', '("@target-uri")'],
    [
      'path, query and authority instead of the target',
      '("@method" "@path" "@query" "@authority")',
    ],
    ['the request target instead of the target', '("@method" "@request-target")'],
    ['fields with similar names', '("method" "target-uri")'],
    ['upper-case names', '("@Method" "@Target-URI")'],
    ['the method as a token', '(method "@target-uri")'],
    ['only another signature', '("signature";key="sig2" "signature-input";key="sig2")'],
    ['the method with a parameter', '("@method";x "@target-uri")'],
    ['the target of another message', '("@method" "@target-uri";req)'],
  ])('with %s is insufficient', async (_, list) => {
    expect(await problem(messageWithInput(`sig1=${list}${parameters}`))).toEqual(expect.any(String))
  })

  test.each(['GNAP opa_1.2', 'Bearer x', ''])(
    'must include Authorization, even when its value is %j',
    async (authorization) => {
      const message = messageWithInput(goodInput)
      expect(await problem(message)).toBeUndefined()
      const authorized = withFields(message, { authorization: [authorization] })
      expect(await problem(authorized)).toMatch(/authorization/)
    },
  )

  test('must include Idempotency-Key if the request has one', async () => {
    const keyed = withFields(messageWithInput(goodInput), { 'idempotency-key': ['k-1'] })
    expect(await problem(keyed)).toMatch(/idempotency-key/)
    const covering = messageWithInput(
      `sig1=("@method" "@target-uri" "idempotency-key")${parameters}`,
    )
    const both = withFields(covering, { 'idempotency-key': ['k-1'] })
    expect(await problem(both)).toBeUndefined()
  })

  test('is refused when it names an Authorization field that was removed', async () => {
    const message = signedMessage({ token: 'opa_1.2' })
    expect(await accepts(message)).toBe(true)
    expect(await problem(withFields(message, { authorization: undefined }))).toMatch(
      /authorization/,
    )
  })

  test.each(['x', '{}', ' ', '\u0000'])(
    'must include the digest of any body, even %j',
    async (text) => {
      const digest = [contentDigest(Buffer.from(text), 'sha-512')]
      const message = withFields(
        messageWithInput(goodInput, { method: 'POST', body: Buffer.from(text) }),
        { 'content-digest': digest },
      )
      expect(await problem(message)).toMatch(/content-digest/)
    },
  )

  test('is refused when it names an absent digest', async () => {
    const message = signedMessage({ body })
    expect(await problem(withFields(message, { 'content-digest': undefined }))).toMatch(
      /content-digest/,
    )
  })

  test('is insufficient when a body is added to a request signed without one', async () => {
    const message = signedMessage()
    expect(await accepts(message)).toBe(true)
    expect(await accepts({ ...message, body: Buffer.from('{}') })).toBe(false)
  })

  test.each([
    '"@method"',
    '"@target-uri"',
    '"x-note"',
    '"content-digest";sf',
    '"content-digest";key="sha-512";sf',
  ])('must not contain %s twice', async (component) => {
    const fields = { 'x-note': ['a'], 'content-digest': ['sha-512=:AA==:'] }
    const rest = ['"@method"', '"@target-uri"'].filter((each) => each !== component)
    const once = `sig1=(${[...rest, component].join(' ')})${parameters}`
    const twice = `sig1=(${[component, ...rest, component].join(' ')})${parameters}`
    const reason = await problem(withFields(messageWithInput(twice), fields))
    expect(reason).toMatch(/twice/)
    expect(await problem(withFields(messageWithInput(once), fields))).not.toMatch(/twice/)
  })

  test('must not contain the same component twice with its parameters in another order', async () => {
    const list = '("@method" "@target-uri" "signature";sf;key="a" "signature";key="a";sf)'
    expect(await problem(messageWithInput(`sig1=${list}${parameters}`))).toMatch(/twice/)
  })

  test('may contain the same field in two different forms', async () => {
    const list = '("@method" "@target-uri" "x-note" "x-note";bs)'
    const message = withFields(messageWithInput(`sig1=${list}${parameters}`), { 'x-note': ['a'] })
    expect(await problem(message)).toBeUndefined()
  })

  test('contains the own value of each component with parameters', async () => {
    const list = '("@method" "@target-uri" "x-note";bs "x-other";bs)'
    const message = withFields(messageWithInput(`sig1=${list}${parameters}`), {
      'x-note': ['a'],
      'x-other': ['b'],
    })
    const [candidate] = await candidatesOf(message)
    expect(candidate?.bases()[0]).toContain('"x-note";bs: :YQ==:\n"x-other";bs: :Yg==:\n')
  })
})

describe('the size of what is covered', () => {
  const target = '/op/incoming-payments'
  const others = 'GET'.length + origin.length + target.length

  test.each([
    ['in one line', 1],
    ['in several lines', 4],
  ])('is limited to 8192 characters: %s', async (_, count) => {
    const withNotes = (length: number) => {
      // Lines are joined with a comma and a space.
      const each = Math.floor((length - 2 * (count - 1)) / count)
      const lines = Array.from({ length: count }, () => 'a'.repeat(each))
      lines[0] += 'a'.repeat(length - 2 * (count - 1) - each * count)
      const input = `sig1=("@method" "@target-uri" "x-note")${parameters}`
      return withFields(messageWithInput(input), { 'x-note': lines })
    }
    expect(await problem(withNotes(8192 - others))).toBeUndefined()
    expect(await problem(withNotes(8193 - others))).toMatch(/8192/)
    expect(await problem(withNotes(60_000))).toMatch(/too long/)
  })

  test.each(['signature-input', 'signature'])(
    'is limited to 2048 characters in %s',
    async (name) => {
      const message = messageWithInput(goodInput)
      const [value = ''] = message.fields.get(name) ?? []
      const padded = (length: number) =>
        withFields(message, { [name]: [`${value};x="${'a'.repeat(length - value.length - 5)}"`] })
      expect(await problem(padded(2048))).toBeUndefined()
      expect(await problem(padded(2049))).toMatch(/2048/)
    },
  )
})

describe('components without a value', () => {
  test.each([
    ['an absent field', '"x-note"'],
    ['an upper-case field name', '"X-Present"'],
    ['a field with non-ASCII bytes', '"x-latin"'],
    ['a field with a line feed', '"x-feed"'],
    ['a field with a carriage return', '"x-return"'],
    ['a field with U+0000', '"x-null"'],
    ['an obsolete fold', '"x-fold"'],
    ['an unknown derived component', '"@unknown"'],
    ['the status of a response', '"@status"'],
    ['the parameters of the signature', '"@signature-params"'],
    ['a component with the req parameter', '"x-present";req'],
    ['a trailer', '"x-present";tr'],
    ['an unknown parameter', '"x-present";x'],
    ['bs beside sf', '"x-present";bs;sf'],
    ['bs beside key', '"content-digest";bs;key="sha-512"'],
    ['sf for a field of unknown type', '"x-present";sf'],
    ['an absent member', '"content-digest";key="md5"'],
    ['an absent query parameter', '"@query-param";name="a"'],
    ['a token instead of a name', 'x-present'],
    ['a number instead of a name', '1'],
  ])('refuses %s', async (_, component) => {
    const input = `sig1=("@method" "@target-uri" ${component})${parameters}`
    const message = withFields(messageWithInput(input), {
      'x-present': ['a'],
      'x-latin': ['caf\u00e9'],
      'x-feed': ['a\nb'],
      'x-return': ['a\rb'],
      'x-null': ['a\u0000b'],
      'x-fold': ['a\r\n b'],
      'X-Present': ['a'],
      '@unknown': ['a'],
      '@status': ['200'],
      'content-digest': [contentDigest(new Uint8Array(), 'sha-512')],
    })
    expect(await problem(message)).toEqual(expect.any(String))
  })

  test('an invalid field that is not covered is ignored', async () => {
    const message = withFields(signedMessage(), { 'x-latin': ['caf\u00e9'] })
    expect(await accepts(message)).toBe(true)
  })
})

describe('signature parameters', () => {
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['created and keyid', `;created=${created};keyid="k"`, true],
    ['created and keyid in the other order', `;keyid="k";created=${created}`, true],
    ['no created', ';keyid="k"', false],
    ['created as a decimal', `;created=${created}.0;keyid="k"`, false],
    ['created as a string', `;created="${created}";keyid="k"`, false],
    ['created as a token', `;created=now;keyid="k"`, false],
    ['created as a flag', ';created;keyid="k"', false],
    ['created as a date', `;keyid="k";created=@${created}`, false],
    ['negative created', `;created=-${created};keyid="k"`, false],
    ['created as zero', ';created=0;keyid="k"', false],
    ['created as one', ';created=1;keyid="k"', false],
    ['created with 15 digits', ';created=999999999999999;keyid="k"', false],
    ['created with 16 digits', ';created=1000000000000000;keyid="k"', false],
    ['created in milliseconds', `;created=${created}000;keyid="k"`, false],
    ['created twice', `;created=${created};created=${created};keyid="k"`, false],
    [
      'created twice, hidden in a string',
      `;note=%"\\";created=1;created=${created};keyid="k"`,
      false,
    ],
    [
      'created as a decimal, hidden in a string',
      `;note=%"\\";created=${created}.0;keyid="k"`,
      false,
    ],
    ['no keyid', `;created=${created}`, false],
    ['keyid as a token', `;created=${created};keyid=k`, false],
    ['keyid as bytes', `;created=${created};keyid=:AA==:`, false],
    ['keyid as a flag', `;created=${created};keyid`, false],
    ['keyid as a Display String', `;created=${created};keyid=%"k"`, false],
    ['keyid twice', `;created=${created};keyid="k";keyid="k"`, false],
    ['tag gnap', `;created=${created};keyid="k";tag="gnap"`, true],
    ['tag gnap as a token', `;created=${created};keyid="k";tag=gnap`, false],
    ['tag GNAP', `;created=${created};keyid="k";tag="GNAP"`, false],
    ['tag gnap-rotate', `;created=${created};keyid="k";tag="gnap-rotate"`, false],
    ['an empty tag', `;created=${created};keyid="k";tag=""`, false],
    ['a tag as a flag', `;created=${created};keyid="k";tag`, false],
    ['alg ed25519', `;created=${created};keyid="k";alg="ed25519"`, true],
    ['alg ed25519 as a token', `;created=${created};keyid="k";alg=ed25519`, false],
    ['alg in capitals', `;created=${created};keyid="k";alg="Ed25519"`, false],
    ['alg EdDSA', `;created=${created};keyid="k";alg="EdDSA"`, false],
    ['alg hmac-sha256', `;created=${created};keyid="k";alg="hmac-sha256"`, false],
    ['alg rsa-pss-sha512', `;created=${created};keyid="k";alg="rsa-pss-sha512"`, false],
    ['alg ed448', `;created=${created};keyid="k";alg="ed448"`, false],
    ['alg none', `;created=${created};keyid="k";alg="none"`, false],
    ['an empty alg', `;created=${created};keyid="k";alg=""`, false],
    ['a nonce', `;created=${created};keyid="k";nonce="n"`, true],
    ['a nonce as a token', `;created=${created};keyid="k";nonce=n`, false],
    ['a nonce as a number', `;created=${created};keyid="k";nonce=1`, false],
    ['a nonce as bytes', `;created=${created};keyid="k";nonce=:AA==:`, false],
    ['a nonce as a flag', `;created=${created};keyid="k";nonce`, false],
    ['expires later', `;created=${created};keyid="k";expires=${created + 1}`, true],
    ['expires at the current time', `;created=${created};keyid="k";expires=${created}`, false],
    ['expires earlier', `;created=${created};keyid="k";expires=${created - 1}`, false],
    ['expires as a decimal', `;created=${created};keyid="k";expires=${created + 60}.0`, false],
    ['expires as a string', `;created=${created};keyid="k";expires="${created + 60}"`, false],
    ['expires as a flag', `;created=${created};keyid="k";expires`, false],
    [
      'expires twice',
      `;created=${created};expires=${created + 9};keyid="k";expires=${created + 9}`,
      false,
    ],
  ]

  test.each(rows)('checks the parameters: %s', async (_, parameters, allowed) => {
    const message = messageWithInput(`sig1=${covered}${parameters}`)
    expect((await problem(message)) === undefined).toBe(allowed)
  })

  test('are read without their escapes and signed with them', async () => {
    const input = `sig1=${covered};created=${created};keyid="a\\"b\\\\";nonce="\\\\"`
    const [candidate] = await candidatesOf(messageWithInput(input))
    expect(candidate).toMatchObject({ keyid: 'a"b\\', nonce: '\\' })
    expect(candidate?.bases()[0]).toContain(`;keyid="a\\"b\\\\";nonce="\\\\"`)
  })

  test('keep the order in which they were received', async () => {
    const orders = [
      `;created=${created};keyid="k";nonce="n"`,
      `;nonce="n";keyid="k";created=${created}`,
    ]
    for (const order of orders) {
      const [candidate] = await candidatesOf(messageWithInput(`sig1=${covered}${order}`))
      expect(candidate?.bases()[0]?.split('\n').at(-1)).toBe(
        `"@signature-params": ${covered}${order}`,
      )
    }
  })

  test('are signed in their serialized form, not in their original spelling', async () => {
    const spelt = `sig1=( "@method"   "@target-uri" ); created=0${created};  keyid="k";flag=?1`
    const [candidate] = await candidatesOf(messageWithInput(spelt))
    expect(candidate?.bases()[0]?.split('\n').at(-1)).toBe(
      `"@signature-params": ${covered};created=${created};keyid="k";flag`,
    )
  })
})

describe('the freshness of a signature', () => {
  const at = created * 1000

  test.each([
    ['300 s after created', 300_000, true],
    ['a millisecond later than that', 300_001, false],
    ['at created', 0, true],
    ['60 s before created', -60_000, true],
    ['a millisecond earlier than that', -60_001, false],
  ])('is checked %s', async (_, offset, allowed) => {
    expect((await problem(messageWithInput(goodInput), at + offset)) === undefined).toBe(allowed)
  })

  test.each([
    ['at its expiry', 60_000, true],
    ['a millisecond after its expiry', 60_001, false],
  ])('is checked %s', async (_, offset, allowed) => {
    const input = `${goodInput};expires=${created + 60}`
    expect((await problem(messageWithInput(input), at + offset)) === undefined).toBe(allowed)
  })

  test('ends at the maximum age, even if the expiry is later', async () => {
    const message = messageWithInput(`${goodInput};expires=${created + 86_400}`)
    expect(await problem(message, at + 300_000)).toBeUndefined()
    expect(await problem(message, at + 300_001)).toBeDefined()
  })

  test('excludes a created time in the future, even with an expiry', async () => {
    const message = messageWithInput(`${goodInput};expires=${created + 86_400}`)
    expect(await problem(message, at - 60_001)).toBeDefined()
  })

  test('uses the configured limits', async () => {
    const message = messageWithInput(goodInput)
    const strict = { ageMaxMs: 1000, skewMaxMs: 0 }
    const answers = [-1, 0, 1000, 1001].map(async (offset) =>
      problemOf(await inspectSignatures(message, at + offset, strict)),
    )
    expect((await Promise.all(answers)).map((answer) => answer === undefined)).toEqual([
      false,
      true,
      true,
      false,
    ])
  })
})

describe('several signatures', () => {
  const siblings: readonly (readonly [string, string, string])[] = [
    ['that is not a list', 'sig2="x"', `sig2=${someSignature}`],
    ['that is a flag', 'sig2', `sig2=${someSignature}`],
    ['whose components are not strings', `sig2=(1 2)${parameters}`, `sig2=${someSignature}`],
    ['that covers nothing', `sig2=()${parameters}`, `sig2=${someSignature}`],
    [
      'that covers an absent field',
      `sig2=("@method" "@target-uri" "x")${parameters}`,
      `sig2=${someSignature}`,
    ],
    [
      'that covers a component twice',
      `sig2=("@method" "@method" "@target-uri")${parameters}`,
      `sig2=${someSignature}`,
    ],
    ['without created', `sig2=${covered};keyid="k"`, `sig2=${someSignature}`],
    [
      'with a decimal created',
      `sig2=${covered};created=${created}.0;keyid="k"`,
      `sig2=${someSignature}`,
    ],
    ['that is stale', `sig2=${covered};created=1;keyid="k"`, `sig2=${someSignature}`],
    ['with another tag', `sig2=${covered}${parameters};tag="other"`, `sig2=${someSignature}`],
    [
      'with another alg',
      `sig2=${covered}${parameters};alg="rsa-pss-sha512"`,
      `sig2=${someSignature}`,
    ],
    ['without bytes', `sig2=${covered}${parameters}`, 'sig2'],
    [
      'of 256 bytes',
      `sig2=${covered}${parameters}`,
      `sig2=:${Buffer.alloc(256).toString('base64')}:`,
    ],
    ['that is a string', `sig2=${covered}${parameters}`, 'sig2="x"'],
    ['that does not verify', `sig2=${covered}${parameters}`, `sig2=${someSignature}`],
    ['of another key', `sig2=${covered};created=${created};keyid="other"`, `sig2=${someSignature}`],
  ]

  test.each(siblings)(
    'a valid signature is accepted beside one %s',
    async (_, input, signature) => {
      for (const first of [true, false]) {
        const message = withSibling(signedMessage({ nonce: 'n' }), input, signature, first)
        expect(await accepts(message)).toBe(true)
      }
    },
  )

  test('a valid signature is accepted beside one whose label and parameter resemble its own', async () => {
    const message = signedMessage({ label: 'sig1.x' })
    const input = `sig1=${covered}${parameters};x.created=1.0`
    expect(await accepts(message)).toBe(true)
    expect(await accepts(withSibling(message, input, `sig1=${someSignature}`, false))).toBe(true)
  })

  test('a valid signature of another key does not prove possession of this key', async () => {
    const genuine = signedRequest(signOptions({ label: 'sig2', key: other }))
    const input = headerOf(genuine, 'signature-input') ?? ''
    const signature = headerOf(genuine, 'signature') ?? ''
    const broken = withFields(signedMessage(), { signature: [`sig1=${someSignature}`] })
    const message = withSibling(broken, input, signature, false)
    expect(await candidatesOf(message)).toHaveLength(2)
    expect(await accepts(message, key)).toBe(false)
    expect(await accepts(message, other)).toBe(true)
  })

  test('a valid signature of another key with the kid of this key is refused', async () => {
    const forged = signedMessage({ key: { ...other, kid: key.kid } })
    expect(await candidatesOf(forged)).toHaveLength(1)
    expect(await accepts(forged, key)).toBe(false)
  })

  test('each valid signature counts for its own key only', async () => {
    const genuine = signedRequest(signOptions({ label: 'sig2', key: other, nonce: 'other' }))
    const input = headerOf(genuine, 'signature-input') ?? ''
    const signature = headerOf(genuine, 'signature') ?? ''
    const message = withSibling(signedMessage({ nonce: 'own' }), input, signature, true)
    const candidates = await candidatesOf(message)
    expect((await verifyCandidates(candidates, key))?.nonce).toBe('own')
    expect((await verifyCandidates(candidates, other))?.nonce).toBe('other')
    expect(await verifyCandidates(candidates, testKey('third'))).toBeUndefined()
  })

  test('a signature by a key of small order is refused, even if the key was accepted', async () => {
    const weak = { kid: key.kid, x: Buffer.from([1, ...Array(31).fill(0)]).toString('base64url') }
    const signature = Buffer.concat([Buffer.from([1]), Buffer.alloc(63)]).toString('base64')
    const message = withFields(signedMessage(), { signature: [`sig1=:${signature}:`] })
    expect(await accepts(message, weak)).toBe(false)
  })
})

describe('an HMAC keyed with the public key', () => {
  test.each(['sha256', 'sha512'])('is refused as a signature: %s', async (hash) => {
    const message = signedMessage()
    const [candidate] = await candidatesOf(message)
    const secret = Buffer.from(key.x, 'base64url')
    const mac = createHmac(hash, secret)
      .update(candidate?.bases()[0] ?? '')
      .digest('base64')
    expect(await accepts(withFields(message, { signature: [`sig1=:${mac}:`] }))).toBe(false)
  })
})

describe('the content digest', () => {
  function digested(...values: string[]): SignedMessage {
    const components = ['"@method"', '"@target-uri"', '"content-digest"']
    const override = { '"content-digest"': values.join(', ') }
    const message = signedMessage({ body, digest: 'none', components, override })
    return withFields(message, { 'content-digest': values })
  }
  const bytes = Buffer.from(body)
  const sha256 = contentDigest(bytes, 'sha-256')
  const sha512 = contentDigest(bytes, 'sha-512')
  const wrong = contentDigest(Buffer.from('other'), 'sha-256')

  test.each([
    ['sha-512', [sha512], true],
    ['both in two lines', [sha256, sha512], true],
    ['one correct and one wrong', [`${sha512}, ${wrong}`], false],
    ['wrong', [wrong], false],
    ['malformed', ['sha-256'], false],
    ['the same algorithm in two lines', [sha256, sha256], false],
  ])('is checked: %s', async (_, values, allowed) => {
    const message = digested(...values)
    expect((await problem(message)) === undefined).toBe(allowed)
    expect(await accepts(message)).toBe(allowed)
  })

  test('must match the received bytes', async () => {
    const message = signedMessage({ body })
    expect(await accepts({ ...message, body: Buffer.from(`${body}\n`) })).toBe(false)
    expect(await accepts({ ...message, body: Buffer.from(body.replace(':', ': ')) })).toBe(false)
    expect(await accepts({ ...message, body: Buffer.alloc(0) })).toBe(false)
  })

  test.each([
    ['right', new Uint8Array(), true],
    ['of other content', Buffer.from('{}'), false],
  ])('of an empty body is optional, and is checked: %s', async (_, of, allowed) => {
    const value = contentDigest(of, 'sha-256')
    const message = withFields(messageWithInput(goodInput), { 'content-digest': [value] })
    expect((await problem(message)) === undefined).toBe(allowed)
    const components = ['"@method"', '"@target-uri"', '"content-digest"']
    const headers = [['content-digest', value]] as const
    expect(await accepts(signedMessage({ headers, components }))).toBe(allowed)
  })
})

describe('an empty path', () => {
  test('may have been signed with or without its slash', async () => {
    const input = messageWithInput(goodInput, { target: '/' })
    const [candidate] = await candidatesOf(input)
    const tail = `"@signature-params": ${covered}${parameters}`
    expect(candidate?.bases()).toEqual([
      `"@method": GET\n"@target-uri": https://wallet.example/\n${tail}`,
      `"@method": GET\n"@target-uri": https://wallet.example\n${tail}`,
    ])
    expect(await accepts(signedMessage({ url: origin }))).toBe(true)
    expect(await accepts(signedMessage({ url: `${origin}/` }))).toBe(true)
  })

  test('is a slash in @path and @request-target', async () => {
    const list = '("@path" "@method" "@request-target" "@target-uri")'
    const message = messageWithInput(`sig1=${list}${parameters}`, { target: '/' })
    const [candidate] = await candidatesOf(message)
    for (const base of candidate?.bases() ?? []) {
      expect(base).toContain('"@path": /\n')
      expect(base).toContain('"@request-target": /\n')
    }
  })

  test.each(['/op', '/op/', '/?a=b', '//', '/#'])('is not assumed for %s', async (target) => {
    const [candidate] = await candidatesOf(messageWithInput(goodInput, { target }))
    expect(candidate?.bases()).toHaveLength(1)
    const slashless = origin + target.slice(0, -1)
    const signed = signedMessage({
      url: `${origin}${target}`,
      override: { '"@target-uri"': slashless },
    })
    expect(await accepts({ ...signed, target })).toBe(false)
  })

  test('does not affect another line that resembles the target line', async () => {
    const note = `"@target-uri": ${origin}`
    const message = signedMessage({
      url: `${origin}/`,
      headers: [['x-note', note]],
      components: ['"x-note"', '"@method"', '"@target-uri"'],
    })
    expect(await accepts(message)).toBe(true)
    expect(await accepts(withFields(message, { 'x-note': [`${note}/`] }))).toBe(false)
  })
})

describe('the order of the checks', () => {
  /** A request in parts, each of which a fault can invalidate. */
  const sound = {
    input: '',
    label: 'sig1',
    signature: someSignature,
    components: ['"@method"', '"@target-uri"', '"content-digest"'],
    created: `;created=${created}`,
    keyid: ';keyid="shop-key"',
    tag: '',
    alg: '',
    nonce: '',
    expires: '',
    digest: contentDigest(Buffer.from(body), 'sha-512'),
  }
  type Parts = typeof sound

  function build(parts: Parts): SignedMessage {
    const { created, keyid, tag, alg, nonce, expires } = parts
    const list = `(${parts.components.join(' ')})${created}${keyid}${tag}${alg}${nonce}${expires}`
    const fields = new Map([
      ['content-digest', [parts.digest]],
      ['signature-input', [`sig1=${list}${parts.input}`]],
      ['signature', [`${parts.label}=${parts.signature}`]],
    ])
    return { method: 'POST', origin, target: '/', fields, body: Buffer.from(body) }
  }

  const all = sound.components
  const stages: readonly (readonly [string, readonly Partial<Parts>[]])[] = [
    ['syntax', [{ input: ',' }, { label: 'sig2' }, { signature: ':AA==:' }]],
    [
      'coverage',
      [
        { components: all.slice(1) },
        { components: all.slice(0, 2) },
        { components: ['"@method"', '"content-digest"'] },
        { components: [...all, '"@method"'] },
      ],
    ],
    [
      'parameters',
      [
        { created: '' },
        { created: `;created=${created}.0` },
        { keyid: '' },
        { tag: ';tag="other"' },
        { alg: ';alg="hmac-sha256"' },
        { nonce: ';nonce=1' },
        { expires: ';expires="never"' },
        { expires: `;expires=${created + 60}.0` },
      ],
    ],
    [
      'freshness',
      [{ created: `;created=${created - 301}` }, { created: `;created=${created + 61}` }],
    ],
    [
      'digest',
      [{ digest: contentDigest(Buffer.from('other'), 'sha-512') }, { digest: 'md5=:AA==:' }],
    ],
  ]

  const pairs = stages.flatMap(([stage, faults], index) =>
    stages
      .slice(index + 1)
      .flatMap(([later, laterFaults]) =>
        faults.flatMap((fault) =>
          laterFaults
            .filter((laterFault) => !Object.keys(laterFault).some((part) => part in fault))
            .map((laterFault) => ({ stage, later, fault, laterFault })),
        ),
      ),
  )

  test('the original request is valid', async () => {
    expect(await problem(build(sound))).toBeUndefined()
  })

  test.each(pairs)(
    '$stage is checked before $later: $fault, $laterFault',
    async ({ fault, laterFault }) => {
      const first = await problem(build({ ...sound, ...fault }))
      const second = await problem(build({ ...sound, ...laterFault }))
      expect(first).toBeDefined()
      expect(second).toBeDefined()
      expect(await problem(build({ ...sound, ...laterFault, ...fault }))).toBe(first)
    },
  )
})

describe('arbitrary signature fields', () => {
  const fragment = fc.oneof(
    fc.constantFrom('sig1=', 'sig2=', ', ', covered, parameters, someSignature, '("@method"', ')'),
    fc.constantFrom(
      ';tag="gnap"',
      '"x"',
      ';req',
      ';bs',
      ';sf;key="a"',
      '"signature"',
      '%"\\"',
      '@1',
    ),
    unicodeText({ maxLength: 3 }),
  )
  const line = fc.array(fragment, { maxLength: 8 }).map((parts) => parts.join(''))

  test('never throw and are never accepted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 2 }),
        fc.array(line, { maxLength: 2 }),
        async (inputs, signatures) => {
          const message = withFields(signedMessage({ body }), {
            'signature-input': inputs,
            signature: signatures,
            'content-digest': inputs,
          })
          expect(await accepts(message)).toBe(false)
        },
      ),
      { numRuns: runs(1500) },
    )
  })
})

test('a body without a digest is refused because the field is missing, not because it is not covered', async () => {
  const components = ['"@method"', '"@target-uri"']
  const message = signedMessage({ body, components })
  expect(await problem(message)).toBe('content-digest is not covered')
  const without = withFields(message, { 'content-digest': undefined })
  expect(await problem(without)).toBe('Content-Digest is missing')
})
