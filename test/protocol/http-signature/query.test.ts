import { afterEach, describe, expect, test, vi } from 'vitest'
import { queryReader } from '../../../src/protocol/http-signature/components.js'

describe('a query', () => {
  afterEach(() => void vi.unstubAllGlobals())

  test('is parsed once, and only if a parameter is read', () => {
    const parsed: string[] = []
    vi.stubGlobal(
      'URLSearchParams',
      class extends URLSearchParams {
        constructor(query: string) {
          parsed.push(query)
          super(query)
        }
      },
    )
    const read = queryReader('/op?a=1&b=2&b=3')
    expect(read('%')).toBeUndefined()
    expect(parsed).toEqual([])
    expect(['a', 'b', 'c', 'a', '%'].map(read)).toEqual(['1', undefined, undefined, '1', undefined])
    expect(parsed).toEqual(['a=1&b=2&b=3'])
  })

  test('of more than 64 parameters has none that can be covered', () => {
    const query = (count: number) => Array.from({ length: count }, (_, i) => `p${i}=v`).join('&')
    expect(queryReader(`/op?${query(64)}`)('p63')).toBe('v')
    expect(queryReader(`/op?${query(65)}`)('p63')).toBeUndefined()
    expect(queryReader(`/op?a=v${'&'.repeat(64)}`)('a')).toBeUndefined()
  })

  test('that is absent has no parameters, and the path is none', () => {
    expect(queryReader('/op')('%2Fop')).toBeUndefined()
    expect(queryReader('/op')('')).toBeUndefined()
  })

  test.each(['%61', 'a+b', 'a b', '%7e', '~', '%zz', '%', '%c3', '%C3', 'é', "it's"])(
    'has no parameter named %s, because a name has one encoding',
    (name) => {
      expect(queryReader(`/op?${name}=1&a=1&a+b=1&~=1&%E9=1`)(name)).toBeUndefined()
    },
  )
})
