import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isUuid, newUuid } from '../../src/protocol/uuid.js'
import { seededRandom } from '../support/random.js'

const constantRandom = (value: number) => ({
  getRandomValues: (array: Uint8Array) => array.fill(value),
})

/** The time in the first 48 bits of a UUID of version 7 (RFC 9562 section 5.7). */
const timeOf = (uuid: string) => Number.parseInt(uuid.replace('-', '').slice(0, 12), 16)

describe('a new UUID', () => {
  test('has the form, the version and the variant of RFC 9562, also at the ends of time and chance', () => {
    const form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
    for (const at of [-1, 0, 1, 1_764_000_000_000, 2 ** 48 - 1, Number.MAX_SAFE_INTEGER]) {
      for (const random of [seededRandom(), constantRandom(0), constantRandom(0xff)]) {
        const uuid = newUuid(at, random)
        expect(uuid).toMatch(form)
        expect(isUuid(uuid)).toBe(true)
      }
    }
  })

  test('begins with its millisecond, so that later ones are greater byte by byte', () => {
    const random = seededRandom()
    const instant = fc.integer({ min: 0, max: 2 ** 48 - 1 })
    fc.assert(
      fc.property(instant, instant, (one, other) => {
        const [a, b] = [newUuid(one, random), newUuid(other, random)]
        expect([timeOf(a), timeOf(b)]).toEqual([one, other])
        if (one !== other) expect(a < b).toBe(one < other)
      }),
    )
  })

  test('has 74 bits that depend on chance alone', () => {
    const bits = (uuid: string) => BigInt(`0x${uuid.replaceAll('-', '')}`)
    const [zeros, ones] = [0, 0xff].map((byte) => bits(newUuid(0, constantRandom(byte))))
    const differing = ((zeros ?? 0n) ^ (ones ?? 0n)).toString(2).replaceAll('0', '').length
    expect(differing).toBe(74)
  })
})

test.each([
  '019ACB2F-0C00-7ABC-8DEF-0123456789AB',
  '019acb2f0c007abc8def0123456789ab',
  '{019acb2f-0c00-7abc-8def-0123456789ab}',
  '019acb2f-0c00-7abc-8def-0123456789ab\n',
  '019acb2f-0c00-7abc-8def-0123456789a',
  '',
])('%j is not a UUID as the servers write it', (text) => {
  expect(isUuid(text)).toBe(false)
})
