import { createHash, type Hash, randomBytes, sign, type webcrypto } from 'node:crypto'
import { Point } from '@noble/ed25519'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest'
import * as native from '../../../src/protocol/http-signature/ed25519.js'
import { keyFromSeed, testKey } from '../../support/keys.js'
import { importOnWorkers, importWithoutNode, withoutWebEd25519 } from '../../support/portable.js'
import { isLong, runs } from '../../support/runs.js'
import { unicodeText } from '../../support/unicode-text.js'

const portable = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)
const noble = await importWithoutNode(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)
const onWorkers = await importOnWorkers(
  () => import('../../../src/protocol/http-signature/ed25519.js'),
)

const runtimes = [
  ['with Node', native.verifierOf, () => {}],
  ['with Web Crypto alone', portable.verifierOf, () => {}],
  ['with @noble/ed25519 alone', noble.verifierOf, withoutWebEd25519],
  ['on Cloudflare Workers', onWorkers.verifierOf, () => {}],
] as const

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The order of the base point. */
const order = 2n ** 252n + 27742317777372353535851937790883648493n

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}

function xOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url')
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
}

function toLittleEndian(value: bigint): Buffer {
  return hex(value.toString(16).padStart(64, '0')).reverse()
}

function scalar(hash: Hash): bigint {
  return littleEndian(hash.digest()) % order
}

/** Returns the number by which the private key multiplies the base point (RFC 8032 section 5.1.5). */
function secretScalar(seed: Uint8Array): bigint {
  const bytes = createHash('sha512').update(seed).digest().subarray(0, 32)
  bytes[0] = (bytes[0] ?? 0) & 0xf8
  bytes[31] = ((bytes[31] ?? 0) & 0x7f) | 0x40
  return littleEndian(bytes)
}

const eighth = 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03'
const otherEighth = '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc'
const smallOrder = [
  ['order 1', `01${'00'.repeat(31)}`],
  ['order 2', `ec${'ff'.repeat(30)}7f`],
  ['order 4', '00'.repeat(32)],
  ['order 4, the other x', `${'00'.repeat(31)}80`],
  ['order 8', `${eighth}7a`],
  ['order 8, the other x', `${eighth}fa`],
  ['order 8, the other y', `${otherEighth}05`],
  ['order 8, the other y and x', `${otherEighth}85`],
] as const

const nonCanonical = [
  ['order 1, with a sign', `01${'00'.repeat(30)}80`],
  ['order 2, with a sign', `ec${'ff'.repeat(31)}`],
  ...Array.from({ length: 19 }, (_, index) => {
    const first = (0xed + index).toString(16)
    return [
      [`p + ${index}`, `${first}${'ff'.repeat(30)}7f`],
      [`p + ${index}, with a sign`, `${first}${'ff'.repeat(31)}`],
    ] as const
  }).flat(),
] as const

const key = testKey('shop')

function signatureOf(message: string, signer = key): Uint8Array {
  return sign(null, Buffer.from(message), signer.privateKey)
}

describe.each(runtimes)('Ed25519 %s', (_, verifierOf, prepare) => {
  beforeEach(prepare)

  function verifier(x: string) {
    const verify = verifierOf(x)
    if (verify === undefined) throw new Error('the key was refused')
    return verify
  }

  describe('signatures', () => {
    test('do not verify with another key or another message', async () => {
      const verify = verifier(key.x)
      expect(await verify(signatureOf('message'), 'message')).toBe(true)
      expect(await verify(signatureOf('message', testKey('thief')), 'message')).toBe(false)
      expect(await verify(signatureOf('message'), 'Message')).toBe(false)
    })

    test('verify for a key that was never used before, and not when one byte is missing', async () => {
      const signer = keyFromSeed(randomBytes(32), 'kid')
      const verify = verifier(signer.x)
      const signature = signatureOf('message', signer)
      expect(await verify(signature.subarray(1), 'message')).toBe(false)
      expect(await verify(signature, 'message')).toBe(true)
      expect(await verify(signature, 'other')).toBe(false)
    })

    // RFC 8032 section 5.1.7: the signature satisfies the equation, but R is not a canonical encoding.
    test('do not verify if the owner of the key encodes R in a second way', async () => {
      const seed = randomBytes(32)
      const signer = keyFromSeed(seed, 'kid')
      const neutral = hex(`ee${'ff'.repeat(30)}7f`)
      const x = Buffer.from(signer.x, 'base64url')
      const challenge = scalar(createHash('sha512').update(neutral).update(x).update('message'))
      const s = (challenge * secretScalar(seed)) % order
      const verify = verifier(signer.x)
      expect(await verify(Buffer.concat([neutral, toLittleEndian(s)]), 'message')).toBe(false)
    })

    test('return independent results when verified concurrently', async () => {
      const signers = ['a', 'b', 'c'].map(testKey)
      const asked = Array.from({ length: 60 }, (_, index) => {
        const signer = signers[index % 3] ?? key
        const genuine = index % 4 !== 0
        const signature = signatureOf(`message ${genuine ? index : -1}`, signer)
        return { genuine, answer: verifier(signer.x)(signature, `message ${index}`) }
      })
      const answers = await Promise.all(asked.map(({ answer }) => answer))
      expect(answers).toEqual(asked.map(({ genuine }) => genuine))
    })

    test('verify while the host replaces the timers', async () => {
      vi.useFakeTimers()
      const verify = verifier(key.x)
      expect(await verify(signatureOf('message'), 'message')).toBe(true)
      const several = ['a', 'b', 'c'].map((message) => verify(signatureOf('b'), message))
      expect(await Promise.all(several)).toEqual([false, true, false])
      expect(await verify(signatureOf('message'), 'message')).toBe(true)
    })
  })

  describe('keys', () => {
    test.each(smallOrder)('a point of small order is refused every time: %s', (_, point) => {
      expect(verifierOf(xOf(hex(point)))).toBeUndefined()
      expect(verifierOf(xOf(hex(point)))).toBeUndefined()
    })

    test.each(nonCanonical)('a non-canonical encoding is refused: %s', (_, point) => {
      expect(verifierOf(xOf(hex(point)))).toBeUndefined()
    })

    test('of the four base64url spellings of the same bytes only the canonical one is accepted', () => {
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const { x } = testKey(name)
        const last = alphabet.indexOf(x.at(-1) ?? '')
        const spellings = [0, 1, 2, 3].map(
          (bits) => x.slice(0, -1) + alphabet.charAt((last & ~3) | bits),
        )
        expect(
          new Set(spellings.map((text) => Buffer.from(text, 'base64url').toString('hex'))).size,
        ).toBe(1)
        expect(spellings.filter((text) => verifierOf(text) !== undefined)).toEqual([x])
      }
    })

    test.each([
      ['with padding', `${key.x}=`],
      ['in the standard alphabet', '/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU'],
      ['with whitespace', `${key.x.slice(0, 20)} ${key.x.slice(20)}`],
      ['with a trailing line break', `${key.x}\n`],
      ['in hexadecimal', Buffer.from(key.x, 'base64url').toString('hex')],
      ['of no bytes', ''],
      ['of 31 bytes', xOf(Buffer.from(key.x, 'base64url').subarray(0, 31))],
      ['of 33 bytes', xOf(Buffer.concat([Buffer.from(key.x, 'base64url'), Buffer.alloc(1)]))],
      ['of 64 bytes', xOf(Buffer.alloc(64, 1))],
      ['of a point outside the curve', xOf(toLittleEndian(2n))],
    ])('an x %s is refused', (_, x) => {
      expect(verifierOf(x)).toBeUndefined()
    })

    test('that is used again has the same verifier', () => {
      const { x } = keyFromSeed(randomBytes(32), 'kid')
      expect(verifierOf(x)).toBe(verifierOf(x))
    })

    test('many keys used in turn remain independent', async () => {
      const signers = Array.from({ length: 40 }, (_, index) => testKey(`signer ${index}`))
      for (const round of [1, 2]) {
        const answers = signers.map((signer, index) => {
          const other = signers[(index + round) % signers.length] ?? key
          return verifier(signer.x)(signatureOf('message', other), 'message')
        })
        expect(await Promise.all(answers)).not.toContain(true)
      }
      const own = signers.map((signer) => verifier(signer.x)(signatureOf('m', signer), 'm'))
      expect(await Promise.all(own)).not.toContain(false)
    })
  })
})

test('with Node, neither Web Crypto nor noble verifies, which take longer', async () => {
  const web = vi.spyOn(crypto.subtle, 'importKey')
  const { x } = keyFromSeed(randomBytes(32), 'kid')
  expect(await native.verifierOf(x)?.(Buffer.alloc(64), 'message')).toBe(false)
  expect(web).not.toHaveBeenCalled()
})

test.runIf(isLong)(
  'a key with which a signature was verified is not evicted by keys without one',
  async () => {
    const fresh = keyFromSeed(randomBytes(32), 'fresh')
    const signature = signatureOf('message', fresh)
    expect(await native.verifierOf(fresh.x)?.(signature, 'message')).toBe(true)
    const known = native.verifierOf(fresh.x)
    // Decoding 10,000 points takes seconds.
    vi.spyOn(Point, 'fromBytes').mockReturnValue(Point.BASE)
    for (let i = 0; i <= 10_000; i++) {
      const candidate = native.verifierOf(xOf(createHash('sha256').update(`${i}`).digest()))
      if (i % 1_000 === 0) expect(await candidate?.(Buffer.alloc(64), 'message')).toBe(false)
    }
    expect(native.verifierOf(fresh.x)).toBe(known)
  },
)

describe('the runtimes', () => {
  async function all(x: string, signature: Uint8Array, message: string) {
    const answers = []
    for (const [, verifierOf, prepare] of runtimes) {
      prepare()
      answers.push(await verifierOf(x)?.(signature, message))
      vi.restoreAllMocks()
    }
    return answers
  }

  test('agree on valid and modified signatures', async () => {
    const change = fc.constantFrom('none', 'signature', 'message', 'key', 'S + L')
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        unicodeText({ maxLength: 100 }),
        change,
        fc.nat(511),
        async (seed, message, change, bit) => {
          const signer = keyFromSeed(seed, 'kid')
          const signature = Buffer.from(signatureOf(message, signer))
          if (change === 'signature')
            signature[bit >> 3] = (signature[bit >> 3] ?? 0) ^ (1 << (bit & 7))
          if (change === 'S + L') {
            signature.set(toLittleEndian(littleEndian(signature.subarray(32)) + order), 32)
          }
          const x = change === 'key' ? key.x : signer.x
          const received = change === 'message' ? `${message}!` : message
          const expected = change === 'none'
          expect(await all(x, signature, received)).toEqual(runtimes.map(() => expected))
        },
      ),
      { numRuns: runs(60) },
    )
  })
})

describe('Web Crypto', () => {
  const importKey = crypto.subtle.importKey.bind(crypto.subtle)
  const key = testKey('web')
  const { d = '' } = key.privateKey.export({ format: 'jwk' })

  let imported: MockInstance<typeof importKey> | undefined
  function importing(replaced: typeof importKey) {
    imported = vi.spyOn(crypto.subtle, 'importKey').mockImplementation(replaced as never)
    return imported
  }
  afterEach(() => imported?.mockRestore())

  const failing = (name: string) => () => Promise.reject(new DOMException('unusable', name))

  test('without Ed25519 leaves verifying to noble, and signing rejects', async () => {
    withoutWebEd25519()
    const verify = noble.verifierOf(key.x)
    expect(await verify?.(signatureOf('m', key), 'm')).toBe(true)
    expect(await verify?.(signatureOf('n', key), 'm')).toBe(false)
    await expect(noble.signerOf({ x: key.x, d })?.('m')).rejects.toThrow('Unrecognized')
  })

  test('that cannot import a key makes verifying and signing reject, and is asked again', async () => {
    const fresh = keyFromSeed(randomBytes(32), 'imported later')
    const { x = '', d = '' } = fresh.privateKey.export({ format: 'jwk' })
    const verify = portable.verifierOf(x)
    const signer = portable.signerOf({ x, d })
    importing(failing('OperationError'))
    await expect(verify?.(signatureOf('m'), 'm')).rejects.toThrow('unusable')
    await expect(signer?.('m')).rejects.toThrow('unusable')
    imported?.mockRestore()
    const signature = signatureOf('m', fresh)
    expect(await verify?.(signature, 'm')).toBe(true)
    expect(await signer?.('m')).toEqual(new Uint8Array(signature))
  })

  test('that refuses a private key refuses it because of its x', async () => {
    importing(failing('DataError'))
    await expect(portable.signerOf({ x: key.x, d })?.('m')).rejects.toThrow('does not match x')
  })

  test('that ignores x signs with no private key of another x', async () => {
    importing((format, jwk, algorithm, extractable, uses) => {
      const own = 'd' in jwk ? { ...jwk, x: key.x } : jwk
      return importKey(format as 'jwk', own as webcrypto.JsonWebKey, algorithm, extractable, uses)
    })
    const { x } = testKey('another')
    await expect(portable.signerOf({ x, d })?.('m')).rejects.toThrow('does not match x')
    expect(await portable.signerOf({ x: key.x, d })?.('m')).toEqual(
      new Uint8Array(signatureOf('m', key)),
    )
  })

  test('gets and checks each key once, and cannot export it again', async () => {
    const { mock } = importing(importKey)
    const checked = vi.spyOn(crypto.subtle, 'verify')
    const fresh = keyFromSeed(randomBytes(32), 'fresh')
    const { x = '', d = '' } = fresh.privateKey.export({ format: 'jwk' })
    const signer = portable.signerOf({ x, d })
    for (const message of ['a', 'b']) await signer?.(message)
    expect(checked).toHaveBeenCalledTimes(1)
    expect(mock.calls.map(([, , , extractable, uses]) => [extractable, uses])).toEqual([
      [false, ['sign']],
      [false, ['verify']],
    ])
  })
})
