import { describe, expect, test } from 'vitest'
import { type ClientKeys, remoteClientKeys } from '../../src/index.js'
import type { FetchedDocument } from '../../src/network/index.js'
import { manualClock } from '../support/clock.js'
import { retainedBytes } from '../support/heap.js'
import { hostCall } from '../support/host-call.js'
import { jwkOf, testKey } from '../support/keys.js'
import { isLong } from '../support/runs.js'

const key = testKey('a')
const published = { kid: key.kid, x: key.x }
const second = 1_000
const kiB = 1024
const MiB = 1024 * kiB

type Reply = FetchedDocument | Error | 'never'

function document(text: string, more: Partial<FetchedDocument> = {}): FetchedDocument {
  return { status: 200, contentType: 'application/json', body: Buffer.from(text), ...more }
}

const keySet = document(JSON.stringify({ keys: [jwkOf(key)] }))
const notFound = document('', { status: 404 })
const refusal = Object.assign(new Error('the URL must use https'), { code: 'ERR_FETCH_REFUSED' })
const unreachable = Object.assign(new Error('no such name'), { code: 'ERR_HOST_UNREACHABLE' })

/** Returns the bytes of the heap that are in use for the key sets of many hosts. */
async function bytesAfter(count: number, text: string, mayBeNew: boolean): Promise<number> {
  const start = () => remoteClientKeys({ clock: manualClock(), fetch: async () => document(text) })
  const fill = async ({ find }: ClientKeys, count: number) => {
    for (let i = 0; i < count; i++) {
      const walletAddress = `https://h${i}.example/${i % 7}`
      await ignoringFailure(find({ walletAddress, kid: key.kid, mayBeNew }, hostCall))
    }
  }
  // Code that is compiled on first use would count as retained too.
  await fill(start(), count / 10)
  // So would what the engine itself keeps, which differs between runs.
  const measured: number[] = []
  for (let run = 0; run < 3; run += 1) {
    const keys = start()
    measured.push(await retainedBytes(() => fill(keys, count)))
    await fill(keys, 1)
  }
  return Math.min(...measured)
}

/** Client keys on a network where every URL has a valid key set, unless the test replies otherwise. */
function setUp(replyTo: (url: URL) => Reply | undefined = () => undefined) {
  const clock = manualClock()
  const asked: string[] = []
  const keys = remoteClientKeys({
    clock,
    fetch: async (url) => {
      asked.push(url.href)
      const reply = replyTo(url) ?? keySet
      if (reply === 'never') return new Promise(() => undefined)
      if (reply instanceof Error) throw reply
      return reply
    },
  })
  return {
    clock,
    asked,
    /** A grant request, which anybody can send: the signature is verified only after this look-up. */
    stranger: (walletAddress: string, kid = key.kid) =>
      keys.find({ walletAddress, kid, mayBeNew: true }),
    /** A request under a grant, whose client proved its key when it requested the grant. */
    proved: (walletAddress: string, kid = key.kid) =>
      keys.find({ walletAddress, kid, mayBeNew: false }),
  }
}

const honest = Array.from({ length: 50 }, (_, i) => `https://shop-${i}.example`)

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

async function ignoringFailure(promise: Promise<unknown>): Promise<void> {
  await promise.catch(() => undefined)
}

describe('the key set of a stranger', () => {
  const filled = (item: string, limit = 64 * kiB) => {
    const [head, tail] = ['{"keys":[[', '""]]}']
    const count = Math.floor((limit - head.length - tail.length) / (item.length + 1))
    return head + `${item},`.repeat(count) + tail
  }
  const padded = (member: object) => JSON.stringify({ keys: [{ ...jwkOf(key), ...member }] })

  const keySets: readonly (readonly [number, string, string])[] = [
    [215, 'nested arrays', filled('[]')],
    [40, 'nested objects', filled('{}')],
    [40, 'deeply nested arrays', filled(`${'['.repeat(20)}${']'.repeat(20)}`)],
    [40, 'numbers', filled('1.5')],
    [40, 'a key with a large unknown member', padded({ x5c: ['A'.repeat(60 * kiB)] })],
    [40, 'a large kid', padded({ kid: 'k'.repeat(60 * kiB) })],
    [40, 'a large x', padded({ x: 'A'.repeat(60 * kiB) })],
  ]
  test.each(isLong ? keySets : keySets.slice(0, 1))(
    'leaves no more than its usable keys: %i key sets of 64 KiB with %s',
    async (count, _, text) => {
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64 * kiB)
      expect(await bytesAfter(count, text, true)).toBeLessThan(MiB)
    },
  )

  const largest = JSON.stringify({ keys: largestKeys() })
  const filling: readonly (readonly [string, string, string, boolean, number, number])[] = [
    ['of strangers', 'the largest keys', largest, true, 500, 2 * MiB],
    ['of strangers', 'one small key', JSON.stringify({ keys: [jwkOf(key)] }), true, 4_000, 2 * MiB],
    ['of strangers', 'no keys', '{"keys":[]}', true, 4_000, 2 * MiB],
    ['of proved clients', 'the largest keys', largest, false, 1_500, 16 * MiB],
  ]
  test.each(isLong ? filling : filling.slice(0, 1))(
    'is evicted when the key sets %s use as much as the limit for them: sets with %s',
    async (...given) => {
      const [, , text, mayBeNew, count, bytesMax] = given
      const bytes = await bytesAfter(count, text, mayBeNew)
      expect(bytes).toBeLessThan(bytesMax)
    },
  )
})

/** Twenty keys with kids of 256 characters that need two bytes each. */
function largestKeys() {
  return Array.from({ length: 20 }, (_, i) => ({
    ...jwkOf(key),
    kid: `${i}`.padEnd(256, '\u2026'),
  }))
}

describe('strangers who name many URLs', () => {
  const floods: readonly (readonly [string, (i: number) => string, Reply | undefined])[] = [
    ['that the fetch refuses', (i) => `https://h${i}.example:8443`, refusal],
    ['of many hosts, with valid key sets', (i) => `https://h${i}.example`, undefined],
    ['of subdomains, with valid key sets', (i) => `https://h${i}.flood.example`, undefined],
    ['without a document', (i) => `https://flood.example/${i}`, notFound],
    ['that fail', (i) => `https://h${i}.example`, new Error('ECONNRESET')],
    ['of unreachable hosts', (i) => `https://h${i}.example`, unreachable],
  ]

  test.each(isLong ? floods : floods.slice(0, 3))(
    'evict no proved client: 10,000 URLs %s',
    async (_, urlOf, reply) => {
      const { clock, asked, stranger, proved } = setUp((url) =>
        url.host.startsWith('shop') ? undefined : (reply ?? keySet),
      )
      for (const client of honest) await proved(client)
      for (let i = 0; i < 10_000; i++) await ignoringFailure(stranger(urlOf(i)))
      asked.length = 0
      clock.advance(299 * second)
      for (const client of honest) {
        expect(await proved(client)).toEqual(published)
        expect(await stranger(client)).toEqual(published)
      }
      expect(asked).toEqual([])
    },
  )

  test('with keys and grants of their own, below one domain, evict no client of another domain', async () => {
    const { asked, proved } = setUp()
    for (const client of honest) await proved(client)
    for (let i = 0; i < 15_000; i++) await proved(`https://h${i}.flood.example`)
    asked.length = 0
    for (const client of honest) expect(await proved(client)).toEqual(published)
    expect(asked).toEqual([])
  })

  test('of one host that never respond do not stop the refresh of its proved clients', async () => {
    const clients = Array.from({ length: 20 }, (_, i) => `https://wallet.example/${i}`)
    const { clock, asked, stranger, proved } = setUp((url) =>
      url.pathname.startsWith('/bogus') ? 'never' : undefined,
    )
    for (const client of clients) await proved(client)
    for (let i = 0; i < 12; i++) void ignoringFailure(stranger(`https://wallet.example/bogus/${i}`))
    await turn()
    asked.length = 0
    clock.advance(300 * second)
    for (const client of clients) expect(await proved(client)).toEqual(published)
    clock.advance(300 * second)
    for (const client of clients) expect(await stranger(client)).toEqual(published)
    expect(asked).toHaveLength(40)
  })

  test('of one host that never respond do not stop a live token of a process that has just started', async () => {
    const { stranger, proved } = setUp((url) =>
      url.pathname === '/jwks.json' ? undefined : 'never',
    )
    for (let i = 0; i < 12; i++) void ignoringFailure(stranger(`https://wallet.example/bogus/${i}`))
    await turn()
    expect(await proved('https://wallet.example')).toEqual(published)
  })

  test('of one host that never respond do not hide the new key of a proved client for more than 300 s', async () => {
    const replaced = testKey('b')
    let now = keySet
    const { clock, stranger, proved } = setUp((url) =>
      url.pathname === '/jwks.json' ? now : 'never',
    )
    await proved('https://wallet.example')
    for (let i = 0; i < 12; i++) void ignoringFailure(stranger(`https://wallet.example/bogus/${i}`))
    now = document(JSON.stringify({ keys: [jwkOf(replaced)] }))
    clock.advance(300 * second)
    expect(await stranger('https://wallet.example', replaced.kid)).toEqual({
      kid: replaced.kid,
      x: replaced.x,
    })
  })

  test.each([
    ['keys', keySet],
    ['no keys at the moment', notFound],
  ])(
    'of one host do not stop its proved clients with %s by unknown kids either',
    async (_, reply) => {
      const clients = Array.from({ length: 20 }, (_, i) => `https://wallet.example/${i}`)
      let slow = false
      const { clock, stranger, proved } = setUp((url) =>
        slow && url.pathname !== '/0/jwks.json' ? 'never' : slow ? keySet : reply,
      )
      for (const client of clients) await proved(client)
      clock.advance(60 * second)
      slow = true
      for (const client of clients.slice(1)) void ignoringFailure(stranger(client, 'bogus'))
      await turn()
      clock.advance(240 * second)
      expect(await proved('https://wallet.example/0')).toEqual(published)
    },
  )

  test.each([
    ['subdomains of one domain', (i: number) => `https://h${i}.slow.example`],
    ['addresses', (i: number) => `https://8.8.${i >> 8}.${i & 255}`],
  ])('use a part of the requests: 1,000 %s that never respond', async (_, urlOf) => {
    const { asked, stranger } = setUp((url) => (url.host.startsWith('shop') ? undefined : 'never'))
    for (let i = 0; i < 1_000; i++) void ignoringFailure(stranger(urlOf(i)))
    await turn()
    expect(asked).toHaveLength(8)
    for (const client of honest) expect(await stranger(client)).toEqual(published)
  })

  test('whose name servers do not respond delay no look-up of another client', async () => {
    const looked: string[] = []
    const { find } = remoteClientKeys({
      clock: manualClock(),
      resolve: (hostname) => {
        looked.push(hostname)
        return hostname.startsWith('shop')
          ? Promise.resolve(['10.0.0.1'])
          : new Promise(() => undefined)
      },
    })
    const query = { kid: key.kid, mayBeNew: true }
    for (let i = 0; i < 100; i++) {
      void ignoringFailure(find({ ...query, walletAddress: `https://h${i}.slow.example` }))
    }
    await turn()
    expect(looked).toHaveLength(8)
    // Their addresses are refused, so that no connection is attempted.
    for (const walletAddress of honest)
      await expect(find({ ...query, walletAddress })).rejects.toThrow('not public')
    expect(looked).toHaveLength(8 + honest.length)
  })

  test('of one unreachable host cause one request in 5 s', async () => {
    const { clock, asked, stranger } = setUp(() => unreachable)
    for (let i = 0; i < 100; i++) {
      await expect(stranger(`https://down.example/${i}`)).rejects.toThrow('no such name')
    }
    expect(asked).toHaveLength(1)
    clock.advance(5 * second)
    await expect(stranger('https://down.example/0')).rejects.toThrow('no such name')
    expect(asked).toHaveLength(2)
  })

  test('of an unreachable host do not stop the requests for its proved clients', async () => {
    let down = true
    const { stranger, proved } = setUp(() => (down ? unreachable : undefined))
    await expect(stranger('https://wallet.example/1')).rejects.toThrow()
    down = false
    expect(await proved('https://wallet.example/1')).toEqual(published)
  })
})

describe('the key set of a client that requests a grant', () => {
  test('is used for 30 s, and for 300 s after the client used the grant', async () => {
    const { clock, asked, stranger, proved } = setUp()
    await stranger('https://shop.example')
    clock.advance(30 * second - 1)
    await stranger('https://shop.example')
    expect(asked).toHaveLength(1)
    await proved('https://shop.example')
    clock.advance(270 * second)
    await stranger('https://shop.example')
    expect(asked).toHaveLength(1)
    clock.advance(1)
    await stranger('https://shop.example')
    expect(asked).toHaveLength(2)
  })

  test('is fetched again after 30 s while the client has not used a grant', async () => {
    const { clock, asked, stranger } = setUp()
    await stranger('https://shop.example')
    clock.advance(30 * second)
    await stranger('https://shop.example')
    expect(asked).toHaveLength(2)
  })
})
