import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refuseProblem } from '../../../src/http/body.js'
import { readListRequest } from '../../../src/http/resource-server/read.js'
import { canonicalUrl } from '../../../src/protocol/url.js'

const bob = 'https://wallet.example/bob'
const escaped = encodeURIComponent(bob)
const cursor = Buffer.from('1795000000000 namespac-001').toString('base64url')
const place = { at: 1_795_000_000_000, id: 'namespac-001' }

const read = (query: string) => readListRequest({ target: `/op/incoming-payments${query}` })
const page = (more: object) => ({ ok: true, value: { walletAddress: bob, page: more } })

describe('the query of a list', () => {
  test.each<readonly [query: string, page: object]>([
    ['', { forward: true, limit: 20 }],
    ['&first=1', { forward: true, limit: 1 }],
    ['&first=100', { forward: true, limit: 100 }],
    ['&last=7', { forward: false, limit: 7 }],
    [`&cursor=${cursor}`, { forward: true, limit: 20, cursor: place }],
    [`&first=10&cursor=${cursor}`, { forward: true, limit: 10, cursor: place }],
    [`&cursor=${cursor}&last=10`, { forward: false, limit: 10, cursor: place }],
    ['&', { forward: true, limit: 20 }],
  ])('specifies a wallet address and a page: "%s"', (more, expected) => {
    expect(read(`?wallet-address=${escaped}${more}`)).toEqual(page(expected))
  })

  test.each([
    `?wallet-address=${bob}`,
    `?first=20&wallet-address=${escaped}`,
    `?wallet%2Daddress=${escaped}`,
    '?wallet-address=https%3a%2f%2fWALLET.example:443%2fbob%2f',
  ])('may be escaped in different ways: %s', (query) => {
    expect(read(query)).toEqual(page({ forward: true, limit: 20 }))
  })

  test('is accepted as the published client encodes it, for any wallet address', () => {
    const url = fc
      .stringMatching(/^[a-z+&=;,%20'()*!$~.:@/-]{0,12}[a-z]$/)
      .map((path) => `https://wallet.example/${path}`)
      .filter((url) => canonicalUrl(url) !== undefined)
    fc.assert(
      fc.property(url, (walletAddress) => {
        const asked = new URL('https://wallet.example/op/incoming-payments')
        for (const [name, value] of Object.entries({ first: 3, 'wallet-address': walletAddress })) {
          asked.searchParams.set(name, value.toString())
        }
        expect(readListRequest({ target: asked.pathname + asked.search })).toEqual({
          ok: true,
          value: {
            walletAddress: canonicalUrl(walletAddress),
            page: { forward: true, limit: 3 },
          },
        })
      }),
      { numRuns: 300 },
    )
  })

  test.each<readonly [path: string, query: string]>([
    ['wallet-address', ''],
    ['wallet-address', '?'],
    ['wallet-address', '?first=1'],
    ['wallet-address', '?wallet-address'],
    ['wallet-address', '?wallet-address='],
    ['wallet-address', '?wallet-address=bob'],
    ['wallet-address', '?wallet-address=http%3A%2F%2Fwallet.example%2Fbob'],
    ['wallet-address', `?wallet-address=${escaped}%3Fa%3Db`],
    ['wallet-address', `?wallet-address=${escaped}%23all`],
    ['wallet-address', '?wallet-address=https%3A%2F%2Fwallet.example%2F%2562ob'],
    ['wallet-address', '?wallet-address=https%3A%2F%2Fevil%40wallet.example%2Fbob'],
    ['wallet-address', `?wallet-address=${escaped}%`],
    ['wallet-address', `?wallet-address=${escaped}%FF`],
    ['wallet-address', `?wallet-address=${escaped}+`],
    ['wallet-address', `?wallet-address=${escaped}&wallet-address=${escaped}`],
    ['wallet-address', `?wallet-address=${escaped}&walletAddress=${escaped}`],
    ['wallet-address', '?walletAddress=bob'],
    ['first', `?wallet-address=${escaped}&first=1&first=1`],
    ['last', `?wallet-address=${escaped}&last=1&last=2`],
    ['cursor', `?wallet-address=${escaped}&cursor=${cursor}&cursor=${cursor}`],
    ['last', `?wallet-address=${escaped}&first=1&last=1`],
    ['last', `?wallet-address=${escaped}&first=1&last=1&cursor=${cursor}`],
    ['cursor', `?wallet-address=${escaped}&cursor=1`],
    ['cursor', `?wallet-address=${escaped}&cursor=241de237-f989-42be-926d-c0c1fca57708`],
  ])('is refused with an error that names %s: "%s"', (path, query) => {
    expect(read(query)).toEqual({ ok: false, path, problem: expect.any(String) })
  })

  test('reads an optional parameter without a value as absent', () => {
    expect(read(`?wallet-address=${escaped}&cursor=&first=2&last=`)).toEqual(
      read(`?wallet-address=${escaped}&first=2`),
    )
    expect(read(`?wallet-address=${escaped}&first=1&first=`)).toMatchObject({ path: 'first' })
  })

  test('reads walletAddress as wallet-address, as a published client writes it', () => {
    expect(read(`?walletAddress=${escaped}&first=2`)).toEqual(
      read(`?wallet-address=${escaped}&first=2`),
    )
  })

  const numbers = ['0', '-1', '101', '1000', '1e1', '0x10', '1.0', '01', '+5', '%205', '5%20']
  const others = ['ten', 'null', 'NaN', 'Infinity', '%D9%A1', '9'.repeat(400)]

  test.each([...numbers, ...others])('must not have the page size "%s"', (number) => {
    for (const path of ['first', 'last']) {
      expect(read(`?wallet-address=${escaped}&${path}=${number}`)).toEqual({
        ok: false,
        path,
        problem: 'must be an integer from 1 to 100',
      })
    }
  })

  test.each([
    'frist=1',
    'WalletAddress=x',
    'toString=1',
    'First=1',
    '__proto__=1',
    '=1',
    '?first=1',
    'first[]=1',
    'start=96d964f0-3421-4df0-bb04-cb8d653bc571',
  ])('ignores unknown parameters, also repeated ones: %s', (parameter) => {
    const known = `wallet-address=${escaped}&last=2&cursor=${cursor}`
    expect(read(`?${known}`)).toMatchObject({ ok: true })
    expect(read(`?${parameter}&${known}&${parameter}`)).toEqual(read(`?${known}`))
    expect(read(`?${parameter}&${known}&last=3`)).toMatchObject({ path: 'last' })
  })

  test('with any text is either accepted or refused as query_invalid', () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom('wallet-address', escaped, 'first', 'last', 'cursor', cursor, '7', '%'),
    )
    const query = fc
      .array(fc.tuple(part, part), { maxLength: 4 })
      .map((pairs) => pairs.map((pair) => pair.join('=')).join('&'))
    fc.assert(
      fc.property(query, (query) => {
        const answer = read(`?${query}`)
        if (answer.ok) return
        expect(['wallet-address', 'first', 'last', 'cursor']).toContain(answer.path)
        expect(refuseProblem('query_invalid', answer)).toMatchObject({ refusal: 'query_invalid' })
      }),
      { numRuns: 1000 },
    )
  })
})
