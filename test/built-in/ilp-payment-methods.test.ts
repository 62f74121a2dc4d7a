import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type IlpPaymentMethodsOptions,
  ilpPaymentMethods,
  type PaymentMethods,
} from '../../src/index.js'
import { newId } from '../../src/protocol/credential.js'
import { startOfTests } from '../support/clock.js'
import { hostCall } from '../support/host-call.js'
import { invalidInput } from '../support/invalid-input.js'
import { importWithoutNode } from '../support/portable.js'
import { seededRandom } from '../support/random.js'

const portable = await importWithoutNode(() => import('../../src/built-in/ilp-payment-methods.js'))

// Open Payments OpenAPI, schema `ilp-payment-method`.
const ilpAddressPattern = /^(g|private|example|peer|self|test[1-3]?|local)([.][a-zA-Z0-9_~-]+)+$/
const ilpAddressLengthMax = 1023
const sharedSecretPattern = /^[a-zA-Z0-9-_]+$/

const secret = Uint8Array.from({ length: 32 }, (_, index) => index)
const options: IlpPaymentMethodsOptions = { addressPrefix: 'test.wallet', secret }
const methods = ilpPaymentMethods(options)

async function detailsOf(methods: PaymentMethods, paymentId: string) {
  const query = { paymentId, walletAddress: 'https://wallet.example/bob' }
  const asset = { assetCode: 'USD', assetScale: 2 }
  const [details, ...others] = await methods.detailsOf({ ...query, asset }, hostCall)
  if (details === undefined || others.length > 0) throw new Error('expected one method')
  return details
}

const random = seededRandom()
const paymentIds = Array.from({ length: 50 }, () => newId('namespac', startOfTests, random))

describe('payment details', () => {
  test('have the form of the OpenAPI schema', async () => {
    for (const paymentId of paymentIds) {
      const { type, ilpAddress, sharedSecret, ...rest } = await detailsOf(methods, paymentId)
      expect(type).toBe('ilp')
      expect(ilpAddress).toMatch(ilpAddressPattern)
      expect(sharedSecret).toMatch(sharedSecretPattern)
      expect(rest).toEqual({})
    }
  })

  test('stay within the maximum length of an ILP address for the longest prefix', async () => {
    const addressPrefix = `g.${'a'.repeat(958)}`
    expect(addressPrefix).toHaveLength(960)
    const long = ilpPaymentMethods({ addressPrefix, secret })
    const { ilpAddress } = await detailsOf(long, paymentIds[0] ?? '')
    expect(ilpAddress.length).toBeLessThanOrEqual(ilpAddressLengthMax)
  })

  test('are unique to the payment', async () => {
    const all = await Promise.all(paymentIds.map((id) => detailsOf(methods, id)))
    expect(new Set(all.map(({ ilpAddress }) => ilpAddress)).size).toBe(paymentIds.length)
    expect(new Set(all.map(({ sharedSecret }) => sharedSecret)).size).toBe(paymentIds.length)
  })

  test('are the same on each request and after a restart', async () => {
    const again = ilpPaymentMethods({ ...options, secret: secret.slice() })
    for (const paymentId of paymentIds) {
      const details = await detailsOf(methods, paymentId)
      expect(await detailsOf(methods, paymentId)).toEqual(details)
      expect(await detailsOf(again, paymentId)).toEqual(details)
    }
  })

  test('contain the HMAC of the payment id under the secret, in both runtimes', async () => {
    const elsewhere = portable.ilpPaymentMethods(options)
    for (const paymentId of paymentIds) {
      const expected = createHmac('sha256', secret).update(paymentId).digest('base64url')
      expect((await detailsOf(methods, paymentId)).sharedSecret).toBe(expected)
      expect(await detailsOf(elsewhere, paymentId)).toEqual(await detailsOf(methods, paymentId))
    }
  })

  test('reveal nothing about the details under another secret', async () => {
    const other = ilpPaymentMethods({ ...options, secret: new Uint8Array(32).fill(9) })
    const [one, two] = [await detailsOf(methods, 'p'), await detailsOf(other, 'p')]
    expect(two.sharedSecret).not.toBe(one.sharedSecret)
  })

  test('name their key without a part of it that could be a secret', async () => {
    const { ilpAddress } = await detailsOf(methods, 'p')
    const hash = createHmac('sha256', secret).update('name of the key').digest('base64url')
    expect(ilpAddress).toBe(`test.wallet.p.${hash.slice(0, 8)}`)
  })

  test.each([
    ['a Uint8Array', () => Uint8Array.from(secret)],
    ['a Buffer', () => Buffer.from(secret)],
  ])('do not change when the host clears the secret that it passed in: %s', async (_, copy) => {
    const given = copy()
    const wiped = ilpPaymentMethods({ ...options, secret: given })
    given.fill(0)
    expect(await detailsOf(wiped, 'p')).toEqual(await detailsOf(methods, 'p'))
  })
})

describe('finding the payment of an ILP address', () => {
  test('returns the payment of the details', async () => {
    for (const paymentId of paymentIds) {
      const { ilpAddress } = await detailsOf(methods, paymentId)
      expect(methods.paymentIdOf(ilpAddress)).toBe(paymentId)
    }
  })

  test('returns the payment of any address below the details, as STREAM connections use', () => {
    const segment = fc.stringMatching(/^[a-zA-Z0-9_~-]{1,12}$/)
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 4 }), (below) => {
        expect(methods.paymentIdOf(`test.wallet.payment.${below.join('.')}`)).toBe('payment')
      }),
      { numRuns: 100 },
    )
  })

  test.each([
    ['the bare prefix', 'test.wallet'],
    ['the prefix and a dot', 'test.wallet.'],
    ['the prefix and two dots', 'test.wallet..payment'],
    ['a longer prefix with the same beginning', 'test.walletx.payment'],
    ['a longer prefix without an id', 'test.walletxpayment'],
    ['a prefix that is shorter', 'test.payment'],
    ['another prefix', 'g.wallet.payment'],
    ['the prefix at a later position', 'g.test.wallet.payment'],
    ['the prefix in upper case', 'TEST.WALLET.payment'],
    ['another character instead of a dot', 'testxwallet.payment'],
    ['nothing', ''],
  ])('returns nothing for %s', (_, ilpAddress) => {
    expect(methods.paymentIdOf(ilpAddress)).toBeUndefined()
  })
})

describe('the credentials of an ILP address', () => {
  test('are the payment id and the shared secret of its details', async () => {
    for (const paymentId of paymentIds) {
      const { ilpAddress, sharedSecret } = await detailsOf(methods, paymentId)
      for (const address of [ilpAddress, `${ilpAddress}.below.it`]) {
        const credentials = await methods.credentialsOf(address)
        expect(credentials?.paymentId).toBe(paymentId)
        expect(credentials?.sharedSecret).toEqual(bytesOf(sharedSecret))
      }
    }
  })

  test('are 32 bytes that the caller may overwrite', async () => {
    const first = await methods.credentialsOf('test.wallet.payment')
    expect(first?.sharedSecret).toHaveLength(32)
    const copy = first?.sharedSecret.slice()
    first?.sharedSecret.fill(0)
    expect((await methods.credentialsOf('test.wallet.payment'))?.sharedSecret).toEqual(copy)
  })

  test('are the same after a restart and in both runtimes', async () => {
    const restarted = ilpPaymentMethods({ ...options, secret: secret.slice() })
    const elsewhere = portable.ilpPaymentMethods(options)
    const expected = await methods.credentialsOf('test.wallet.payment')
    expect(await restarted.credentialsOf('test.wallet.payment')).toEqual(expected)
    expect(await elsewhere.credentialsOf('test.wallet.payment')).toEqual(expected)
  })

  test.each(['test.wallet', 'test.wallet.', 'test.walletx.payment', 'g.wallet.payment', ''])(
    'do not exist for an address outside the prefix: %s',
    async (ilpAddress) => {
      expect(await methods.credentialsOf(ilpAddress)).toBeUndefined()
    },
  )
})

describe('several secrets', () => {
  const [oldest, middle, newest] = [secret, secret.map((byte) => byte + 1), new Uint8Array(32)]
  const withSecrets = (...all: [Uint8Array, ...Uint8Array[]]) =>
    ilpPaymentMethods({ ...options, secret: all })

  test('make new details with the first one', async () => {
    expect(await detailsOf(withSecrets(newest, oldest), 'p')).toEqual(
      await detailsOf(withSecrets(newest), 'p'),
    )
  })

  test('find the secret of all details that any of them made, at any place in the list', async () => {
    for (const made of [oldest, middle, newest]) {
      const { ilpAddress, sharedSecret } = await detailsOf(withSecrets(made), 'p')
      for (const rotated of [
        withSecrets(newest, middle, oldest),
        withSecrets(oldest, newest, middle),
      ]) {
        for (const address of [ilpAddress, `${ilpAddress}.below.it`]) {
          const credentials = await rotated.credentialsOf(address)
          expect(credentials).toEqual({ paymentId: 'p', sharedSecret: bytesOf(sharedSecret) })
        }
      }
    }
  })

  test('do not find the secret of details whose secret is no longer listed', async () => {
    const { ilpAddress, sharedSecret } = await detailsOf(withSecrets(oldest), 'p')
    const credentials = await withSecrets(newest, middle).credentialsOf(ilpAddress)
    expect(credentials?.sharedSecret).not.toEqual(bytesOf(sharedSecret))
  })

  test('use the last one for an address that names no secret', async () => {
    const expected = createHmac('sha256', oldest).update('p').digest()
    const { sharedSecret } =
      (await withSecrets(newest, oldest).credentialsOf('test.wallet.p')) ?? {}
    expect(sharedSecret).toEqual(Uint8Array.from(expected))
  })
})

function bytesOf(base64url: string): Uint8Array {
  return Uint8Array.from(Buffer.from(base64url, 'base64url'))
}

describe('the configuration', () => {
  test.each([
    'g.wallet',
    'private.a',
    'example.a.b',
    'peer.a',
    'self.a',
    'test.a',
    'test3.a',
    'local.a~b_c-D9',
  ])('accepts the prefix %s', async (addressPrefix) => {
    const { ilpAddress } = await detailsOf(ilpPaymentMethods({ addressPrefix, secret }), 'p')
    expect(ilpAddress.startsWith(`${addressPrefix}.p.`)).toBe(true)
    expect(ilpAddress).toMatch(ilpAddressPattern)
  })

  test.each([
    ['empty', ''],
    ['a bare allocation scheme', 'g'],
    ['no allocation scheme', 'wallet.example'],
    ['an unknown test network', 'test4.wallet'],
    ['an upper-case scheme', 'G.wallet'],
    ['terminated by a dot', 'g.wallet.'],
    ['preceded by a dot', '.g.wallet'],
    ['an empty segment', 'g..wallet'],
    ['a space', 'g.wal let'],
    ['a slash', 'g.wallet/x'],
    ['a letter outside ASCII', 'g.wället'],
    ['a line break at the end', 'g.wallet\n'],
    ['961 characters', `g.${'a'.repeat(959)}`],
    ['missing', undefined],
    ['a number', 17],
  ])('refuses a prefix with this fault: %s', (_, addressPrefix) => {
    const setUp = () => ilpPaymentMethods({ addressPrefix, secret } as IlpPaymentMethodsOptions)
    expect(setUp).toThrow(TypeError)
    expect(setUp).toThrow(invalidInput('addressPrefix'))
  })

  test.each([
    ['empty', new Uint8Array()],
    ['of 31 bytes', new Uint8Array(31)],
    ['missing', undefined],
    ['null', null],
    ['a string, which has characters instead of bytes', 'x'.repeat(64)],
    ['an array of numbers', Array.from({ length: 32 }, () => 7)],
    ['an empty list', []],
    ['a list with a short one', [secret, new Uint8Array(31)]],
    ['a list with a hole', [secret, undefined]],
    ['an ArrayBuffer, which has no length property', new ArrayBuffer(8)],
  ])('refuses a secret that is %s', (_, secret) => {
    const setUp = () => ilpPaymentMethods({ ...options, secret } as IlpPaymentMethodsOptions)
    expect(setUp).toThrow(TypeError)
    expect(setUp).toThrow(invalidInput('secret'))
  })

  test('never includes the secret in its errors', () => {
    const short = Buffer.from('hunter2')
    const setUp = () => ilpPaymentMethods({ ...options, secret: short })
    expect(setUp).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') }),
    )
  })
})
