import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HttpRequest } from '../../../src/entry-adapter.js'
import type { SignedMessage } from '../../../src/protocol/http-signature/components.js'
import {
  inspectSignatures,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { testKey } from '../../support/keys.js'
import { runs } from '../../support/runs.js'
import { type SignatureForm, signatureForms, signedIn } from '../../support/sdk-signatures.js'
import { headerOf, type SignOptions, withHeader } from '../../support/sign.js'
import {
  messageCreated,
  messageOf,
  messageOrigin,
  profileFreshness,
} from '../../support/signed-message.js'
import {
  bob,
  createWorld,
  grantEndpoint,
  incomingAccess,
  resourceServer,
  type World,
  withFinish,
} from '../../support/world.js'

const key = testKey('shop')
const now = messageCreated * 1000

const payment: SignOptions = {
  method: 'POST',
  url: `${resourceServer}/incoming-payments`,
  key,
  created: messageCreated,
  nonce: 'b1946ac9',
  token: `opa_namespacGRANT.${'s'.repeat(43)}`,
  headers: [
    ['Host', 'wallet.example'],
    ['Accept', 'application/json'],
  ],
  body: JSON.stringify({
    walletAddress: bob,
    incomingAmount: { value: '2500', assetCode: 'USD', assetScale: 2 },
    metadata: { note: 'Grüße 💸' },
  }),
}

const grant: SignOptions = {
  method: 'POST',
  url: grantEndpoint,
  key,
  created: messageCreated,
  digest: 'sha-256',
  body: JSON.stringify({
    client: 'https://shop.example',
    access_token: { access: [incomingAccess] },
    interact: withFinish,
  }),
}

/** A part of a request that a signature covers, and the request with other bytes there. */
interface SignedPart {
  readonly name: string
  readonly bytes: Uint8Array
  put(bytes: Uint8Array): SignedMessage
}

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

function signedParts(message: SignedMessage): SignedPart[] {
  const fields = [...message.fields.keys()].filter((name) => name !== 'host' && name !== 'accept')
  return [
    {
      name: 'method',
      bytes: Buffer.from(message.method),
      put: (bytes) => ({ ...message, method: latin1(bytes) }),
    },
    {
      name: 'origin',
      bytes: Buffer.from(message.origin),
      put: (bytes) => ({ ...message, origin: latin1(bytes) }),
    },
    {
      name: 'target',
      bytes: Buffer.from(message.target),
      put: (bytes) => ({ ...message, target: latin1(bytes) }),
    },
    { name: 'body', bytes: message.body, put: (body) => ({ ...message, body }) },
    ...fields.map((name) => ({
      name,
      bytes: Buffer.from(message.fields.get(name)?.[0] ?? '', 'latin1'),
      put: (bytes: Uint8Array) => ({
        ...message,
        fields: new Map([...message.fields, [name, [latin1(bytes)]]]),
      }),
    })),
  ]
}

async function accepted(message: SignedMessage): Promise<boolean> {
  const inspection = await inspectSignatures(message, now, profileFreshness)
  if (!inspection.ok) return false
  return (await verifyCandidates(inspection.value, key)) !== undefined
}

/**
 * Returns whether two texts have the same parsed form, despite stray bits in the last digit of a signature
 * and optional spaces in a list. The signature covers the serialized form, so neither is signed. A dialect
 * has only one spelling.
 */
function sayTheSame(
  form: SignatureForm,
  name: string,
  before: Uint8Array,
  after: Uint8Array,
): boolean {
  if (form !== 'standard') return false
  const [was, is] = [latin1(before), latin1(after)]
  if (name === 'signature-input') return is.replace(/ +/g, ' ') === was
  if (name !== 'signature') return false
  const [old, young] = [was, is].map((text) => /^sig1=:([A-Za-z0-9+/]+={0,2}):$/.exec(text)?.[1])
  if (old === undefined || young === undefined) return false
  return Buffer.compare(Buffer.from(old, 'base64'), Buffer.from(young, 'base64')) === 0
}

/**
 * Generates another byte for every position: the sum, modulo 256, of the byte and a random value of 1 to 255.
 */
function changes(length: number) {
  return fc.array(fc.integer({ min: 1, max: 255 }), {
    minLength: length,
    maxLength: length,
    size: 'max',
  })
}

describe.each(
  signatureForms.flatMap((form) => [
    { name: 'an incoming payment', form, options: payment },
    { name: 'a grant request', form, options: grant },
  ]),
)('$name, signed in the form $form', ({ form, options }) => {
  const message = messageOf(signedIn(form, options))
  const parts = signedParts(message)

  test('is accepted unchanged', async () => {
    expect(await accepted(message)).toBe(true)
    for (const part of parts) expect(await accepted(part.put(part.bytes))).toBe(true)
  })

  test('covers everything that is significant to the server', () => {
    const names = parts.map(({ name }) => name)
    const expected = ['method', 'target', 'body', 'content-digest', 'signature-input', 'signature']
    expect(names).toEqual(expect.arrayContaining(expected))
    expect(names.includes('authorization')).toBe(options.token !== undefined)
  })

  test.each(parts)('is refused with any one byte of its $name changed', async (part) => {
    await fc.assert(
      fc.asyncProperty(changes(part.bytes.length), async (differences) => {
        for (const [index, difference] of differences.entries()) {
          const bytes = Uint8Array.from(part.bytes)
          bytes[index] = (bytes[index] ?? 0) + difference
          if (sayTheSame(form, part.name, part.bytes, bytes)) continue
          expect(await accepted(part.put(bytes)), `${part.name} ${index} ${bytes[index]}`).toBe(
            false,
          )
        }
      }),
      { numRuns: runs(8, 3), endOnFailure: true },
    )
  })

  test.each(parts)(
    'is refused with any one byte of its $name removed or duplicated',
    async (part) => {
      for (let index = 0; index < part.bytes.length; index++) {
        const without = Buffer.concat([
          part.bytes.subarray(0, index),
          part.bytes.subarray(index + 1),
        ])
        const doubled = Buffer.concat([
          part.bytes.subarray(0, index + 1),
          part.bytes.subarray(index),
        ])
        for (const bytes of [without, doubled]) {
          if (sayTheSame(form, part.name, part.bytes, bytes)) continue
          expect(await accepted(part.put(bytes)), latin1(bytes)).toBe(false)
        }
      }
    },
  )

  test('is refused without any one of the covered fields', async () => {
    const signed = parts.map(({ name }) => name).filter((name) => message.fields.has(name))
    expect(signed.length).toBeGreaterThan(3)
    for (const name of signed) {
      const fields = new Map(message.fields)
      fields.delete(name)
      expect(await accepted({ ...message, fields }), name).toBe(false)
    }
  })

  test('is refused with a second line of any covered field', async () => {
    const signed = parts.map(({ name }) => name).filter((name) => message.fields.has(name))
    for (const name of signed) {
      const lines = message.fields.get(name) ?? []
      for (const more of [
        [...lines, ''],
        [...lines, ...lines],
        ['x', ...lines],
      ]) {
        const fields = new Map([...message.fields, [name, more]])
        expect(await accepted({ ...message, fields }), name).toBe(false)
      }
    }
  })

  test.each([
    ['another method', { method: 'DELETE' }],
    ['the method in lower case', { method: 'post' }],
    ['another path', { target: '/op/outgoing-payments' }],
    ['a subpath', { target: `${message.target}/1` }],
    ['a trailing slash', { target: `${message.target}/` }],
    ['a query', { target: `${message.target}?a=b` }],
    ['an empty query', { target: `${message.target}?` }],
    ['another spelling of the same path', { target: message.target.replace('a', '%61') }],
    ['another host', { origin: 'https://evil.example' }],
    ['a port', { origin: `${messageOrigin}:8443` }],
    ['plain http', { origin: messageOrigin.replace('https', 'http') }],
  ])('is refused for another target or method: %s', async (_, changes) => {
    expect(await accepted({ ...message, ...changes })).toBe(false)
  })
})

describe('signatures of two requests', () => {
  test.each(signatureForms)('cannot be exchanged in the form %s', async (form) => {
    const later = { ...payment, body: '{}', nonce: 'other', created: messageCreated + 1 }
    const [one, two] = [payment, later].map((options) => messageOf(signedIn(form, options)))
    if (one === undefined || two === undefined) throw new Error('two requests')
    expect(await accepted(one)).toBe(true)
    expect(await accepted(two)).toBe(true)
    for (const names of [['signature'], ['signature-input'], ['signature', 'signature-input']]) {
      const taken = names.map((name) => [name, two.fields.get(name) ?? []] as const)
      expect(await accepted({ ...one, fields: new Map([...one.fields, ...taken]) })).toBe(false)
    }
  })
})

describe.each(signatureForms)('a server that receives requests in the form %s', (form) => {
  async function paymentRequest(world: World) {
    const client = world.client('shop')
    const { body } = await client.request([incomingAccess])
    const request = signedIn(form, {
      method: 'POST',
      url: `${resourceServer}/incoming-payments`,
      key: client.key,
      created: messageCreated,
      nonce: 'b1946ac9',
      token: body.access_token.value,
      body: JSON.stringify({ walletAddress: bob }),
    })
    return { client, request }
  }

  /** Returns the request with one character of a header value, or one byte of the body, changed. */
  function changed(request: HttpRequest, name: string, index: number, difference: number) {
    const put = (bytes: Buffer) => {
      bytes[index] = (bytes[index] ?? 0) + difference
      return bytes
    }
    if (name === 'body') return { ...request, body: put(Buffer.from(request.body)) }
    const value = put(Buffer.from(headerOf(request, name) ?? '', 'latin1')).toString('latin1')
    return withHeader(request, name, value)
  }

  test('refuses every modified request and still accepts the original one', async () => {
    const world = createWorld()
    const { request } = await paymentRequest(world)
    const names = ['Authorization', 'Content-Digest', 'Signature-Input', 'body']
    for (const name of names) {
      const length = name === 'body' ? request.body.length : (headerOf(request, name)?.length ?? 0)
      expect(length).toBeGreaterThan(10)
      const statuses = new Set<number>()
      for (let index = 0; index < length; index++) {
        const response = await world.handle(changed(request, name, index, 1 + (index % 3)))
        statuses.add(response.status)
        expect(response.status, `${name} ${index}`).toBeGreaterThanOrEqual(400)
      }
      expect([...statuses].filter((status) => status !== 400 && status !== 401)).toEqual([])
    }
    expect(world.errors).toEqual([])
    expect((await world.handle(request)).status).toBe(201)
  })

  test('returns the same response for every invalid signature but for what the request itself lacks, so that it does not reveal the expected key', async () => {
    const world = createWorld()
    const { client, request } = await paymentRequest(world)
    const token = headerOf(request, 'authorization')?.slice('GNAP '.length) ?? ''
    const signedBy = (signer: typeof key, more: Partial<SignOptions> = {}) =>
      signedIn(form, {
        method: 'POST',
        url: `${resourceServer}/incoming-payments`,
        key: signer,
        created: messageCreated,
        token,
        body: JSON.stringify({ walletAddress: bob }),
        ...more,
      })
    const thief = testKey('thief')
    const byOthers = (signer: typeof key) => [
      signedBy(signer, { created: messageCreated - 301 }),
      signedBy(signer, { created: messageCreated + 61 }),
      signedBy(signer, { components: ['"@method"'] }),
    ]
    const wrong = [
      signedBy(thief),
      signedBy({ ...thief, kid: client.key.kid }),
      signedBy({ ...client.key, kid: thief.kid }),
      signedBy(client.key, { override: { '"@method"': 'GET' } }),
    ]
    const [old, early, bare] = byOthers(client.key)
    const lacking = [
      ['created is too long ago', old],
      ['created is in the future', early],
      ['@target-uri is not covered', bare],
      ['Signature is missing', withHeader(request, 'signature')],
      ['Content-Digest sha-512 does not match', { ...request, body: Buffer.from('{}') }],
    ] as const
    const answersTo = async (requests: readonly (typeof request)[]) => {
      const answers = await Promise.all(requests.map((each) => world.handle(each)))
      expect(answers.map(({ status }) => status)).toEqual(requests.map(() => 401))
      return answers.map(({ body, headers }) => ({ body: JSON.parse(String(body)), headers }))
    }
    const [same, ...others] = await answersTo(wrong)
    expect(others).toEqual(others.map(() => same))
    // Beyond that, a response only tells what is seen without any key: a stranger's gets the same one.
    expect(await answersTo(byOthers(thief))).toEqual(await answersTo(byOthers(client.key)))
    for (const [problem, sent] of lacking) {
      const [answer] = await answersTo(sent === undefined ? [] : [sent])
      const { details, ...error } = answer?.body.error ?? {}
      expect(details).toEqual({ problem })
      expect({ body: { error }, headers: answer?.headers }).toEqual(same)
    }
  })
})
