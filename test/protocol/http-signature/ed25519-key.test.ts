import { Point } from '@noble/ed25519'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isSoundPoint } from '../../../src/protocol/http-signature/ed25519-key.js'
import { keyFromSeed } from '../../support/keys.js'
import { runs } from '../../support/runs.js'

/** Whether the reference decodes the bytes as a canonical point that is not of small order. */
function decodes(bytes: Uint8Array): boolean {
  try {
    return !Point.fromBytes(bytes, false).isSmallOrder()
  } catch {
    return false
  }
}

const anyBytes = fc.uint8Array({ minLength: 32, maxLength: 32 })

/** Bytes near the limits: almost all zeros, almost all ones. */
const edges = fc
  .tuple(fc.constantFrom(0, 255), fc.nat(255), fc.nat(255), fc.nat(31), fc.nat(255))
  .map(([filling, first, last, at, other]) => {
    const bytes = new Uint8Array(32).fill(filling)
    bytes[at] = other
    bytes[0] = first
    bytes[31] = last
    return bytes
  })

describe('a key is sound exactly if the reference decodes it, and its point is not of small order', () => {
  test.each([
    ['any bytes', anyBytes, 400],
    ['bytes near the limits', edges, 2_000],
  ] as const)('for %s', (_, bytes, count) => {
    fc.assert(
      fc.property(bytes, (key) => {
        expect(isSoundPoint(key)).toBe(decodes(key))
      }),
      { numRuns: runs(count) },
    )
  })

  test('for all keys whose first or last byte alone differs from zeros or ones', () => {
    for (const filling of [0, 255]) {
      for (let byte = 0; byte < 256; byte++) {
        for (const at of [0, 31]) {
          const key = new Uint8Array(32).fill(filling)
          key[at] = byte
          expect(isSoundPoint(key), Buffer.from(key).toString('hex')).toBe(decodes(key))
        }
      }
    }
  })

  test('for the keys of seeds, with any one bit changed', () => {
    fc.assert(
      fc.property(anyBytes, fc.nat(255), (seed, bit) => {
        const key = Buffer.from(keyFromSeed(seed, 'kid').x, 'base64url')
        expect(isSoundPoint(key)).toBe(true)
        key[bit >> 3] = (key[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        expect(isSoundPoint(key)).toBe(decodes(key))
      }),
      { numRuns: runs(200) },
    )
  })
})

test('rejects bytes of any other length', () => {
  const key = Buffer.from(keyFromSeed(new Uint8Array(32), 'kid').x, 'base64url')
  expect(isSoundPoint(key)).toBe(true)
  expect(isSoundPoint(key.subarray(0, 31))).toBe(false)
  expect(isSoundPoint(Buffer.concat([key, Buffer.alloc(1)]))).toBe(false)
  expect(isSoundPoint(new Uint8Array())).toBe(false)
})
