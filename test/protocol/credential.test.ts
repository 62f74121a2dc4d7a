import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  accessTokenClass,
  continuationTokenClass,
  deriveSecret,
  formatCredential,
  formatPath,
  isIdOf,
  namespaceAt,
  namespaceOf,
  newId,
  newSecret,
  newUniqueText,
  parseCredential,
  parsePath,
  pooled,
} from '../../src/protocol/credential.js'
import { hashText } from '../../src/util/hash.js'
import { startOfTests } from '../support/clock.js'
import { importWithoutNode } from '../support/portable.js'
import { seededRandom } from '../support/random.js'
import { runs } from '../support/runs.js'

const portable = await importWithoutNode(() => import('../../src/protocol/credential.js'))

const classes = [accessTokenClass, continuationTokenClass] as const
const grantId = 'namespacGRANTGRANTGRANTGRANT12'
const secret = 's'.repeat(43)
const own = 'p'.repeat(22)

const urlSafe = fc.constantFrom(
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
)
const urlSafeText = (minLength: number, maxLength = minLength) =>
  fc.array(urlSafe, { minLength, maxLength }).map((characters) => characters.join(''))

/** A random source that always returns the same byte. */
const constantRandom = (value: number) => ({
  getRandomValues: (array: Uint8Array) => array.fill(value),
})

describe('tokens', () => {
  test('a written token is parsed only with its own class', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...classes),
        urlSafeText(1, 100),
        urlSafeText(43),
        (kind, grantId, secret) => {
          const token = formatCredential(kind, { grantId, secret })
          for (const wanted of classes) {
            const expected = wanted === kind ? { grantId, secret } : undefined
            expect(parseCredential(wanted, token)).toEqual(expected)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  test('the classes are distinct token68 prefixes of four characters', () => {
    expect(new Set(classes).size).toBe(2)
    for (const kind of classes) {
      expect(kind).toHaveLength(4)
      const token = formatCredential(kind, { grantId, secret })
      expect(token).toMatch(/^[A-Za-z0-9\-._~+/]+=*$/)
    }
  })

  test.each([
    ['nothing', ''],
    ['no class', `${grantId}.${secret}`],
    ['another class', `opx_${grantId}.${secret}`],
    ['the class in upper case', `OPA_${grantId}.${secret}`],
    ['only the class', 'opa_'],
    ['no grant id', `opa_.${secret}`],
    ['no secret', `opa_${grantId}.`],
    ['no dot', `opa_${grantId}${secret}`],
    ['a dot in the grant id', `opa_name.spac.${secret}`],
    ['a dot in the secret', `opa_${grantId}.${'s'.repeat(21)}.${'s'.repeat(21)}`],
    ['a trailing dot', `opa_${grantId}.${secret}.`],
    ['a secret of 42 characters', `opa_${grantId}.${'s'.repeat(42)}`],
    ['a secret of 44 characters', `opa_${grantId}.${'s'.repeat(44)}`],
    ['a grant id of 101 characters', `opa_${'g'.repeat(101)}.${secret}`],
    ['a padded secret', `opa_${grantId}.${'s'.repeat(42)}=`],
    ['a secret in the base64 alphabet', `opa_${grantId}.${'s'.repeat(42)}+`],
    ['a grant id with a slash', `opa_name/spac.${secret}`],
    ['a non-ASCII grant id', `opa_grünt.${secret}`],
    ['a trailing line break', `opa_${grantId}.${secret}\n`],
    ['a leading line break', `\nopa_${grantId}.${secret}`],
    ['a trailing space', `opa_${grantId}.${secret} `],
    ['two tokens', `opa_${grantId}.${secret} opa_${grantId}.${secret}`],
    ['a path', `${grantId}.${own}`],
  ])('rejects an invalid token: %s', (_, text) => {
    for (const kind of classes) expect(parseCredential(kind, text)).toBeUndefined()
  })
})

describe('paths', () => {
  test('a written path is parsed into its parts', () => {
    fc.assert(
      fc.property(urlSafeText(1, 100), urlSafeText(22), (grantId, own) => {
        expect(parsePath(formatPath(grantId, own))).toEqual({ grantId, own })
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['nothing', ''],
    ['only a grant id', grantId],
    ['only a random part', `.${own}`],
    ['a random part of 21 characters', `${grantId}.${'p'.repeat(21)}`],
    ['a random part of 23 characters', `${grantId}.${'p'.repeat(23)}`],
    ['a grant id of 101 characters', `${'g'.repeat(101)}.${own}`],
    ['two dots', `${grantId}..${own}`],
    ['a dot in the grant id', `a.b.${own}`],
    ['a slash', `${grantId}/.${own}`],
    ['a percent-escape', `%6e${grantId}.${own}`],
    ['a trailing line break', `${grantId}.${own}\n`],
    ['a token', formatCredential(accessTokenClass, { grantId, secret })],
  ])('rejects an invalid path: %s', (_, text) => {
    expect(parsePath(text)).toBeUndefined()
  })
})

describe('randomness', () => {
  test('every bit of the source appears in a secret, and in a path or command id', () => {
    expect(newSecret(constantRandom(0xff))).toBe(Buffer.alloc(32, 0xff).toString('base64url'))
    expect(newUniqueText(constantRandom(0xff))).toBe(Buffer.alloc(16, 0xff).toString('base64url'))
    expect(newUniqueText(constantRandom(0))).toBe('A'.repeat(22))
    expect(newSecret(constantRandom(0))).toBe('A'.repeat(43))
  })

  test('all tokens and paths are distinct and can be parsed', () => {
    const random = seededRandom()
    const secrets = Array.from({ length: 200 }, () => newSecret(random))
    const ids = Array.from({ length: 200 }, () => newId('namespac', startOfTests, random))
    expect(new Set([...secrets, ...ids]).size).toBe(400)
    for (const [index, secret] of secrets.entries()) {
      const grantId = ids[index] ?? ''
      const token = formatCredential(accessTokenClass, { grantId, secret })
      expect(parseCredential(accessTokenClass, token)).toEqual({ grantId, secret })
      const path = formatPath(grantId, newUniqueText(random))
      expect(parsePath(path)?.grantId).toBe(grantId)
    }
  })
})

describe('ids', () => {
  const second = fc.integer({ min: 0, max: 64 ** 6 - 1 })

  test('ascend byte by byte with the second of their creation', () => {
    fc.assert(
      fc.property(second, second, fc.nat(999), (one, other, ms) => {
        const [a, b] = [one, other].map((at) => newId('namespac', at * 1_000 + ms, seededRandom()))
        expect(Math.sign(Buffer.compare(Buffer.from(a ?? ''), Buffer.from(b ?? '')))).toBe(
          Math.sign(one - other),
        )
      }),
    )
  })

  test('have 36 characters, also at the ends of time', () => {
    for (const at of [Number.MIN_SAFE_INTEGER, -1, 0, startOfTests, Number.MAX_SAFE_INTEGER]) {
      const id = newId('namespac', at, seededRandom())
      expect(id).toHaveLength(36)
      expect(isIdOf('namespac', id)).toBe(true)
    }
  })

  test('of the same second differ in 128 random bits', () => {
    const ids = [0, 0xff].map((byte) => newId('namespac', startOfTests, constantRandom(byte)))
    expect(ids[0]?.slice(0, 14)).toBe(ids[1]?.slice(0, 14))
    expect(ids.map((id) => id.slice(14))).toEqual(
      [0, 0xff].map((byte) => newUniqueText(constantRandom(byte))),
    )
  })

  test('an id belongs only to the namespace in which it was created', () => {
    const id = newId('namespac', startOfTests, seededRandom())
    expect(isIdOf('namespac', id)).toBe(true)
    expect(isIdOf('namespaC', id)).toBe(false)
    expect(isIdOf('amespac', id)).toBe(false)
  })

  test.each(['namespac.x', 'namespac/x', 'namespac x', 'namespacé', `namespac${'x'.repeat(93)}`])(
    '%s is not an id, although it begins like one',
    (id) => {
      expect(isIdOf('namespac', id)).toBe(false)
    },
  )

  test('a namespace is eight characters of the SHA-256 hash of the exact URL', async () => {
    const url = 'https://wallet.example/auth'
    const expected = createHash('sha256').update(url).digest('base64url').slice(0, 8)
    expect(await namespaceOf(url)).toBe(expected)
    expect(await portable.namespaceOf(url)).toBe(expected)
    expect(await namespaceOf(`${url}/`)).not.toBe(expected)
  })
})

describe.each([
  ['with Node', { deriveSecret }],
  ['with Web Crypto only', portable],
])('secrets, %s', (_, { deriveSecret }) => {
  test('a derived secret is the HMAC of the salt under the presented secret', async () => {
    await fc.assert(
      fc.asyncProperty(urlSafeText(43), urlSafeText(43), async (presented, salt) => {
        const expected = createHmac('sha256', presented).update(salt).digest('base64url')
        expect(await deriveSecret(presented, salt)).toBe(expected)
      }),
      { numRuns: 50 },
    )
  })

  test('a derived secret is a distinct secret for each secret and salt', async () => {
    const nextToken = await deriveSecret(secret, 'salt')
    expect(nextToken).toMatch(/^[A-Za-z0-9_-]{43}$/)
    const others = [
      await deriveSecret(secret, 'salt2'),
      await deriveSecret(`${secret}2`, 'salt'),
      await deriveSecret('salt', secret),
      await deriveSecret(secret, 'salt', 'one'),
      await deriveSecret(secret, 'salt', 'two'),
      await deriveSecret(secret, 'salt2', 'one'),
      await hashText(secret),
      secret,
    ]
    expect(new Set([nextToken, ...others]).size).toBe(others.length + 1)
  })
})

describe('pooled random bytes', () => {
  test('are bytes of the source, each used once', () => {
    const sizes = fc.array(
      fc.oneof(fc.integer({ min: 8, max: 40 }), fc.integer({ min: 8, max: 1_100 })),
    )
    fc.assert(
      fc.property(sizes, fc.string(), (lengths, seed) => {
        const random = pooled(seededRandom(seed))
        const windows = lengths.flatMap((length) => {
          const bytes = Buffer.from(random.getRandomValues(new Uint8Array(length)))
          return Array.from({ length: length - 7 }, (_, i) => bytes.toString('hex', i, i + 8))
        })
        expect(new Set(windows).size).toBe(windows.length)
      }),
      { numRuns: runs(30) },
    )
  })

  test('are read in batches of 1,024, or directly if they are more', () => {
    const sizes: number[] = []
    const random = pooled({
      getRandomValues(array) {
        sizes.push(array.length)
        return array.fill(7)
      },
    })
    for (let i = 0; i < 65; i++) random.getRandomValues(new Uint8Array(16))
    expect(random.getRandomValues(new Uint8Array(1_025)).at(-1)).toBe(7)
    expect(random.getRandomValues(new Uint8Array(1_008)).at(-1)).toBe(7)
    expect(sizes).toEqual([1_024, 1_024, 1_025])
  })
})

test('the namespace of a server is computed once', async () => {
  const namespace = namespaceAt('https://as.example')
  expect(namespace()).toBe(namespace())
  expect(await namespace()).toBe(await namespaceOf('https://as.example'))
})
