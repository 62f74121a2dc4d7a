import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { freePort } from '../../examples/wallet/free-port.js'
import { variantsOf } from '../../src/cli/checks/servers.js'
import { clockProblem } from '../../src/cli/checks/wallet-address.js'
import type { Network } from '../../src/cli/network.js'
import { ran } from '../support/doctor.js'
import { jwkOf, testKey } from '../support/keys.js'

const folder = mkdtempSync(join(tmpdir(), 'program-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileWith(text: string): string {
  const file = join(folder, 'key')
  writeFileSync(file, text)
  return file
}

const url = 'https://wallet.example/alice'

/** A network in which every request fails with the code of a system or TLS error. */
function failing(code: string): Network {
  return {
    fetch: () =>
      Promise.reject(
        new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }),
      ),
    certificateDays: async () => 90,
  }
}

describe('the program', () => {
  test('prints how to use it, on request', async () => {
    const { code, out } = await ran(['--help'])
    expect([code, out]).toEqual([0, expect.stringContaining('Usage: open-payments-server doctor')])
  })

  test.each([
    ['no command', []],
    ['another command', ['nurse', url]],
    ['no wallet address', ['doctor']],
    ['two wallet addresses', ['doctor', url, url]],
    ['an unknown option', ['doctor', '--verbose', url]],
    ['a wallet address without a scheme', ['doctor', 'wallet.example/alice']],
    ['a wallet address with a query', ['doctor', `${url}?a=1`]],
    ['a time-out that is not a number', ['doctor', '--timeout', 'soon', url]],
    ['a time-out of 0', ['doctor', '--timeout', '0', url]],
    ['a client without a key', ['doctor', '--client', 'https://shop.example', url]],
    ['a key that does not exist', ['doctor', '--client', url, '--key', '/nowhere', url]],
  ])('refuses %s with the exit code 2', async (_, args) => {
    const { code, out, err } = await ran(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('Usage:')
  })

  test('refuses a file without a key', async () => {
    const args = ['doctor', '--client', url, '--key', fileWith('nothing'), url]
    expect(await ran(args)).toMatchObject({ code: 2, err: expect.stringMatching(/^--key must be/) })
  })

  test('does not connect to this machine unless it is allowed', async () => {
    for (const host of [
      'http://localhost',
      'https://localhost',
      'https://127.0.0.1',
      'https://[::1]',
    ]) {
      const { code, err } = await ran(['doctor', `${host}:${await freePort()}/alice`])
      expect([code, err]).toEqual([2, expect.stringContaining('use --allow-private')])
    }
  })

  test('says that a wallet address is unreachable', async () => {
    const there = `http://localhost:${await freePort()}/alice`
    const { code, err } = await ran(['doctor', '--allow-private', there])
    expect([code, err]).toEqual([2, expect.stringContaining('refuses connections')])
  })

  test.each([
    ['ENOTFOUND', 'has no address in DNS'],
    ['ECONNRESET', 'closed the connection'],
    ['EPROTO', 'EPROTO'],
  ])('names the cause of %s', async (cause, words) => {
    const { code, err } = await ran(['doctor', '--allow-private', url], failing(cause))
    expect([code, err]).toEqual([2, expect.stringContaining(words)])
  })

  test.each(['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'reports the certificate error %s as a problem, with the lines to change',
    async (cause) => {
      const { code, out } = await ran(['doctor', '--allow-private', url], failing(cause))
      expect(code).toBe(1)
      expect(out).toContain('PROBLEM wallet-address')
      expect(out).toContain(cause)
      expect(out).toContain('fix   ssl_certificate')
      expect(out).toContain('Not checked, because wallet-address did not pass')
    },
  )

  test('stops waiting at the time-out', async () => {
    const silent: Network = {
      fetch: (_input, init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
        }),
      certificateDays: async () => 90,
    }
    const { code, err } = await ran(['doctor', '--allow-private', '--timeout', '0.02', url], silent)
    expect([code, err]).toEqual([2, expect.stringContaining('did not respond in time')])
  })

  test('reads at most 1 MiB of a response', async () => {
    const endless: Network = {
      fetch: async () => new Response('x'.repeat(1024 * 1024 + 1)),
      certificateDays: async () => 90,
    }
    const { code, out } = await ran(['doctor', '--allow-private', url], endless)
    expect([code, out]).toEqual([1, expect.stringContaining('more than 1 MiB')])
  })

  test('refuses a key that the client does not publish', async () => {
    const { privateKey } = testKey('shop')
    const file = fileWith(String(privateKey.export({ type: 'pkcs8', format: 'pem' })))
    const others: Network = {
      fetch: async () => Response.json({ keys: [jwkOf(testKey('other'))] }),
      certificateDays: async () => 90,
    }
    const args = ['doctor', '--allow-private', '--client', url, '--key', file, url]
    const { code, err } = await ran(args, others)
    expect([code, err]).toEqual([2, expect.stringContaining('the key is not in the key set')])
  })

  test('shows its progress on a terminal only, and removes it', async () => {
    const args = ['doctor', '--allow-private', url]
    const network = failing('CERT_HAS_EXPIRED')
    expect((await ran(args, network)).err).toBe('')
    const { err } = await ran(args, network, true)
    expect(err).toContain('wallet-address')
    expect(err.endsWith('\r\x1b[K')).toBe(true)
  })
})

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
