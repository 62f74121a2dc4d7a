import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type DocumentFetch, remoteClientKeys } from '../../src/index.js'
import { jwkOf, testKey } from '../support/keys.js'
import { isLong } from '../support/runs.js'

const key = testKey('a')
const second = 1_000
const answerMs = 100
const keySet = Buffer.from(JSON.stringify({ keys: [jwkOf(key)] }))

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/**
 * Client keys on a simulated network: paths that contain `bogus` are not found, hosts that contain `hang` never respond
 * and their requests ignore their signals, hosts that contain `slow` fail after 2 s, and all else is a key set.
 */
function setUp() {
  let asked = 0
  const fetch: DocumentFetch = async ({ hostname, pathname }) => {
    asked += 1
    if (hostname.includes('hang')) return new Promise(() => undefined)
    await after(hostname.includes('slow') ? 2 * second : answerMs)
    if (hostname.includes('slow')) throw new Error('no response')
    const status = pathname.includes('bogus') ? 404 : 200
    return { status, contentType: 'application/json', body: keySet }
  }
  const keys = remoteClientKeys({ fetch })
  /** Looks up a key as a grant request does, or as the later requests under a grant do. */
  const find = async (walletAddress: string, mayBeNew = true) => {
    const found = keys.find({ walletAddress, kid: key.kid, mayBeNew })
    return found.then(
      (answer) => answer !== undefined,
      () => false,
    )
  }
  return { find, asked: () => asked }
}

/** Returns how many look-ups find a key: one for each wallet address, at regular times. */
async function served(
  find: (walletAddress: string) => Promise<boolean>,
  addresses: readonly string[],
  everyMs: number,
): Promise<number> {
  let count = 0
  for (const walletAddress of addresses) {
    await vi.advanceTimersByTimeAsync(everyMs)
    void find(walletAddress).then((found) => {
      if (found) count += 1
    })
  }
  await vi.advanceTimersByTimeAsync(8 * second)
  return count
}

/** Looks up 10 URLs every 25 ms. */
function flood(find: (walletAddress: string) => Promise<boolean>, urlOf: (i: number) => string) {
  let i = 0
  const next = () => {
    for (let burst = 0; burst < 10; burst++) void find(urlOf(i++))
    setTimeout(next, 25)
  }
  next()
}

const shops = Array.from({ length: 40 }, (_, i) => `https://shop-${i}.example`)

const floods: readonly (readonly [string, (i: number) => string])[] = [
  ['of an ordinary domain', (i) => `https://h${i}.slow.example`],
  ['of ltd.cc, whose owner can name any number of hosts', (i) => `https://slow${i}.ltd.cc`],
  ['of 60 domains', (i) => `https://h${i}.slow-${i % 60}.example`],
]

describe('new clients', () => {
  test.each(isLong ? floods : floods.slice(1, 2))(
    'of other hosts are served during 400 look-ups per second %s',
    async (_, urlOf) => {
      const { find } = setUp()
      flood(find, urlOf)
      await vi.advanceTimersByTimeAsync(5 * second)
      expect(await served(find, shops, 100)).toBe(40)
    },
  )

  test.each([12, 100])(
    'of a host are served during %i loops of made-up paths there',
    async (loops) => {
      const { find } = setUp()
      let path = 0
      for (let i = 0; i < loops; i++) {
        const loop = async (): Promise<void> => {
          await find(`https://wallet.example/bogus/${path++}`)
          await after(10)
          return loop()
        }
        void loop()
      }
      await vi.advanceTimersByTimeAsync(5 * second)
      const clients = Array.from({ length: 10 }, (_, i) => `https://wallet.example/${i}`)
      expect(await served(find, clients, 500)).toBeGreaterThanOrEqual(9)
    },
  )

  test.each([
    ['256 hosts', 256, (i: number) => `https://hang-${i}.example`, 'https://shop.example'],
    [
      '16 hosts of one domain',
      16,
      (i: number) => `https://hang-${i}.shop.example`,
      'https://a.shop.example',
    ],
  ])(
    'are served within 10 s although the requests to %s never end',
    async (_, count, urlOf, honest) => {
      const { find } = setUp()
      for (let i = 0; i < count; i++) void find(urlOf(i))
      await vi.advanceTimersByTimeAsync(10 * second)
      expect(await served(find, [honest], 0)).toBe(1)
    },
  )
})

describe('clients that use a grant', () => {
  test('are served after 900 s although 256 grants have key sets whose requests never end', async () => {
    const { find } = setUp()
    for (const shop of shops) void find(shop, false)
    await vi.advanceTimersByTimeAsync(second)
    for (let i = 0; i < 256; i++) void find(`https://hang-${i}.example`, false)
    await vi.advanceTimersByTimeAsync(901 * second)
    expect(await served((walletAddress) => find(walletAddress, false), shops, 10)).toBe(40)
  })

  test('are served at once during loops of made-up paths at their host', async () => {
    const { find } = setUp()
    const clients = Array.from({ length: 10 }, (_, i) => `https://wallet.example/${i}`)
    expect(await served((client) => find(client, false), clients, 100)).toBe(10)
    await vi.advanceTimersByTimeAsync(290 * second)
    flood(find, (i) => `https://wallet.example/bogus/${i}`)
    await vi.advanceTimersByTimeAsync(5 * second)
    expect(await served((client) => find(client, false), clients, 100)).toBe(10)
  })
})
