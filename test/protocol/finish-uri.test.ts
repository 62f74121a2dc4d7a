import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { finishUriProblem, withParameters } from '../../src/protocol/finish.js'

/** The page from which the browser is redirected. */
const consentPage = 'https://wallet.example/consent/42'

describe('a finish URI', () => {
  test.each([
    'https://shop.example',
    'https://shop.example/back',
    'https://shop.example:8443/back?order=17',
    'https://shop.example/back?',
    'https://shop.example/back?state=a&state=b&',
    'https://shop.example/?refresh=1&hashed=2&interact=3&HASH=4',
    'http://localhost/back',
    'http://localhost:3000/back',
    'http://127.0.0.1:49152/back',
    'http://[::1]:3000/back',
    'com.example.shop:/back',
    'com.example.shop://back',
    'com.example.shop:back?order=17',
    'org.example-site.app+beta:/back',
  ])('accepts %s', (uri) => {
    expect(finishUriProblem(uri)).toBeUndefined()
  })

  test.each([
    ['a fragment', 'https://shop.example/back#part'],
    ['an empty fragment', 'https://shop.example/back#'],
    ['a fragment in an app scheme', 'com.example.shop:/back#part'],
    ['plain http', 'http://shop.example/back'],
    ['plain http to a host that begins with localhost', 'http://localhost.evil.example/'],
    ['a javascript URI', 'javascript:alert(1)'],
    ['a javascript URI in upper case', 'JavaScript:alert(1)'],
    ['a javascript URI with slashes', 'javascript://shop.example/%0aalert(1)'],
    ['a data URI', 'data:text/html,x'],
    ['a file URI', 'file:///etc/passwd'],
    ['a blob URI', 'blob:https://shop.example/1'],
    ['an about URI', 'about:blank'],
    ['a mail URI', 'mailto:a@shop.example'],
    ['a websocket URI', 'wss://shop.example/'],
    ['an app scheme without a domain', 'myshop:/back'],
    ['an app scheme that ends in a dot', 'com.:/back'],
    ['user information', 'https://shop@evil.example/back'],
    ['user information in an app scheme', 'com.example.shop://a@b/'],
    ['a host disguised as user information', 'https://shop.example:x@evil.example/'],
    ['a relative URI', '/back'],
    ['a scheme-relative URI', '//shop.example/back'],
    ['an empty string', ''],
    ['a space', 'https://shop.example/ba ck'],
    ['a line break', 'https://shop.example/\r\nSet-Cookie: a=b'],
    ['a tab in the scheme', 'java\tscript:alert(1)'],
    ['a backslash', 'https:\\\\shop.example/back'],
    ['a non-ASCII letter', 'https://shop.example/zurück'],
    ['a semicolon in the host', 'https://a;sandbox'],
    ['an escaped semicolon in the host', 'https://a%3Bsandbox/back'],
    ['a comma in the host', 'https://shop.example,evil.example/back'],
    ['a quotation mark in the host', "https://'unsafe-inline'/back"],
    ['a wildcard as the host', 'https://*/back'],
    ['more than 2048 characters', `https://shop.example/${'a'.repeat(2028)}`],
  ])('rejects %s', (_, uri) => {
    expect(finishUriProblem(uri)).toEqual(expect.any(String))
  })

  test.each([
    'https://shop.example/?hash=x',
    'https://shop.example/?hash',
    'https://shop.example/?a=b&interact_ref=x',
    'https://shop.example/?result=grant_rejected',
    'https://shop.example/?h%61sh=x',
    'https://shop.example/?%72esult=x',
    'https://shop.example/?interact%5Fref=x',
    'com.example.shop:/back?hash=x',
  ])('rejects a reserved query parameter: %s', (uri) => {
    expect(finishUriProblem(uri)).toContain('parameter')
  })

  // WHATWG resolves these without a base, but a browser on a page of the same scheme reads them as relative.
  test.each(['https:shop.example/back', 'https:/shop.example/back', 'https:back', 'HTTPS:/logout'])(
    'rejects a missing double slash: %s',
    (uri) => {
      expect(finishUriProblem(uri)).toEqual(expect.any(String))
    },
  )

  test('leads to the same place from the page where the browser is', () => {
    const uris = fc
      .tuple(
        fc.constantFrom('https:', 'http:', 'HTTPS:', 'com.example.shop:', 'javascript:', ''),
        fc.constantFrom('//', '/', '', '///', '\\\\', '//user@'),
        fc.constantFrom('shop.example', 'localhost:3000', '127.0.0.1', 'wallet.example', ''),
        fc.constantFrom('', '/', '/back', '//back', '/..', '?a=b', '/back?a#b'),
      )
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(uris, (uri) => {
        fc.pre(finishUriProblem(uri) === undefined)
        const redirect = withParameters(uri, [['hash', 'x']])
        expect(new URL(redirect, consentPage).href).toBe(new URL(redirect).href)
      }),
      { numRuns: 1000 },
    )
  })

  test('the problem never quotes the URI', () => {
    const marked = fc
      .tuple(fc.constantFrom('', 'https://', 'http://', 'x:', 'javascript:'), fc.string())
      .map(([start, rest]) => `${start}shibboleth${rest}`)
    fc.assert(
      fc.property(marked, (uri) => {
        expect(finishUriProblem(uri) ?? '').not.toContain('shibboleth')
      }),
      { numRuns: 500 },
    )
  })
})

describe('adding parameters', () => {
  test.each([
    ['https://shop.example', 'https://shop.example?hash=h&interact_ref=r'],
    ['https://shop.example/', 'https://shop.example/?hash=h&interact_ref=r'],
    ['https://shop.example/back?a=b', 'https://shop.example/back?a=b&hash=h&interact_ref=r'],
    ['https://shop.example/back?', 'https://shop.example/back?hash=h&interact_ref=r'],
    ['https://shop.example/back?a=b&', 'https://shop.example/back?a=b&hash=h&interact_ref=r'],
    ['com.example.shop:back', 'com.example.shop:back?hash=h&interact_ref=r'],
  ])('turns %s into %s', (uri, expected) => {
    const parameters = [
      ['hash', 'h'],
      ['interact_ref', 'r'],
    ] as const
    expect(withParameters(uri, parameters)).toBe(expected)
  })

  test('keeps the client’s URI byte for byte, and the added parameters can be read back', () => {
    const odd = fc.constantFrom('%7e', '%7E', 'a%2fb', '+', '%20', "'", '(x)', 'A=b;c', '~', '..')
    const uris = fc
      .tuple(
        fc.constantFrom(
          'https://SHOP.example:443',
          'https://shop.example/./x',
          'com.example.shop:x',
        ),
        fc.array(odd, { maxLength: 3 }),
        fc.constantFrom('', '?', '?&', '?a', '?a=%7e&', '?a=b+c'),
      )
      .map(([start, path, query]) => `${start}/${path.join('')}${query}`)
    const value = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.base64String({ maxLength: 48 }),
    )
    fc.assert(
      fc.property(uris, value, value, (uri, hash, interactRef) => {
        const redirect = withParameters(uri, [
          ['hash', hash],
          ['interact_ref', interactRef],
        ])
        expect(redirect.startsWith(uri)).toBe(true)
        const { searchParams } = new URL(redirect)
        expect(searchParams.getAll('hash')).toEqual([hash])
        expect(searchParams.getAll('interact_ref')).toEqual([interactRef])
      }),
      { numRuns: 500 },
    )
  })
})
