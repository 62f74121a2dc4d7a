import { describe, expect, test } from 'vitest'
import { sameJson } from '../../src/core/stored.js'

describe('comparing JSON values', () => {
  test.each([
    [null, null],
    ['abc', 'abc'],
    [
      { a: 1, b: [1, { c: null }] },
      { b: [1, { c: null }], a: 1 },
    ],
  ])('%j equals %j', (one, other) => {
    expect(sameJson(one, other)).toBe(true)
    expect(sameJson(other, one)).toBe(true)
  })

  test.each([
    [null, {}],
    [[], {}],
    [['a'], { 0: 'a' }],
    ['abc', { 0: 'a', 1: 'b', 2: 'c' }],
    ['1', 1],
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ a: 1 }, { b: 1 }],
  ])('%j does not equal %j', (one, other) => {
    expect(sameJson(one, other)).toBe(false)
    expect(sameJson(other, one)).toBe(false)
  })
})
