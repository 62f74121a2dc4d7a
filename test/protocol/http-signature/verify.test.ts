import { describe, expect, test, vi } from 'vitest'
import {
  inspectSignatures,
  type SignatureCandidate,
  verifyCandidates,
} from '../../../src/protocol/http-signature/inspect.js'
import { startOfTests } from '../../support/clock.js'
import { testKey } from '../../support/keys.js'
import {
  messageKey as key,
  messageCreated,
  profileFreshness,
  signedMessage,
  withFields,
} from '../../support/signed-message.js'

async function genuine(): Promise<SignatureCandidate> {
  const inspection = await inspectSignatures(signedMessage(), startOfTests, profileFreshness)
  const [candidate] = inspection.ok ? inspection.value : []
  if (candidate === undefined) throw new Error('no candidate')
  return { ...candidate, bases: vi.fn(candidate.bases) }
}

/** Returns a candidate with an invalid signature. */
async function forged(
  keyid: string,
  bases: readonly string[] = ['x'],
): Promise<SignatureCandidate> {
  const candidate = await genuine()
  return { ...candidate, keyid, signature: Buffer.alloc(64, 7), bases: vi.fn(() => bases) }
}

describe('the signature base', () => {
  test('is built only for signatures with the keyid of the key', async () => {
    const own = await genuine()
    const others = [await forged('other'), await forged('')]
    expect(await verifyCandidates([...others, own], key)).toBe(own)
    expect(own.bases).toHaveBeenCalledOnce()
    for (const other of others) expect(other.bases).not.toHaveBeenCalled()
  })

  test('is not built for a key that is not acceptable', async () => {
    const own = await genuine()
    const weak = { kid: key.kid, x: Buffer.from([1, ...Array(31).fill(0)]).toString('base64url') }
    expect(await verifyCandidates([own], weak)).toBeUndefined()
    expect(own.bases).not.toHaveBeenCalled()
  })
})

describe('a parameter of each type', () => {
  test.each([
    '1',
    '-1',
    '1.0',
    '-0.5',
    '"a\\"b\\\\"',
    'token',
    ':AQ==:',
    '?0',
    '@1700000000',
    '%"%c3%a9%0a"',
  ])('is in the signature base as it was signed: %s', async (value) => {
    const message = signedMessage()
    const list = `("@method" "@target-uri");created=${messageCreated};keyid="shop-1";y;x=${value}`
    const input = { 'signature-input': [`sig1=${list}`] }
    const inspection = await inspectSignatures(
      withFields(message, input),
      startOfTests,
      profileFreshness,
    )
    const [candidate] = inspection.ok ? inspection.value : []
    const { method, origin, target } = message
    expect(candidate?.bases()).toEqual([
      `"@method": ${method}\n"@target-uri": ${origin}${target}\n"@signature-params": ${list}`,
    ])
  })
})

describe('of several signatures with the keyid of the key', () => {
  test('the first two are verified', async () => {
    const own = await genuine()
    const junk = await forged(key.kid)
    expect(await verifyCandidates([junk, own], key)).toBe(own)
    expect(await verifyCandidates([junk, junk, own], key)).toBeUndefined()
  })

  test('those of other keys do not count', async () => {
    const own = await genuine()
    const others = [await forged('a'), await forged('b'), await forged('c')]
    expect(await verifyCandidates([...others, own], key)).toBe(own)
    expect(await verifyCandidates([own], testKey('other'))).toBeUndefined()
  })

  test('only the first is verified if it has two possible bases', async () => {
    const own = await genuine()
    const [base = ''] = own.bases()
    const second = { ...own, bases: () => ['x', base] }
    expect(await verifyCandidates([second], key)).toBe(second)
    expect(await verifyCandidates([await forged(key.kid, ['x', 'y']), own], key)).toBeUndefined()
  })
})
