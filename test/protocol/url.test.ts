import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalUrl, isSecure, parseUrl } from '../../src/protocol/url.js'
import { isLoopback } from '../../src/util/loopback.js'
import { runs } from '../support/runs.js'
import { unicodeText } from '../support/unicode-text.js'

const unreserved = /^[A-Za-z0-9\-._~]$/

/** URLs in parts, so that most of them parse and every rule applies often. */
const urls = fc
  .tuple(
    fc.constantFrom('https://', 'HTTPS://', 'http://', 'https:', 'ftp://'),
    fc.constantFrom('', '', '', 'user@', 'user:pass@'),
    fc.constantFrom(
      'wallet.example',
      'Wallet.EXAMPLE',
      'localhost',
      '127.0.0.1',
      '[::1]',
      'h.',
      'h',
    ),
    fc.constantFrom('', '', ':443', ':80', ':8080', ':'),
    fc.array(
      fc.constantFrom(
        '/',
        '/alice',
        '/%61',
        '/%2F',
        '/.',
        '/..',
        '/{x}',
        '/a;b,c',
        '/%c3%a9',
        '/"',
      ),
      { maxLength: 4 },
    ),
    fc.constantFrom('', '', '', '?', '?a=b', '#', '#f'),
  )
  .map(
    ([scheme, user, host, port, path, rest]) => scheme + user + host + port + path.join('') + rest,
  )

describe('canonicalUrl', () => {
  test.each([
    ['https://wallet.example', 'https://wallet.example'],
    ['https://wallet.example/', 'https://wallet.example'],
    ['https://wallet.example/alice', 'https://wallet.example/alice'],
    ['https://wallet.example/alice/', 'https://wallet.example/alice'],
    ['https://Wallet.EXAMPLE/Alice', 'https://wallet.example/Alice'],
    ['HTTPS://wallet.example/alice', 'https://wallet.example/alice'],
    ['https://wallet.example:443/alice', 'https://wallet.example/alice'],
    ['https://wallet.example:/alice', 'https://wallet.example/alice'],
    ['https://wallet.example:8443/alice', 'https://wallet.example:8443/alice'],
    ['https://wallet.example/a/./b', 'https://wallet.example/a/b'],
    ['https://wallet.example/bob/../alice', 'https://wallet.example/alice'],
    ['https://wallet.example/..', 'https://wallet.example'],
    ['https://wallet.example/@alice', 'https://wallet.example/@alice'],
    ['https://wallet.example/a;b,c=d', 'https://wallet.example/a;b,c=d'],
    ['https://wallet.example/caf%C3%A9', 'https://wallet.example/caf%C3%A9'],
    ['https://wallet.example/a%2Fb', 'https://wallet.example/a%2Fb'],
    ['https://xn--caf-dma.example/alice', 'https://xn--caf-dma.example/alice'],
    ['https://192.0.2.1/alice', 'https://192.0.2.1/alice'],
    ['http://localhost/alice', 'http://localhost/alice'],
    ['http://localhost:80/alice', 'http://localhost/alice'],
    ['http://localhost:3000/alice/', 'http://localhost:3000/alice'],
    ['http://127.0.0.1:3000/alice', 'http://127.0.0.1:3000/alice'],
    ['http://[::1]:3000/alice', 'http://[::1]:3000/alice'],
    ['http://[0:0:0:0:0:0:0:1]/alice', 'http://[::1]/alice'],
  ])('canonicalizes %s to %s', (text, canonical) => {
    expect(canonicalUrl(text)).toBe(canonical)
  })

  test.each([
    ['user information', 'https://alice@wallet.example/'],
    ['a user and a password', 'https://alice:secret@wallet.example/'],
    ['a password without a user', 'https://:secret@wallet.example/'],
    ['a host disguised as user information', 'https://wallet.example:x@evil.example/alice'],
    ['a query', 'https://wallet.example/alice?a=b'],
    ['an empty query', 'https://wallet.example/alice?'],
    ['a fragment', 'https://wallet.example/alice#a'],
    ['an empty fragment', 'https://wallet.example/alice#'],
    ['a trailing dot after the host', 'https://wallet.example./alice'],
    ['a trailing dot before a port', 'https://wallet.example.:8443/alice'],
    ['plain http', 'http://wallet.example/alice'],
    ['plain http to another loopback address', 'http://127.0.0.2/alice'],
    ['plain http to a host that begins with localhost', 'http://localhost.evil.example/alice'],
    ['plain http to a host that ends in localhost', 'http://evil.localhost/alice'],
    ['plain http to a local network address', 'http://0.0.0.0/alice'],
    ['another scheme', 'ftp://wallet.example/alice'],
    ['a javascript URI', 'javascript:alert(1)'],
    ['a payment pointer', '$wallet.example/alice'],
    ['a missing scheme', 'wallet.example/alice'],
    ['a missing host', 'https://'],
    ['a relative URL', '/alice'],
    ['a scheme-relative URL', '//wallet.example/alice'],
    ['an empty string', ''],
    ['a percent-escaped letter', 'https://wallet.example/%61lice'],
    ['a percent-escaped upper-case letter', 'https://wallet.example/%41lice'],
    ['a percent-escaped dot segment', 'https://wallet.example/bob/%2e%2e/alice'],
    ['a percent-escaped letter in the host', 'https://%77allet.example/alice'],
    ['a backslash', 'https://wallet.example\\alice'],
    ['a backslash before the host', 'https:\\\\wallet.example/alice'],
    ['a space', 'https://wallet.example/a lice'],
    ['a leading space', ' https://wallet.example/alice'],
    ['a tab, which WHATWG would remove', 'https://wallet.example/al\tice'],
    ['a line break, which WHATWG would remove', 'https://wallet.example/al\nice'],
    ['a non-ASCII letter', 'https://wallet.example/café'],
    ['a non-ASCII host', 'https://café.example/alice'],
    ['a full-width dot', 'https://wallet\uff0eexample/alice'],
    ['an empty segment', 'https://wallet.example//alice'],
    ['an empty segment in the middle', 'https://wallet.example/a//b'],
    ['two slashes at the end', 'https://wallet.example/alice//'],
    ['two slashes as the path', 'https://wallet.example//'],
    ['a port out of range', 'https://wallet.example:65536/alice'],
    ['a percent-escaped delimiter in the host', 'https://wallet.example%2Fevil.example/alice'],
  ])('refuses %s', (_, text) => {
    expect(canonicalUrl(text)).toBeUndefined()
  })

  test('refuses exactly the escapes of characters that need none, in upper and lower case', () => {
    for (let code = 0; code < 256; code++) {
      const hex = code.toString(16).padStart(2, '0')
      const mixed = hex.charAt(0) + hex.charAt(1).toUpperCase()
      for (const escaped of [`%${hex}`, `%${hex.toUpperCase()}`, `%${mixed}`]) {
        const text = `https://wallet.example/a${escaped}b`
        const needless = unreserved.test(String.fromCharCode(code))
        expect(canonicalUrl(text), text).toBe(needless ? undefined : text)
      }
    }
  })

  test('accepts 2048 characters but not one more', () => {
    const prefix = 'https://wallet.example/'
    const longest = prefix + 'a'.repeat(2048 - prefix.length)
    expect(canonicalUrl(longest)).toBe(longest)
    expect(canonicalUrl(`${longest}a`)).toBeUndefined()
  })

  test('returns a canonical URL', () => {
    fc.assert(
      fc.property(urls, (text) => {
        const canonical = canonicalUrl(text)
        fc.pre(canonical !== undefined)
        expect(canonicalUrl(canonical)).toBe(canonical)
      }),
      { numRuns: runs(3000) },
    )
  })

  test('returns a URL within the limit, even when it escapes characters', () => {
    const text = `https://wallet.example/${'{'.repeat(2000)}`
    expect(canonicalUrl(text)?.length ?? 0).toBeLessThanOrEqual(2048)
  })

  test('returns a URL of the same resource', () => {
    fc.assert(
      fc.property(urls, (text) => {
        const canonical = canonicalUrl(text)
        fc.pre(canonical !== undefined)
        const [named, answered] = [new URL(text), new URL(canonical)]
        expect(answered.origin).toBe(named.origin)
        expect(answered.pathname.replace(/\/$/, '')).toBe(named.pathname.replace(/\/$/, ''))
        expect(answered.protocol === 'https:' || isLoopback(answered)).toBe(true)
      }),
      { numRuns: runs(1000) },
    )
  })

  test('returns a result for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), unicodeText(), fc.webUrl()), (text) => {
        expect(() => canonicalUrl(text)).not.toThrow()
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('parseUrl', () => {
  test('keeps the query and fragment', () => {
    expect(parseUrl('https://shop.example/back?a=b#c')?.search).toBe('?a=b')
  })

  test('accepts only names and addresses as the host of an http URL', () => {
    // `#`, `/` and `?` end the host.
    const characters = [...Array(95).keys()].map((i) => String.fromCharCode(i + 0x20))
    const allowed = characters.filter((one) => parseUrl(`https://a${one}b.example/`) !== undefined)
    expect(allowed.join('')).toBe(
      '#-./0123456789?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz',
    )
    for (const host of [
      '192.0.2.1',
      '[2001:db8::1]',
      '[::ffff:192.0.2.1]',
      'a_b.example',
      'localhost',
    ]) {
      expect(parseUrl(`https://${host}:8443/`), host).toBeDefined()
    }
    for (const host of ['a;sandbox', 'a%3Bsandbox', "'self'", '*', 'a,b', 'a(b)', '$', '~']) {
      expect(parseUrl(`https://${host}/`), host).toBeUndefined()
    }
  })

  test.each([
    'https://a@h/',
    'https://:b@h/',
    'app.example://a@h/',
    'https://h/é',
    'https://h/ ',
    'h',
  ])('refuses %j', (text) => {
    expect(parseUrl(text)).toBeUndefined()
  })
})

describe('isSecure', () => {
  test.each([
    ['https://wallet.example', true],
    ['https://localhost', true],
    ['http://localhost:3000', true],
    ['http://127.0.0.1', true],
    ['http://2130706433', true],
    ['http://[::1]', true],
    ['http://wallet.example', false],
    ['http://127.0.0.1.evil.example', false],
    ['http://[::ffff:127.0.0.1]', false],
    ['ws://localhost', false],
    ['app.example://localhost', false],
  ])('of %s is %s', (text, secure) => {
    expect(isSecure(new URL(text))).toBe(secure)
  })
})
