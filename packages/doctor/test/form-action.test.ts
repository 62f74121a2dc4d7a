import { describe, expect, test } from 'vitest'
import { allowsForm } from '../src/form-action.js'

const page = 'https://wallet.example/consent/1'

describe('form-action', () => {
  test.each([
    ["default-src 'self'", 'https://shop.example/back', true],
    ["form-action 'self'", 'https://shop.example/back', false],
    ["form-action 'self'", 'https://wallet.example/back', true],
    ["form-action 'none'", 'https://wallet.example/back', false],
    ['form-action', 'https://wallet.example/back', false],
    ["default-src 'none'; Form-Action 'self' https://shop.example", 'https://shop.example/b', true],
    ['form-action https://shop.example', 'https://shop.example:8443/b', false],
    ['form-action https://shop.example:*', 'https://shop.example:8443/b', true],
    ['form-action https://shop.example:443', 'https://shop.example/b', true],
    ['form-action shop.example', 'https://shop.example/b', true],
    ['form-action *.example', 'https://shop.example/b', true],
    ['form-action *.shop.example', 'https://shop.example/b', false],
    ['form-action https:', 'https://shop.example/b', true],
    ['form-action https:', 'com.example.shop:/b', false],
    ['form-action com.example.shop:', 'com.example.shop:/b', true],
    ['form-action *', 'https://shop.example/b', true],
    ['form-action *', 'com.example.shop:/b', false],
    ["form-action *, form-action 'self'", 'https://shop.example/b', false],
  ])('%s, to %s: %s', (policy, target, allowed) => {
    expect(allowsForm(policy, page, target)).toBe(allowed)
  })
})
