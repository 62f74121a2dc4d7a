import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { boundedCache } from '../../src/network/bounded-cache.js'

const cached = (owner: string, bytes: number) => ({ value: `${owner} ${bytes}`, owner, bytes })

describe('a bounded cache', () => {
  test('returns what was set, until it is deleted', () => {
    const cache = boundedCache<string>(10)
    expect(cache.get('a')).toBeUndefined()
    cache.set('a', cached('me', 3))
    cache.set('a', cached('me', 4))
    expect(cache.get('a')).toBe('me 4')
    expect(cache.bytes).toBe(4)
    cache.delete('a')
    cache.delete('a')
    expect(cache.get('a')).toBeUndefined()
    expect(cache.bytes).toBe(0)
  })

  test.each([
    ['one owner', () => 'me'],
    ['different owners', (key: string) => key],
  ])('evicts the value that was used least recently (%s)', (_, ownerOf) => {
    const cache = boundedCache<string>(3)
    for (const key of ['a', 'b', 'c']) cache.set(key, cached(ownerOf(key), 1))
    cache.get('a')
    cache.set('d', cached(ownerOf('d'), 1))
    expect(cache.get('b')).toBeUndefined()
    expect(['a', 'c', 'd'].map((key) => cache.get(key))).not.toContain(undefined)
  })

  test('keeps all of the half that was used last', () => {
    const uses = fc.array(fc.integer({ min: 0, max: 14 }).map(String), { maxLength: 80 })
    const property = fc.property(fc.integer({ min: 2, max: 10 }), uses, (count, keys) => {
      const cache = boundedCache<string>(count)
      const used = new Set<string>()
      for (const key of keys) {
        const found = cache.get(key)
        if ([...used].slice(-Math.floor(count / 2)).includes(key)) expect(found).toBeDefined()
        if (found === undefined) cache.set(key, cached(key, 1))
        used.delete(key)
        used.add(key)
      }
    })
    fc.assert(property)
  })

  test('evicts the values of the owner that uses most, and no others', () => {
    const cache = boundedCache<string>(100)
    for (let i = 0; i < 40; i++) cache.set(`small ${i}`, cached(`small ${i}`, 1))
    for (let i = 0; i < 30; i++) cache.set(`large ${i}`, cached('large', 1))
    for (let i = 0; i < 10_000; i++) cache.set(`greedy ${i}`, cached('greedy', 1))
    for (let i = 0; i < 40; i++) expect(cache.get(`small ${i}`)).toBeDefined()
    for (let i = 0; i < 30; i++) expect(cache.get(`large ${i}`)).toBeDefined()
    expect(cache.get('greedy 9969')).toBeUndefined()
    expect(cache.get('greedy 9970')).toBeDefined()
    expect(cache.bytes).toBe(100)
  })

  test('lets one owner use all of it while no other owner needs it', () => {
    const cache = boundedCache<string>(100)
    for (let i = 0; i < 100; i++) cache.set(`${i}`, cached('wallet', 1))
    expect(cache.get('0')).toBeDefined()
  })

  test('does not store a value that is larger than all of it, and evicts nothing for it', () => {
    const cache = boundedCache<string>(10)
    cache.set('small', cached('me', 1))
    cache.set('large', cached('other', 11))
    expect(cache.get('large')).toBeUndefined()
    expect(cache.get('small')).toBeDefined()
  })

  test('never exceeds its size, and counts exactly what it holds', () => {
    const key = fc.integer({ min: 0, max: 12 })
    const owner = fc.constantFrom('x', 'y', 'z')
    const step = fc.oneof(
      fc.record({ set: key, owner, bytes: fc.integer({ min: 1, max: 9 }) }),
      fc.record({ get: key }),
      fc.record({ delete: key }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const cache = boundedCache<number>(20)
        for (const one of steps) {
          if ('get' in one) cache.get(`${one.get}`)
          else if ('delete' in one) cache.delete(`${one.delete}`)
          else cache.set(`${one.set}`, { value: one.bytes, owner: one.owner, bytes: one.bytes })
          const held = Array.from({ length: 13 }, (_, i) => cache.get(`${i}`) ?? 0)
          expect(cache.bytes).toBe(held.reduce((sum, bytes) => sum + bytes))
          expect(cache.bytes).toBeLessThanOrEqual(20)
        }
      }),
    )
  })
})
