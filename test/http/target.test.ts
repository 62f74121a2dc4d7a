import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  doubledPrefix,
  publicUrl,
  resolveTarget,
  serverUrl,
  verifiedFor,
} from '../../src/http/target.js'
import { readInput } from '../../src/util/input.js'
import { invalidInput } from '../support/invalid-input.js'
import { runs } from '../support/runs.js'

const wallet = publicUrl('https://wallet.example/auth')
const rootUrl = publicUrl('https://wallet.example')

function resolve(received: string, url = wallet, strippedPrefix = '') {
  const target = resolveTarget(received, url, strippedPrefix)
  return target.ok ? `${target.value.target} -> ${target.value.path}` : target.refusal
}

describe('the configured URL of a server', () => {
  test.each([
    ['https://wallet.example', 'https://wallet.example', ''],
    ['https://wallet.example/', 'https://wallet.example', ''],
    ['https://wallet.example/auth', 'https://wallet.example', '/auth'],
    ['https://wallet.example/auth/', 'https://wallet.example', '/auth'],
    ['https://wallet.example:8443/a/b', 'https://wallet.example:8443', '/a/b'],
    ['https://wallet.example/caf%C3%A9', 'https://wallet.example', '/caf%C3%A9'],
    ['https://192.0.2.1/auth', 'https://192.0.2.1', '/auth'],
    ['http://localhost:3000/auth', 'http://localhost:3000', '/auth'],
    ['http://127.0.0.1:3000', 'http://127.0.0.1:3000', ''],
    ['http://[::1]:3000', 'http://[::1]:3000', ''],
  ])('%s is parsed into an origin and a path', (text, origin, basePath) => {
    expect(publicUrl(text)).toEqual({ origin, basePath })
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 17],
    ['a URL object', new URL('https://wallet.example')],
    ['an empty string', ''],
    ['a path', '/auth'],
    ['a host', 'wallet.example'],
    ['plain http', 'http://wallet.example/auth'],
    ['plain http to a private address', 'http://10.0.0.1/auth'],
    ['plain http to a name that looks local', 'http://localhost.example/auth'],
    ['plain http to all interfaces', 'http://0.0.0.0/auth'],
    ['another scheme', 'ftp://wallet.example/auth'],
    ['a scheme without a host', 'urn:example:wallet'],
    ['a query', 'https://wallet.example/auth?tenant=1'],
    ['an empty query', 'https://wallet.example/auth?'],
    ['a fragment', 'https://wallet.example/auth#top'],
    ['an empty fragment', 'https://wallet.example/auth#'],
    ['a user', 'https://user@wallet.example/auth'],
    ['a password', 'https://:secret@wallet.example/auth'],
    ['a space', 'https://wallet.example/my auth'],
    ['a trailing space', 'https://wallet.example/auth '],
    ['a line break', 'https://wallet.example/auth\n'],
    ['letters beyond ASCII', 'https://wallet.example/café'],
    ['a backslash', 'https://wallet.example\\auth'],
    ['two slashes', 'https://wallet.example//auth'],
    ['two trailing slashes', 'https://wallet.example/auth//'],
    ['an escaped slash', 'https://wallet.example/a%2Fb'],
    ['an escaped backslash', 'https://wallet.example/a%5cb'],
    ['a quotation mark', 'https://wallet.example/a"b'],
    ['a comma', 'https://wallet.example/a,b'],
    ['a semicolon', 'https://wallet.example/a;b'],
    ['dot segments, which clients resolve', 'https://wallet.example/x/../auth'],
    ['escaped dot segments', 'https://wallet.example/x/%2e%2e/auth'],
    ['more than 2048 characters', `https://wallet.example/${'a'.repeat(2048)}`],
  ])('is rejected for %s', (_, text) => {
    expect(() => readInput('grantEndpoint', serverUrl, text)).toThrow(
      invalidInput('grantEndpoint', { message: expect.stringMatching(/^grantEndpoint /) }),
    )
  })
})

describe('a request target', () => {
  test.each([
    ['/auth', '/auth -> '],
    ['/auth/', '/auth/ -> /'],
    ['/auth?x=1', '/auth?x=1 -> '],
    ['/auth/continue/abc', '/auth/continue/abc -> /continue/abc'],
    ['/auth/continue/abc?x=/../', '/auth/continue/abc?x=/../ -> /continue/abc'],
    ['/auth/continue/abc?', '/auth/continue/abc? -> /continue/abc'],
    ['/auth/%41', '/auth/%41 -> /%41'],
    ['/auth/a%20b%C3%A9', '/auth/a%20b%C3%A9 -> /a%20b%C3%A9'],
    ['/auth/a.b/c..d/...', '/auth/a.b/c..d/... -> /a.b/c..d/...'],
    ['/auth?a//b', '/auth?a//b -> '],
    ['/auth?%2f%2e', '/auth?%2f%2e -> '],
  ])('below the configured URL is used exactly as received: %s', (received, expected) => {
    expect(resolve(received)).toBe(expected)
  })

  test.each([
    '/',
    '/aut',
    '/authx',
    '/authx/continue/abc',
    '/AUTH',
    '/Auth',
    '/x/auth',
    '/op?/auth',
  ])('outside the configured path is not served: %s', (received) => {
    expect(resolve(received)).toBe('route_unknown')
  })

  test.each([
    '/auth/.',
    '/auth/..',
    '/auth/./continue/x',
    '/auth/../auth',
    '/x/../auth',
    '/auth/continue/../token/x',
    '/auth/%2e',
    '/auth/%2E%2e/x',
    '/auth/.%2e/x',
    '/%2e/auth',
    '/auth//continue/x',
    '//auth',
    '//wallet.example/auth',
    '/auth/a%2fb',
    '/auth/a%2Fb',
    '/auth/a%5cb',
    '/auth/a%5Cb',
    '/auth/a\\b',
    '/auth\\continue',
  ])('that is ambiguous to parsers is not served: %s', (received) => {
    expect(resolve(received)).toBe('route_unknown')
    expect(resolve(received, rootUrl)).toBe('route_unknown')
  })

  test.each(['', ' ', '/auth /x', '/auth\t', '/auth\n', '/auth\0', '/auth/é', '/auth/\u007f'])(
    'that is not printable ASCII is refused: %j',
    (received) => {
      expect(resolve(received)).toBe('headers_invalid')
    },
  )

  test('of more than 4096 characters is refused', () => {
    const path = `/auth/${'a'.repeat(4090)}`
    expect(resolve(path)).toBe(`${path} -> ${path.slice(5)}`)
    expect(resolve(`${path}a`)).toBe('headers_invalid')
    expect(resolve(`/auth?${'a'.repeat(4091)}`)).toBe('headers_invalid')
    expect(resolve(`https://wallet.example${path}`)).toBe('headers_invalid')
  })

  test.each(['/auth#', '/auth/#x', '/auth/token/x#y', '/auth?x#y', '/auth?#'])(
    'with a fragment is not served: %s',
    (received) => {
      expect(resolve(received)).toMatch(/^(headers_invalid|route_unknown)$/)
    },
  )

  test('of a server at the root of its origin may be any path', () => {
    expect(resolve('/', rootUrl)).toBe('/ -> /')
    expect(resolve('/alice', rootUrl)).toBe('/alice -> /alice')
    expect(resolve('/?x', rootUrl)).toBe('/?x -> /')
  })
})

describe('a request target in absolute form', () => {
  test.each([
    ['https://wallet.example/auth', '/auth -> '],
    ['https://wallet.example/auth/token/x?y', '/auth/token/x?y -> /token/x'],
  ])('with the configured origin equals its path: %s', (received, expected) => {
    expect(resolve(received)).toBe(expected)
  })

  test('with only the configured origin is the root', () => {
    expect(resolve('https://wallet.example', rootUrl)).toBe('/ -> /')
    expect(resolve('https://wallet.example/', rootUrl)).toBe('/ -> /')
    expect(resolve('https://wallet.example?x=1', rootUrl)).toBe('/?x=1 -> /')
  })

  test.each([
    'http://wallet.example/auth',
    'https://evil.example/auth',
    'https://wallet.example.evil.example/auth',
    'https://wallet.example@evil.example/auth',
    'https://wallet.example:8443/auth',
    'https://user@wallet.example/auth',
    'https://wallet.exampleauth',
    'https:/wallet.example/auth',
    'https:wallet.example/auth',
    'auth',
    'wallet.example:443',
    '*',
    '?x=1',
    '#',
    '.',
    '\\auth',
    'ftp://wallet.example/auth',
  ])('with another origin or an invalid form is refused: %s', (received) => {
    expect(resolve(received)).toBe('headers_invalid')
    expect(resolve(received, rootUrl)).toBe('headers_invalid')
  })

  test('is not served with dot segments or double slashes', () => {
    expect(resolve('https://wallet.example//auth')).toBe('route_unknown')
    expect(resolve('https://wallet.example/x/../auth')).toBe('route_unknown')
  })
})

describe('the reason for a path that is not below the configured URL', () => {
  function reasonOf(received: string) {
    const target = resolveTarget(received, wallet, '')
    return target.ok ? undefined : target.reason
  }

  test('names the path without its query, and the URL', () => {
    expect(reasonOf('/payments/auth?state=1')).toBe(
      'the path /payments/auth is not below the configured URL https://wallet.example/auth',
    )
  })

  test('names at most 200 characters of the path', () => {
    expect(reasonOf(`/${'a'.repeat(4_000)}`)).toBe(
      `the path /${'a'.repeat(199)}… is not below the configured URL https://wallet.example/auth`,
    )
  })
})

describe('a prefix that a proxy strips', () => {
  const published = publicUrl('https://wallet.example/api/auth')

  test('is restored, and is part of the signed target', () => {
    expect(resolve('/auth/token/x?y', published, '/api')).toBe('/api/auth/token/x?y -> /token/x')
    expect(resolve('/auth', published, '/api')).toBe('/api/auth -> ')
  })

  test('is restored even if the received path starts with it, because the proxy strips one', () => {
    expect(resolve('/api/auth', published, '/api')).toBe('route_unknown')
    expect(resolve('/api/auth', published)).toBe('/api/auth -> ')
  })

  test('may be the complete path', () => {
    const url = publicUrl('https://wallet.example/api')
    expect(resolve('/', url, '/api')).toBe('/api/ -> /')
    expect(resolve('/token/x', url, '/api')).toBe('/api/token/x -> /token/x')
    expect(resolve('/?x', url, '/api')).toBe('/api/?x -> /')
  })

  test.each(['/../auth', '//auth', '/%2e%2e/auth', '/.'])(
    'does not let %s leave the configured path',
    (received) => {
      expect(resolve(received, published, '/api')).toBe('route_unknown')
    },
  )
})

describe('an arbitrary request target', () => {
  const character = fc.constantFrom(...'/.%2eEfF5c\\?#a:@h'.split(''), '/auth', 'https://', '..')
  const text = fc.array(character, { maxLength: 12 }).map((parts) => parts.join(''))

  test('is served only below the configured path, for every parser', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          text.map((tail) => `/auth/${tail}`),
        ),
        (received) => {
          fc.pre(!received.includes('#'))
          const resolution = resolveTarget(received, wallet, '')
          if (!resolution.ok) return
          const { target, path } = resolution.value
          const resolved = new URL(`https://wallet.example${target}`)
          expect(resolved.origin).toBe('https://wallet.example')
          expect(`${resolved.pathname}/`.startsWith('/auth/')).toBe(true)
          expect(target.startsWith('/auth')).toBe(true)
          expect(target.startsWith(`/auth${path}`)).toBe(true)
        },
      ),
      { numRuns: runs(5_000) },
    )
  })

  test('of another origin is refused, so that the request cannot choose the host', () => {
    fc.assert(
      fc.property(fc.webUrl(), (url) => {
        fc.pre(!url.startsWith('https://wallet.example'))
        expect(resolve(url)).toBe('headers_invalid')
      }),
      { numRuns: runs(200) },
    )
  })
})

describe('a prefix that the proxy has not removed', () => {
  test.each(['/payments', '/payments/auth?a=1', 'https://wallet.example/payments/auth'])(
    'is named in the reason of a 404: %s',
    (received) => {
      expect(doubledPrefix(received, '/payments')).toMatch(/leave strippedPrefix out$/)
    },
  )

  test.each([
    ['/auth', '/payments'],
    ['/paymentsx/auth', '/payments'],
    ['/payments/auth', ''],
  ])('is not named for %s and the prefix %j', (received, prefix) => {
    expect(doubledPrefix(received, prefix)).toBeUndefined()
  })
})

describe('what a signature was verified for', () => {
  const message = (host: string | undefined, target = '/auth') => ({
    method: 'POST',
    origin: 'https://wallet.example',
    target,
    fields: new Map(host === undefined ? [] : [['host', [host]]]),
    body: new Uint8Array(),
  })

  test.each([
    ['wallet.example', 'POST https://wallet.example/auth'],
    ['Wallet.Example', 'POST https://wallet.example/auth'],
    [undefined, 'POST https://wallet.example/auth'],
    ['pay.example', 'POST https://wallet.example/auth; Host is pay.example'],
    ['wallet.example:8443', 'POST https://wallet.example/auth; Host is wallet.example:8443'],
  ])('names the configured URL, and a Host that differs: %s', (host, text) => {
    expect(verifiedFor(message(host))).toBe(text)
  })

  test('contains the query, which proxies and runtimes rewrite', () => {
    const target = '/incoming-payments?wallet-address=https%3A%2F%2Fwallet.example%2Falice'
    expect(verifiedFor(message(undefined, target))).toBe(`POST https://wallet.example${target}`)
  })

  test('contains no more than 200 characters of each part that the client chooses', () => {
    const long = 'a'.repeat(300)
    const text = verifiedFor(message(long, `/${long}?cursor=${long}`))
    expect(text).toBe(
      `POST https://wallet.example/${'a'.repeat(199)}…?cursor=${'a'.repeat(192)}…; Host is ${'a'.repeat(200)}…`,
    )
  })
})
