import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { remoteClientKeys } from '../../src/index.js'
import type { FetchedDocument } from '../../src/network/index.js'
import { manualClock } from '../support/clock.js'
import { invalidInput } from '../support/invalid-input.js'
import { jwkOf, testKey } from '../support/keys.js'

const shop = 'https://shop.example/app'
const keyA = testKey('a')
const keyB = testKey('b')
const publicA = { kid: keyA.kid, x: keyA.x }
const publicB = { kid: keyB.kid, x: keyB.x }
const second = 1_000

afterEach(() => vi.restoreAllMocks())

type Reply = FetchedDocument | Error

function document(body: unknown, more: Partial<FetchedDocument> = {}): FetchedDocument {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status: 200, contentType: 'application/json', body: Buffer.from(text), ...more }
}

function keySet(...keys: readonly { kid: string; x: string }[]): FetchedDocument {
  return document({ keys: keys.map(jwkOf) })
}

function status(code: number): FetchedDocument {
  return document('', { status: code })
}

const networkError = new Error('ECONNRESET')
const refusal = Object.assign(new Error('the name is not public'), { code: 'ERR_FETCH_REFUSED' })

const invalidDocuments: readonly (readonly [string, Reply])[] = [
  ['301', document({ keys: [jwkOf(keyA)] }, { status: 301 })],
  ['302', document({ keys: [jwkOf(keyA)] }, { status: 302 })],
  ['308', document({ keys: [jwkOf(keyA)] }, { status: 308 })],
  ['204', status(204)],
  ['206', document({ keys: [jwkOf(keyA)] }, { status: 206 })],
  ['401', status(401)],
  ['403', status(403)],
  ['HTML', document({ keys: [jwkOf(keyA)] }, { contentType: 'text/html; charset=utf-8' })],
  ['text', document({ keys: [jwkOf(keyA)] }, { contentType: 'text/plain' })],
  ['no content type', document({ keys: [jwkOf(keyA)] }, { contentType: '' })],
  [
    'a similar but invalid content type',
    document({ keys: [] }, { contentType: 'application/jsonp' }),
  ],
  ['an empty body', document('')],
  ['broken JSON', document('{"keys":[')],
  ['bytes that are not UTF-8', document('', { body: Buffer.from([0x7b, 0xff, 0x7d]) })],
  ['a byte order mark', document(`\ufeff${JSON.stringify({ keys: [jwkOf(keyA)] })}`)],
  ['an array', document([jwkOf(keyA)])],
  ['null', document('null')],
  ['a bare key', document(jwkOf(keyA))],
  ['keys that are not an array', document({ keys: { 0: jwkOf(keyA) } })],
  ['unlimited nesting', document('['.repeat(20_000) + ']'.repeat(20_000))],
]

/** Client keys with a network and a clock that the test controls. */
function setUp(initial: Reply = keySet(keyA)) {
  const clock = manualClock()
  const asked: string[] = []
  const replies = new Map<string, Reply | Promise<FetchedDocument>>()
  const world = { reply: initial as Reply | Promise<FetchedDocument> }
  const keys = remoteClientKeys({
    clock,
    fetch: async (url) => {
      asked.push(url.href)
      const reply = await (replies.get(url.host) ?? world.reply)
      if (reply instanceof Error) throw reply
      return reply
    },
  })
  /** Looks up a key as a grant request does; `later` as the requests under the grant do, whose client is proved. */
  const find = (kid = keyA.kid, walletAddress = shop) =>
    keys.find({ walletAddress, kid, mayBeNew: true })
  const later = (kid = keyA.kid, walletAddress = shop) =>
    keys.find({ walletAddress, kid, mayBeNew: false })
  return { clock, asked, replies, world, keys, find, later }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

/** A reply that arrives when the test releases it. */
function heldReply() {
  let settle: { resolve(reply: FetchedDocument): void; reject(error: Error): void }
  const promise = new Promise<FetchedDocument>((resolve, reject) => {
    settle = { resolve, reject }
  })
  promise.catch(() => undefined)
  return {
    promise,
    resolve: (reply: FetchedDocument) => settle.resolve(reply),
    reject: (error: Error) => settle.reject(error),
  }
}

describe('the key of a client', () => {
  test('is fetched from jwks.json below its wallet address and reduced to kid and x', async () => {
    const { find, asked } = setUp()
    expect(await find()).toEqual(publicA)
    expect(asked).toEqual([`${shop}/jwks.json`])
  })

  test('is fetched for a wallet address at the root of its host', async () => {
    const { keys, asked } = setUp()
    await keys.find({ walletAddress: 'https://shop.example', kid: keyA.kid, mayBeNew: true })
    expect(asked).toEqual(['https://shop.example/jwks.json'])
  })

  test('is the key with exactly the same kid', async () => {
    const { find } = setUp(keySet(keyA, keyB))
    expect(await find(keyA.kid)).toEqual(publicA)
    expect(await find(keyB.kid)).toEqual(publicB)
    expect(await find(keyA.kid.toUpperCase())).toBeUndefined()
    expect(await find(`${keyA.kid} `)).toBeUndefined()
    expect(await find('')).toBeUndefined()
  })

  test('belongs to one wallet address only, even if another shares its host', async () => {
    const { keys, asked } = setUp()
    await keys.find({ walletAddress: `${shop}/1`, kid: keyA.kid, mayBeNew: true })
    await keys.find({ walletAddress: `${shop}/2`, kid: keyA.kid, mayBeNew: true })
    expect(asked).toEqual([`${shop}/1/jwks.json`, `${shop}/2/jwks.json`])
  })
})

describe('a cached key set', () => {
  test('is used for 300 s without another request', async () => {
    const { find, later, asked, clock } = setUp()
    await later()
    clock.advance(300 * second - 1)
    expect(await find()).toEqual(publicA)
    expect(await later()).toEqual(publicA)
    expect(asked).toHaveLength(1)
  })

  test.each([true, false])('is fetched again after 300 s (grant request: %s)', async (mayBeNew) => {
    const { keys, later, find, asked, clock, world } = setUp()
    await later()
    world.reply = keySet(keyB)
    clock.advance(300 * second)
    expect(await keys.find({ walletAddress: shop, kid: keyB.kid, mayBeNew })).toEqual(publicB)
    expect(asked).toHaveLength(2)
    clock.advance(300 * second - 1)
    await find(keyB.kid)
    expect(asked).toHaveLength(2)
  })

  test('is replaced by the currently published key with the same kid', async () => {
    const { later, clock, world } = setUp()
    await later()
    world.reply = keySet({ kid: keyA.kid, x: keyB.x })
    clock.advance(300 * second)
    expect(await later()).toEqual({ kid: keyA.kid, x: keyB.x })
  })

  test.each(['find', 'later'] as const)(
    'is fetched once for concurrent callers (%s)',
    async (as) => {
      const { [as]: look, asked, world } = setUp(keySet(keyA, keyB))
      const held = heldReply()
      world.reply = held.promise
      const answers = [look(), look(), look(keyB.kid), look('none'), look()]
      await turn()
      held.resolve(keySet(keyA, keyB))
      expect(await Promise.all(answers)).toEqual([publicA, publicA, publicB, undefined, publicA])
      expect(asked).toHaveLength(1)
    },
  )
})

describe('a key server that fails temporarily', () => {
  const failures: readonly (readonly [string, Reply])[] = [
    ['a network error', networkError],
    ['500', status(500)],
    ['502', status(502)],
    ['503', status(503)],
    ['599', status(599)],
    ['429', status(429)],
    ...invalidDocuments,
  ]

  test.each(failures)(
    'with %s rejects the lookup instead of reporting an absent key',
    async (_, failure) => {
      const { find } = setUp(failure)
      await expect(find()).rejects.toThrow(Error)
    },
  )

  test.each(failures)('with %s leaves known keys in use for up to 900 s', async (_, failure) => {
    const { find, later, clock, world } = setUp()
    await later()
    world.reply = failure
    clock.advance(300 * second)
    expect(await find()).toEqual(publicA)
    clock.advance(600 * second - 1)
    expect(await find()).toEqual(publicA)
    expect(await later()).toEqual(publicA)
    clock.advance(1)
    await expect(find()).rejects.toThrow()
    await expect(later()).rejects.toThrow()
  })

  test('does not make a kid missing from a stale set count as absent', async () => {
    const { find, later, clock, world } = setUp()
    await later()
    world.reply = networkError
    clock.advance(300 * second)
    await expect(find(keyB.kid)).rejects.toThrow('ECONNRESET')
    await expect(later(keyB.kid)).rejects.toThrow('ECONNRESET')
  })

  test.each(['find', 'later'] as const)(
    'is not contacted for 30 s, and then contacted again (%s)',
    async (as) => {
      const { [as]: look, asked, clock, world } = setUp(networkError)
      await expect(look()).rejects.toThrow('ECONNRESET')
      world.reply = keySet(keyA)
      clock.advance(30 * second - 1)
      await expect(look()).rejects.toThrow('ECONNRESET')
      expect(asked).toHaveLength(1)
      clock.advance(1)
      expect(await look()).toEqual(publicA)
      expect(asked).toHaveLength(2)
    },
  )

  test('is not contacted for 30 s while known keys are stale either', async () => {
    const { later, asked, clock, world } = setUp()
    await later()
    world.reply = networkError
    clock.advance(300 * second)
    await later()
    clock.advance(30 * second - 1)
    await later()
    expect(asked).toHaveLength(2)
    clock.advance(1)
    await later()
    expect(asked).toHaveLength(3)
  })

  test('does not affect other hosts', async () => {
    const { find, replies } = setUp()
    replies.set('broken.example', networkError)
    await expect(find(keyA.kid, 'https://broken.example/app')).rejects.toThrow()
    expect(await find()).toEqual(publicA)
  })

  test('is treated the same when the fetch throws synchronously', async () => {
    const clock = manualClock()
    const keys = remoteClientKeys({
      clock,
      fetch: ((url: URL) => {
        if (url.host === 'broken.example') throw networkError
        return Promise.resolve(keySet(keyA))
      }) as never,
    })
    const query = { kid: keyA.kid, mayBeNew: true }
    for (let i = 0; i < 12; i++) {
      const walletAddress = `https://broken.example/${i}`
      await expect(keys.find({ ...query, walletAddress })).rejects.toThrow('ECONNRESET')
    }
    expect(await keys.find({ ...query, walletAddress: shop })).toEqual(publicA)
  })
})

describe('a withdrawn key', () => {
  test.each([404, 410])('is refused when its document responds with %i', async (code) => {
    const { find, later, clock, world } = setUp()
    await later()
    world.reply = status(code)
    clock.advance(300 * second)
    expect(await find()).toBeUndefined()
    expect(await later()).toBeUndefined()
  })

  test('is refused when its kid is missing, even if other keys remain', async () => {
    const { find, later, clock, world } = setUp(keySet(keyA, keyB))
    await later()
    world.reply = keySet(keyB)
    clock.advance(300 * second)
    expect(await later()).toBeUndefined()
    expect(await later(keyB.kid)).toEqual(publicB)
    expect(await find()).toBeUndefined()
  })

  test.each<[string, Reply]>([
    ['404', status(404)],
    ['a missing kid', keySet(keyB)],
  ])('stays refused after %s while the key server is down', async (_, withdrawn) => {
    const { later, clock, world } = setUp()
    await later()
    world.reply = withdrawn
    clock.advance(300 * second)
    expect(await later()).toBeUndefined()
    world.reply = networkError
    for (let i = 0; i < 40; i++) {
      clock.advance(30 * second)
      expect(await later().catch(() => undefined)).toBeUndefined()
    }
  })

  test('is accepted again when a missing document returns, with at most one request every 30 s', async () => {
    const { find, asked, clock, world } = setUp(status(404))
    expect(await find()).toBeUndefined()
    world.reply = keySet(keyA)
    clock.advance(30 * second - 1)
    expect(await find()).toBeUndefined()
    expect(asked).toHaveLength(1)
    clock.advance(1)
    expect(await find()).toEqual(publicA)
    expect(asked).toHaveLength(2)
  })
})

describe('a URL that the fetch refuses', () => {
  test('is reported on a grant request, and is not requested again for 30 s', async () => {
    const { find, asked, clock } = setUp(refusal)
    const refused = { code: 'ERR_FETCH_REFUSED', message: 'the name is not public' }
    await expect(find()).rejects.toMatchObject(refused)
    clock.advance(30 * second - 1)
    await expect(find()).rejects.toMatchObject(refused)
    expect(asked).toHaveLength(1)
  })

  test('does not withdraw a key that is bound to a grant', async () => {
    const { later, clock, world } = setUp()
    await expect(setUp(refusal).later()).rejects.toThrow('not public')
    await later()
    world.reply = refusal
    clock.advance(300 * second)
    expect(await later()).toEqual(publicA)
    clock.advance(600 * second)
    await expect(later()).rejects.toThrow('not public')
  })
})

describe('a kid that the cached set lacks', () => {
  const lacking = { 'another key': keySet(keyA), 'no key': keySet(), '404': status(404) }
  test.each(
    Object.keys(lacking).flatMap((what) => [['find', what] as const, ['later', what] as const]),
  )(
    'of a proved client is looked up again 5 s after the last request for the set (%s, %s)',
    async (as, what) => {
      const { later, [as]: look, asked, clock, world } = setUp(keySet(keyB))
      expect(await later(keyB.kid)).toEqual(publicB)
      world.reply = lacking[what as keyof typeof lacking]
      clock.advance(300 * second)
      expect(await later(keyB.kid)).toBeUndefined()
      world.reply = keySet(keyB)
      clock.advance(5 * second - 1)
      expect(await look(keyB.kid)).toBeUndefined()
      expect(asked).toHaveLength(2)
      clock.advance(1)
      expect(await look(keyB.kid)).toEqual(publicB)
      expect(asked).toHaveLength(3)
    },
  )

  test('is found although an earlier request is answered later, without it or with a failure', async () => {
    for (const slow of [keySet(keyA), networkError]) {
      const { find, later, clock, world } = setUp()
      await later()
      const held = heldReply()
      world.reply = held.promise
      clock.advance(5 * second)
      const stranger = find('bogus').catch(() => undefined)
      await turn()
      world.reply = keySet(keyB)
      clock.advance(1)
      expect(await later(keyB.kid)).toEqual(publicB)
      if (slow instanceof Error) held.reject(slow)
      else held.resolve(slow)
      expect(await stranger).toBeUndefined()
      expect(await later(keyB.kid)).toEqual(publicB)
      expect(await later()).toBeUndefined()
    }
  })

  test('causes at most one request in 5 s, for any number of kids', async () => {
    const { find, later, asked, clock } = setUp()
    await later()
    clock.advance(5 * second)
    for (let i = 0; i < 100; i++) {
      expect(await (i % 3 ? later : find)(`unknown ${i}`)).toBeUndefined()
      clock.advance(second / 2)
    }
    expect(asked).toHaveLength(1 + 10)
  })

  test('is looked up although the host was just contacted for another wallet address', async () => {
    const { find, later, asked, clock, world } = setUp()
    await later()
    clock.advance(60 * second)
    await find(keyA.kid, 'https://shop.example/other')
    world.reply = keySet(keyB)
    expect(await find(keyB.kid)).toEqual(publicB)
    expect(asked).toHaveLength(3)
  })

  test('does not discard known keys when the lookup fails', async () => {
    const { find, later, clock, world } = setUp()
    await later()
    world.reply = networkError
    clock.advance(60 * second)
    await expect(find(keyB.kid)).rejects.toThrow('ECONNRESET')
    await expect(later(keyB.kid)).rejects.toThrow('ECONNRESET')
    expect(await find()).toEqual(publicA)
    expect(await later()).toEqual(publicA)
  })
})

describe('an invalid key document', () => {
  test.each(invalidDocuments)('is not requested again for 30 s: %s', async (_, reply) => {
    const { find, asked, clock, world } = setUp(reply)
    await expect(find()).rejects.toThrow(Error)
    world.reply = keySet(keyA)
    clock.advance(30 * second - 1)
    await expect(find()).rejects.toThrow(Error)
    expect(asked).toHaveLength(1)
    clock.advance(1)
    expect(await find()).toEqual(publicA)
  })

  test('does not withdraw a key: a token that is bound to it works until the server recovers', async () => {
    for (const [what, reply] of invalidDocuments) {
      const { later, clock, world } = setUp()
      await later()
      world.reply = reply
      for (let waited = 0; waited < 870; waited += 30) {
        clock.advance(30 * second)
        expect(await later(), what).toEqual(publicA)
      }
      clock.advance(30 * second)
      await expect(later(), what).rejects.toThrow(Error)
      world.reply = keySet(keyA)
      clock.advance(30 * second)
      expect(await later(), what).toEqual(publicA)
    }
  })

  test('does not include a document with as many keys as fit into 64 KiB', async () => {
    const bytesOf = (keys: readonly object[]) => JSON.stringify({ keys }).length
    const keys: object[] = [jwkOf(keyA)]
    while (bytesOf(keys) < 64 * 1024 - 200) {
      keys.unshift({ ...jwkOf({ ...keyB, kid: `k${keys.length}` }), key_ops: ['verify'] })
    }
    expect(keys.length).toBeGreaterThan(400)
    const { find, later, asked } = setUp(document({ keys }))
    expect(await find()).toEqual(publicA)
    expect(await later()).toEqual(publicA)
    expect(await later('k17')).toEqual({ ...publicB, kid: 'k17' })
    expect(asked).toHaveLength(1)
  })

  test('says what the client must change, in words that contain nothing of it', async () => {
    const said = new Set<string>()
    for (const [, reply] of invalidDocuments) {
      const { find, later } = setUp(reply)
      for (const look of [find, later]) {
        const error = await look().catch((error) => error)
        expect(error).toMatchObject({ code: 'ERR_KEY_SET' })
        said.add(error.message)
      }
    }
    expect([...said].toSorted()).toEqual([
      'the key set must be JSON in UTF-8',
      'the key set must be an object with an array keys',
      'the key set must have the content type application/json',
      'the key set must not be a redirect',
      'the response for the key set must have status 200',
    ])
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
    'application/jwk-set+json',
    'application/jwk-set+json; charset=utf-8',
  ])('does not include a document of type %s', async (contentType) => {
    const { find } = setUp(document({ keys: [jwkOf(keyA)] }, { contentType }))
    expect(await find()).toEqual(publicA)
  })
})

describe('a key in the set', () => {
  const ambiguous = 'several keys have this kid'
  const ofOtherKind = 'the key must have kty OKP and crv Ed25519'
  const unsound = 'the key must have a canonical x that is not of small order'
  const identityPoint = Buffer.from([1, ...Array<number>(31).fill(0)]).toString('base64url')
  const rsa = { kid: keyA.kid, kty: 'RSA', alg: 'RS256', n: 'AQAB', e: 'AQAB' }

  test.each<[string, string, object, ...object[]]>([
    ['shares its kid with another', ambiguous, jwkOf(keyA), jwkOf({ ...keyA, x: keyB.x })],
    ['is listed twice', ambiguous, jwkOf(keyA), jwkOf(keyA)],
    ['shares its kid with another kind of key', ambiguous, rsa, jwkOf(keyA)],
    ['is an RSA key', ofOtherKind, rsa],
    ['is private', 'the key must not contain a private key', { ...jwkOf(keyA), d: keyB.x }],
    ['is of another type', ofOtherKind, { ...jwkOf(keyA), kty: 'EC' }],
    ['is on another curve', ofOtherKind, { ...jwkOf(keyA), crv: 'X25519' }],
    ['has no alg', 'the key must have alg EdDSA', { ...jwkOf(keyA), alg: undefined }],
    ['is for encryption', 'the key must have use sig, or no use', { ...jwkOf(keyA), use: 'enc' }],
    ['is of small order', unsound, { ...jwkOf(keyA), x: identityPoint }],
    ['is padded', unsound, { ...jwkOf(keyA), x: `${keyA.x}=` }],
    ['is truncated', unsound, { ...jwkOf(keyA), x: keyA.x.slice(0, 40) }],
    ['has no x', unsound, { ...jwkOf(keyA), x: undefined }],
  ])('that %s is not used, and does not affect the others', async (_, problem, ...keys) => {
    const { find, later } = setUp(document({ keys: [...keys, jwkOf(keyB)] }))
    const error = await find().catch((error) => error)
    expect(error).toMatchObject({ code: 'ERR_KEY_UNUSABLE', message: problem })
    expect(await later()).toBeUndefined()
    expect(await find(keyB.kid)).toEqual(publicB)
  })

  test.each([null, 'text', 17, true, []])(
    'that is not an object (%j) does not affect the others',
    async (junk) => {
      const { find } = setUp(document({ keys: [junk, jwkOf(keyA)] }))
      expect(await find()).toEqual(publicA)
    },
  )
})

describe('a host with many wallet addresses', () => {
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, i) => `https://many.example/${i}`)

  test('receives one request for strangers and two for proved clients, and up to four of each while it responds', async () => {
    const { find, later, asked, replies } = setUp()
    const held = heldReply()
    replies.set('many.example', held.promise)
    const answers = Promise.allSettled(
      addresses(24).map((walletAddress, i) =>
        (i % 2 === 0 ? find : later)(keyA.kid, walletAddress),
      ),
    )
    await turn()
    expect(asked).toHaveLength(3)
    const next = heldReply()
    replies.set('many.example', next.promise)
    held.resolve(keySet(keyA))
    await expect.poll(() => asked).toHaveLength(3 + 2 + 4)
    next.resolve(keySet(keyA))
    const outcomes = (await answers).map(({ status }) => status)
    expect(outcomes.filter((outcome) => outcome === 'rejected')).toEqual([])
    expect(asked).toHaveLength(24)
  })

  test('does not delay another host', async () => {
    const { find, replies } = setUp()
    const held = heldReply()
    replies.set('many.example', held.promise)
    const answers = Promise.allSettled(
      addresses(10).map((walletAddress) => find(keyA.kid, walletAddress)),
    )
    expect(await find()).toEqual(publicA)
    held.resolve(keySet(keyA))
    await answers
  })

  test('is contacted for a rejected caller as soon as there is capacity, because the host did not fail', async () => {
    const { find, replies } = setUp()
    const held = heldReply()
    replies.set('many.example', held.promise)
    const victim = 'https://many.example/victim'
    const crowd = Promise.allSettled(
      addresses(512).map((walletAddress) => find(keyA.kid, walletAddress)),
    )
    await expect(find(keyA.kid, victim)).rejects.toThrow('too many requests')
    held.resolve(keySet(keyA))
    await crowd
    expect(await find(keyA.kid, victim)).toEqual(publicA)
  })

  test('counts as contacted when a waiting request starts, not when it begins to wait', async () => {
    const { clock, find, asked, replies } = setUp()
    const held = heldReply()
    replies.set('many.example', held.promise)
    const crowd = Promise.allSettled(
      addresses(3).map((walletAddress) => find(keyA.kid, walletAddress)),
    )
    await turn()
    clock.advance(20 * second)
    held.resolve(keySet(keyA))
    await crowd
    expect(asked).toHaveLength(3)
    clock.advance(5 * second - 1)
    expect(await find(keyB.kid, 'https://many.example/2')).toBeUndefined()
    expect(asked).toHaveLength(3)
    clock.advance(1)
    await find(keyB.kid, 'https://many.example/2')
    expect(asked).toHaveLength(4)
  })
})

describe('a wallet address that the host forgets', () => {
  test.each([true, false])(
    'is fetched again by the next request (grant request: %s)',
    async (mayBeNew) => {
      const { keys, asked, later, world } = setUp()
      await later()
      world.reply = keySet(keyB)
      keys.forget('HTTPS://Shop.example:443/app/')
      expect(await keys.find({ walletAddress: shop, kid: keyB.kid, mayBeNew })).toEqual(publicB)
      expect(asked).toHaveLength(2)
    },
  )

  test.each([
    ['its own', networkError],
    ['its host', Object.assign(new Error('no such name'), { code: 'ERR_HOST_UNREACHABLE' })],
  ])('is fetched again at once after a failure of %s', async (_, failure) => {
    const { keys, find, world } = setUp(failure)
    await expect(find()).rejects.toThrow(failure.message)
    world.reply = keySet(keyA)
    await expect(find()).rejects.toThrow(failure.message)
    keys.forget(shop)
    expect(await find()).toEqual(publicA)
  })

  test.each(['find', 'later'] as const)(
    'is fetched again although a request for it is in progress (%s)',
    async (as) => {
      for (const answer of [keySet(keyA), networkError]) {
        const { keys, [as]: look, asked, world } = setUp()
        const held = heldReply()
        world.reply = held.promise
        const before = look(keyB.kid)
        await turn()
        world.reply = keySet(keyB)
        keys.forget(shop)
        const after = look(keyB.kid)
        if (answer instanceof Error) held.reject(answer)
        else held.resolve(answer)
        expect(await Promise.all([before, after])).toEqual([publicB, publicB])
        expect(await look()).toBeUndefined()
        expect(asked).toHaveLength(2)
      }
    },
  )

  test.each(['find', 'later'] as const)(
    'does not delay the look-up of another, of the same host or not (%s)',
    async (as) => {
      for (const failure of [undefined, networkError]) {
        const { keys, [as]: look, asked, world } = setUp()
        const held = heldReply()
        world.reply = held.promise
        const found = look().catch((error) => error)
        for (let i = 0; i < 20; i++) {
          await turn()
          keys.forget(`https://other${i}.example`)
          keys.forget(`https://shop.example/${i}`)
        }
        if (failure === undefined) held.resolve(keySet(keyA))
        else held.reject(failure)
        expect(await found).toEqual(failure ?? publicA)
        expect(asked).toHaveLength(1)
      }
    },
  )

  test.each(['find', 'later'] as const)(
    'is looked up with two requests at most, however often it is forgotten (%s)',
    async (as) => {
      let requests = 0
      const keys: ReturnType<typeof remoteClientKeys> = remoteClientKeys({
        clock: manualClock(),
        async fetch() {
          requests += 1
          if (requests < 10) keys.forget(shop)
          return keySet(keyA)
        },
      })
      const look = () => keys.find({ walletAddress: shop, kid: keyA.kid, mayBeNew: as === 'find' })
      expect(await look()).toEqual(publicA)
      expect(requests).toBe(2)
      // What was forgotten is not cached.
      expect(await look()).toEqual(publicA)
      expect(requests).toBe(4)
    },
  )

  test('is found again although its host is seen as unreachable by a request that began before', async () => {
    const { keys, find, replies, asked } = setUp()
    const held = heldReply()
    replies.set('shop.example', held.promise)
    const other = find(keyA.kid, 'https://shop.example/other').catch((error) => error)
    await turn()
    keys.forget(shop)
    replies.delete('shop.example')
    held.reject(Object.assign(new Error('no such name'), { code: 'ERR_HOST_UNREACHABLE' }))
    expect(await other).toEqual(publicA)
    expect(await find()).toEqual(publicA)
    expect(asked).toHaveLength(3)
  })

  test.each(['shop', 'http://shop.example', 'https://shop.example?a', 7, undefined])(
    'must be a wallet address: %j',
    (walletAddress) => {
      expect(() => setUp().keys.forget(walletAddress as never)).toThrow(
        invalidInput('walletAddress'),
      )
    },
  )
})

describe('the key of an own account of the host', () => {
  const baseUrl = 'https://wallet.example/bank'
  const identityPoint = Buffer.from([1, ...Array<number>(31).fill(0)]).toString('base64url')
  const filler = Array.from({ length: 500 }, (_, i) => ({ kid: `k${i}`, x: keyB.x }))
  const registered = fc.constantFrom(
    publicA,
    publicB,
    { ...publicA, x: keyB.x },
    { ...publicA, x: identityPoint },
    { ...publicB, kid: 7 as never },
  )
  const keysOf = fc
    .tuple(fc.uniqueArray(registered, { maxLength: 3 }), fc.constantFrom(0, 0, 0, 20, 500))
    .map(([some, more]) => [...some, ...filler.slice(0, more)])

  test('is the registered one at the moment of the look-up, and no other request is sent', async () => {
    const path = fc.constantFrom('', '/alice', '/ALICE', '/alice/shop', 'ers', 'ers/alice')
    const step = fc.record({
      path,
      keys: fc.option(keysOf),
      found: fc.constantFrom('it', 'it', 'it', 'none', 'null', 'another', 'an error'),
      kid: fc.constantFrom(keyA.kid, keyB.kid),
      mayBeNew: fc.boolean(),
      active: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        let [account, read]: [unknown, string[]] = [undefined, []]
        const fetched: string[] = []
        const walletAddresses = {
          async find(url: string) {
            read.push(url)
            if (account instanceof Error) throw account
            return account as never
          },
        }
        const { find } = remoteClientKeys({
          ownAccounts: { baseUrl: `${baseUrl}/`, walletAddresses },
          clock: manualClock(),
          fetch: async (url) => {
            fetched.push(url.href)
            return keySet(keyA)
          },
        })
        for (const { path, keys, found, kid, mayBeNew, active } of steps) {
          const walletAddress = baseUrl + path
          const url = found === 'another' ? `${walletAddress}/` : walletAddress
          account = { url, assetCode: 'USD', assetScale: 2, active, keys }
          if (found === 'none') account = undefined
          if (found === 'null') account = null
          // The code with which a host could fail that reads its accounts with `guardedFetch`.
          if (found === 'an error') account = refusal
          read = []
          const answer = await find({ walletAddress, kid, mayBeNew }).catch(
            (error) => error.code ?? 'unavailable',
          )
          if (path.startsWith('ers')) {
            expect([answer, read]).toEqual([kid === keyA.kid ? publicA : undefined, []])
            continue
          }
          expect(read).toEqual([walletAddress])
          const set = found === 'it' ? (keys ?? []) : []
          const named = set.filter((key) => key.kid === kid)
          const isWrong =
            (found === 'it' && keys === null) ||
            set.some((key) => typeof key.kid !== 'string') ||
            named.length > 1 ||
            named[0]?.x === identityPoint
          const expected = isWrong ? 'ERR_HOST_ANSWER' : named[0]
          expect(answer).toEqual(found === 'an error' ? 'unavailable' : expected)
        }
        for (const url of fetched) expect(url).toMatch(/\/bankers(?:\/alice)?\/jwks\.json$/)
      }),
    )
  })

  test.each<[string, unknown]>([
    ['ownAccounts', 'https://wallet.example'],
    ['ownAccounts.walletAddresses', { baseUrl }],
    ['ownAccounts.walletAddresses', { baseUrl, walletAddresses: {} }],
    ...[undefined, 7, 'wallet.example', 'http://wallet.example', 'https://wallet.example?a'].map(
      (wrong): [string, unknown] => [
        'ownAccounts.baseUrl',
        { baseUrl: wrong, walletAddresses: { find: async () => undefined } },
      ],
    ),
  ])('needs a valid option %s', (option, ownAccounts) => {
    expect(() => remoteClientKeys({ ownAccounts: ownAccounts as never })).toThrow(
      invalidInput(option),
    )
  })
})

describe('for any behaviour of a key server', () => {
  test('a key in use was published at most 900 s ago and has not been seen as withdrawn since; one that is published again is found after 5 s', async () => {
    const step = fc.record({
      wait: fc.constantFrom(0, 1, 4, 5, 15, 29, 30, 31, 100, 299, 300, 301, 600, 899, 900, 901),
      server: fc.constantFrom('key', 'without', 'gone', 'refused', 'down', '503', 'moved', 'html'),
      mayBeNew: fc.boolean(),
    })
    const replies: Record<string, Reply> = {
      key: keySet(keyA),
      without: keySet(keyB),
      gone: status(404),
      refused: refusal,
      down: networkError,
      '503': status(503),
      moved: status(302),
      html: document('<html>', { contentType: 'text/html' }),
    }
    const failing = ['refused', 'down', '503', 'moved', 'html']
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { keys, clock, asked, world } = setUp()
        const nothing = { fetchedAt: -Infinity, published: false }
        const seen = { ...nothing, failedAt: -Infinity, refused: false, proved: false }
        let now = 0
        for (const { wait, server, mayBeNew } of steps) {
          now += wait
          clock.advance(wait * second)
          world.reply = replies[server] ?? networkError
          if (!seen.proved && now - seen.fetchedAt >= 30) Object.assign(seen, nothing)
          const { fetchedAt, failedAt } = seen
          const wasProved = seen.proved
          seen.proved ||= !mayBeNew
          const before = asked.length
          const answer = await keys.find({ walletAddress: shop, kid: keyA.kid, mayBeNew }).then(
            (key) => (key === undefined ? 'none' : 'key'),
            () => 'unavailable',
          )
          const requests = asked.length - before
          expect(requests).toBeLessThanOrEqual(1)
          if (requests === 1 && wasProved) {
            expect(now - Math.max(fetchedAt, failedAt)).toBeGreaterThanOrEqual(5)
          }
          if (wasProved && server === 'key' && answer !== 'key') {
            expect(now - fetchedAt < 5 || now - failedAt < 30).toBe(true)
          }
          if (requests === 1) {
            const failed = { failedAt: now, refused: server === 'refused' }
            if (failing.includes(server)) Object.assign(seen, failed)
            else Object.assign(seen, { fetchedAt: now, published: server === 'key' })
          }
          const age = now - seen.fetchedAt
          if (answer === 'key') {
            expect(seen.published).toBe(true)
            expect(age).toBeLessThan(seen.proved ? 900 : 30)
          }
          if (answer === 'none') expect(seen.published && !(seen.refused && mayBeNew)).toBe(false)
          if (seen.published && age < (seen.proved ? 300 : 30)) {
            expect(answer).toBe('key')
            if (requests === 1) expect(age).toBe(0)
          }
          if (seen.published && age < 900 && age >= 300) {
            expect(answer).toBe('key')
            expect(now - seen.failedAt).toBeLessThan(30)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('without a fetch from the host', () => {
  test('keys are fetched by the guarded fetch, which may reach this machine if that is allowed', async () => {
    const server = createServer((request, response) => {
      const found = request.url === '/shop/jwks.json'
      response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' })
      response.end(found ? JSON.stringify({ keys: [jwkOf(keyA)] }) : '')
    })
    server.listen(0, 'localhost')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const walletAddress = `http://localhost:${port}/shop`
    const query = { walletAddress, kid: keyA.kid, mayBeNew: true }
    expect(await remoteClientKeys({ allowLoopback: true }).find(query)).toEqual(publicA)
    await expect(remoteClientKeys().find(query)).rejects.toMatchObject({
      code: 'ERR_FETCH_REFUSED',
      message: 'the host is this machine, which needs the option allowLoopback',
    })
    server.close()
  })

  test('a runtime without Node is refused unless the host passes a fetch', async () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never)
    expect(() => remoteClientKeys()).toThrow(invalidInput('fetch'))
    expect(() => remoteClientKeys({ fetch: async () => keySet(keyA) })).not.toThrow()
  })

  test.each([
    ['allowLoopback', true],
    ['privateHosts', ['shop.test']],
    ['ports', [443]],
    ['resolve', async () => []],
  ])('the option %s is refused beside a fetch, which would ignore it', (option, value) => {
    const fetch = async () => keySet(keyA)
    expect(() => remoteClientKeys({ fetch, [option]: value })).toThrow(invalidInput(option))
    expect(() => remoteClientKeys({ fetch, [option]: undefined } as object)).not.toThrow()
  })
})
