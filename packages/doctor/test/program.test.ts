import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { freePort } from 'open-payments-programs'
import { jwkOf, testKey } from 'open-payments-test-support/keys'
import { runs } from 'open-payments-test-support/runs'
import { unicodeText } from 'open-payments-test-support/unicode-text'
import { afterAll, describe, expect, test } from 'vitest'
import { variantsOf } from '../src/checks/refusal.js'
import { clockProblem } from '../src/checks/wallet-address.js'
import type { DoctorNetwork } from '../src/network.js'
import { ran } from './support/doctor.js'

const folder = mkdtempSync(join(tmpdir(), 'program-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileWith(text: string): string {
  const file = join(folder, 'key')
  writeFileSync(file, text)
  return file
}

const url = 'https://wallet.example/alice'

const machine = { certificateDays: async () => 90, addresses: async () => ['93.184.216.34'] }

/** A network in which every request fails with the code of a system or TLS error. */
function failing(code: string): DoctorNetwork {
  return {
    fetch: () =>
      Promise.reject(
        new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }),
      ),
    ...machine,
  }
}

describe('the program', () => {
  test('prints how to use it, on request', async () => {
    const { code, out } = await ran(['--help'])
    expect([code, out]).toEqual([0, expect.stringContaining('Usage: open-payments-doctor')])
  })

  test.each([
    ['no wallet address', []],
    ['two wallet addresses', [url, url]],
    ['an unknown option', ['--verbose', url]],
    ['a wallet address without a scheme', ['wallet.example/alice']],
    ['a wallet address with a query', [`${url}?a=1`]],
    ['a time-out that is not a number', ['--timeout', 'soon', url]],
    ['a time-out of 0', ['--timeout', '0', url]],
    ['a client without a key', ['--client', 'https://shop.example', url]],
    ['a key that does not exist', ['--client', url, '--key', '/nowhere', url]],
  ])('refuses %s with the exit code 2', async (_, args) => {
    const { code, out, err } = await ran(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^See .* --help\.$/m)
  })

  test.each(['nothing', '{', '{}', '{ "privateKey": "nothing" }', '{ "privateKey": 1 }'])(
    'refuses a file without a key: %s',
    async (text) => {
      const args = ['--client', url, '--key', fileWith(text), url]
      expect(await ran(args)).toMatchObject({
        code: 2,
        err: expect.stringMatching(/^--key must be/),
      })
    },
  )

  test('does not connect to this machine unless it is allowed', async () => {
    for (const host of [
      'http://localhost',
      'https://localhost',
      'https://127.0.0.1',
      'https://[::1]',
    ]) {
      const { code, err } = await ran([`${host}:${await freePort()}/alice`])
      expect([code, err]).toEqual([2, expect.stringContaining('use --allow-private')])
    }
  })

  test('says that a wallet address is unreachable', async () => {
    const there = `http://localhost:${await freePort()}/alice`
    const { code, err } = await ran(['--allow-private', there])
    expect([code, err]).toEqual([2, expect.stringContaining('refuses connections')])
  })

  test.each([
    ['ENOTFOUND', 'has no address in DNS'],
    ['ECONNRESET', 'closed the connection'],
    ['EPROTO', 'EPROTO'],
  ])('names the cause of %s', async (cause, words) => {
    const { code, err } = await ran(['--allow-private', url], failing(cause))
    expect([code, err]).toEqual([2, expect.stringContaining(words)])
  })

  test.each(['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'reports the certificate error %s as a problem, with the lines to change',
    async (cause) => {
      const { code, out } = await ran(['--allow-private', url], failing(cause))
      expect(code).toBe(1)
      expect(out).toContain('PROBLEM wallet-address')
      expect(out).toContain(cause)
      expect(out).toContain('fix   ssl_certificate')
      expect(out).toMatch(/^ {2}also {2}\d+ checks not possible\.$/m)
    },
  )

  test('stops waiting at the time-out', async () => {
    const silent: DoctorNetwork = {
      fetch: (_input, init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
        }),
      ...machine,
    }
    const { code, err } = await ran(['--allow-private', '--timeout', '0.02', url], silent)
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('did not respond to GET https://wallet.example/alice within 0.02 s'),
    ])
  })

  test('reads at most 1 MiB of a response', async () => {
    const endless: DoctorNetwork = {
      fetch: async () => new Response('x'.repeat(1024 * 1024 + 1)),
      ...machine,
    }
    const { code, out } = await ran(['--allow-private', url], endless)
    expect([code, out]).toEqual([1, expect.stringContaining('more than 1 MiB')])
  })

  const { privateKey } = testKey('shop')
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  test.each([
    ['in PEM', pem],
    ['of the command-line client', JSON.stringify({ keyId: 'key-1', privateKey: pem })],
    ['as a JWK', JSON.stringify(privateKey.export({ format: 'jwk' }))],
  ])('reads a key %s, and refuses one that the client does not publish', async (_, text) => {
    const file = fileWith(text)
    const others: DoctorNetwork = {
      fetch: async () => Response.json({ keys: [jwkOf(testKey('other'))] }),
      ...machine,
    }
    const args = ['--allow-private', '--client', url, '--key', file, url]
    const { code, err } = await ran(args, others)
    expect([code, err]).toEqual([2, expect.stringContaining('the key is not in the key set')])
  })

  test('shows its progress on a terminal only, and removes it', async () => {
    const args = ['--allow-private', url]
    const network = failing('CERT_HAS_EXPIRED')
    expect((await ran(args, network)).err).toBe('')
    const { err } = await ran(args, network, true)
    expect(err).toContain('wallet-address')
    expect(err.endsWith('\r\x1b[K')).toBe(true)
  })
})

/** Control characters but the line feed, line separators, and the marks that change the order of shown text. */
const unsafe = /[^\P{Cc}\n]|[\u2028\u2029]|\p{Bidi_Control}/u

/** Everywhere that a hostile wallet can put its text. */
const hostileReplies: Readonly<Record<string, (text: string, url: string) => Response>> = {
  'the body of an error': (text) => Response.json({ error: text }, { status: 400 }),
  'a page of Express': (text, url) =>
    url.includes('/auth') || url.includes('/op')
      ? new Response(`Cannot POST /x${text}`, { status: 404 })
      : document({}),
  'the title of an error': (text, url) =>
    url.includes('/auth') ? new Response(`<title>${text}</title>`, { status: 502 }) : document({}),
  'the message of a gateway': (text, url) =>
    url.includes('/auth') ? Response.json({ message: text }, { status: 403 }) : document({}),
  'the header of a redirect': (text) =>
    new Response('', { status: 302, headers: { location: headerOf(text) } }),
  'a media type': (text) => new Response('{}', { headers: { 'content-type': headerOf(text) } }),
  'the id of the account': (text) => document({ id: text }),
  'its servers': (text) =>
    document({ authServer: `https://wallet.example/${text}`, resourceServer: text }),
  'the endpoint of discovery': (text, url) =>
    url.includes('/auth')
      ? Response.json({ grant_request_endpoint: text, error: { code: text, description: text } })
      : document({}),
}

/** Header fields carry any byte but line breaks and NUL. */
function headerOf(text: string): string {
  return text.replace(/[^\p{Cc}\p{ASCII}]|[\0\r\n]/gu, '').trim()
}

function document(more: object): Response {
  const servers = {
    authServer: 'https://wallet.example/auth',
    resourceServer: 'https://wallet.example/op',
  }
  return Response.json({ id: url, assetCode: 'USD', assetScale: 2, ...servers, ...more })
}

/** Text of a wallet, among it control sequences, marks, and lines like those of the report. */
const hostileText = fc
  .array(
    fc.oneof(
      unicodeText({ maxLength: 5 }),
      fc.string({
        unit: fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
      }),
      fc.constantFrom(
        '\x1b[2J\x1b[H',
        '\r',
        '\x9b2J',
        '\u202e',
        '\u2066',
        '\u061c',
        '\x7f',
        '\u2028',
      ),
      fc.constant('\nALL CHECKS PASSED\n'),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join(''))

describe('the text of a wallet', () => {
  const cases = Object.entries(hostileReplies).map(
    ([where, reply]) =>
      [
        where,
        (text: string): DoctorNetwork => ({
          fetch: async (input) => reply(text, String(input)),
          ...machine,
        }),
      ] as const,
  )
  test.each([
    ...cases,
    ['a certificate', (text: string) => ({ ...failing('CERT_HAS_EXPIRED'), ...failingWith(text) })],
  ] as const)('in %s contains no control characters and begins no line', async (_, network) => {
    await fc.assert(
      fc.asyncProperty(hostileText, fc.boolean(), async (text, isJson) => {
        const args = ['--allow-private', ...(isJson ? ['--json'] : []), url]
        const { out, err } = await ran(args, network(text))
        expect(out + err).not.toMatch(unsafe)
        expect(`${out}\n${err}`).not.toMatch(/^ALL CHECKS PASSED/m)
        if (isJson && out !== '') JSON.parse(out)
      }),
      { numRuns: runs(300) },
    )
  })

  test('is the same for readers of the JSON report', async () => {
    const network: DoctorNetwork = {
      fetch: async () => new Response('{}', { headers: { 'content-type': '\x1b[2J\x9b\x7f' } }),
      ...machine,
    }
    const { out } = await ran(['--allow-private', '--json', url], network)
    expect(out).toContain('Content-Type \\u001b[2J\\u009b\\u007f')
    expect(JSON.parse(out).findings[0].what).toContain('Content-Type \x1b[2J\x9b\x7f')
  })
})

/** A network in which every request fails with the text of a certificate. */
function failingWith(text: string): Pick<DoctorNetwork, 'fetch'> {
  const code = 'ERR_TLS_CERT_ALTNAME_INVALID'
  const cause = Object.assign(new Error(`is not in the names: DNS:${text}`), { code })
  return { fetch: () => Promise.reject(new TypeError('fetch failed', { cause })) }
}

describe('the doctor', () => {
  test('tries the URLs that a server behind a proxy may take for its own', () => {
    expect(variantsOf('https://wallet.example/payments/auth')).toEqual(
      expect.arrayContaining([
        'http://wallet.example/payments/auth',
        'https://wallet.example/payments/auth/',
        'https://wallet.example/auth',
        'http://wallet.example/auth',
        'https://wallet.example/',
      ]),
    )
    expect(variantsOf('https://wallet.example/auth')).not.toContain('https://wallet.example/auth')
  })

  test.each([
    [0, undefined],
    [-4_000, undefined],
    [30_000, 'advice'],
    [-30_000, 'advice'],
    [61_000, 'problem'],
    [-400_000, 'problem'],
  ])('judges a clock that is %i ms ahead as %s', (offsetMs, severity) => {
    expect(clockProblem(offsetMs)?.severity).toBe(severity)
  })
})
