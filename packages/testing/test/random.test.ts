import fc from 'fast-check'
import { runs } from 'open-payments-test-support/runs'
import { unicodeText } from 'open-payments-test-support/unicode-text'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../src/index.js'
import { seededIndex, seededWords } from '../src/random.js'

function bytes(seed: string | undefined, length: number): Uint8Array {
  return seededRandom(seed).getRandomValues(new Uint8Array(length))
}

describe('seeded randomness', () => {
  test('is the same on every machine', () => {
    const hex = (text: string | undefined) => Buffer.from(bytes(text, 16)).toString('hex')
    expect(hex('seed')).toBe(hex(undefined))
    expect(hex('seed')).toBe('f024753f2a21fed25711e2a84416c078')
    expect(hex('another')).toBe('e7809d4c595978055ef7d324fa3f7f3c')
  })

  test('returns the same bytes for any split of the requests', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.nat({ max: 40 }), { maxLength: 10 }),
        (seed, lengths) => {
          const random = seededRandom(seed)
          const pieces = lengths.map((length) => random.getRandomValues(new Uint8Array(length)))
          const total = lengths.reduce((sum, length) => sum + length, 0)
          expect(Buffer.concat(pieces)).toEqual(Buffer.from(bytes(seed, total)))
        },
      ),
    )
  })

  test('returns other bytes for another seed', () => {
    fc.assert(
      fc.property(unicodeText(), unicodeText(), (one, other) => {
        fc.pre(one !== other)
        expect(bytes(one, 16)).not.toEqual(bytes(other, 16))
      }),
      { numRuns: runs(500) },
    )
  })

  test('fills the given array and returns it', () => {
    const array = new Uint8Array(1_000)
    expect(seededRandom().getRandomValues(array)).toBe(array)
    expect(new Set(array).size).toBeGreaterThan(200)
  })

  test('distributes bytes evenly, also for similar seeds', () => {
    for (const seed of ['', 'a', 'b', 'seed 1', 'seed 2']) {
      const counts = new Array<number>(256).fill(0)
      for (const byte of bytes(seed, 256 * 200)) counts[byte] = (counts[byte] ?? 0) + 1
      const chiSquare = counts.reduce((sum, count) => sum + (count - 200) ** 2 / 200, 0)
      // 255 degrees of freedom: a fair source is outside this range once in 100,000 runs.
      expect(chiSquare).toBeGreaterThan(165)
      expect(chiSquare).toBeLessThan(360)
    }
    const firsts = Array.from({ length: 4_000 }, (_, i) => bytes(`seed ${i}`, 4).join())
    expect(new Set(firsts).size).toBe(4_000)
  })

  test('is sfc32: 32 bits of every word, and indices below their bound', () => {
    const next = seededWords('words')
    let ones = 0
    let zeros = 0
    for (let i = 0; i < 200; i++) {
      const word = next()
      expect(Number.isInteger(word) && word >= 0 && word < 2 ** 32).toBe(true)
      ones |= word
      zeros |= ~word
    }
    expect([ones >>> 0, zeros >>> 0]).toEqual([0xffffffff, 0xffffffff])
    const index = seededIndex('indices')
    const seen = new Set(Array.from({ length: 400 }, () => index(7)))
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5, 6])
  })
})
