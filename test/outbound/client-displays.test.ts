import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { remoteClientKeys } from '../../src/index.js'
import type { FetchedDocument } from '../../src/network/index.js'
import { manualClock } from '../support/clock.js'
import { retainedBytes } from '../support/heap.js'
import { jwkOf, testKey } from '../support/keys.js'
import { anyText, expectShowable } from '../support/names.js'

const shop = 'https://shop.example/app'
const second = 1_000

type Reply = FetchedDocument | Error

function document(body: unknown, more: Partial<FetchedDocument> = {}): FetchedDocument {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status: 200, contentType: 'application/json', body: Buffer.from(text), ...more }
}

const named = { id: shop, publicName: 'Shop' }

/** Clients on a network and at a time that the test controls. */
function setUp(initial: Reply = document(named)) {
  const clock = manualClock()
  const asked: string[] = []
  const world = { reply: initial as Reply | Promise<FetchedDocument> }
  const { displayOf, find, forget } = remoteClientKeys({
    clock,
    fetch: async (url) => {
      asked.push(url.href)
      const reply = await world.reply
      if (reply instanceof Error) throw reply
      return reply
    },
  })
  return { clock, asked, world, displayOf, find, forget }
}

describe('the name of a client', () => {
  test('is the public name in the document at its wallet address', async () => {
    const { displayOf, asked } = setUp()
    expect(await displayOf(shop)).toEqual({ name: 'Shop' })
    expect(asked).toEqual([shop])
  })

  test.each<[string, Reply]>([
    ['without a public name', document({ id: shop })],
    ['with a public name that is no text', document({ ...named, publicName: ['Shop'] })],
    ['without an id', document({ publicName: 'Shop' })],
    ['of another wallet address', document({ ...named, id: 'https://bank.example/app' })],
    ['whose id is spelled differently', document({ ...named, id: `${shop}/` })],
    ['that is HTML', document(named, { contentType: 'text/html' })],
    ['that is a redirect', document(named, { status: 302 })],
    ['that is missing', document(named, { status: 404 })],
    ['that is no JSON', document('{"id"')],
    ['that is no object', document([named])],
    ['with too many values', document({ ...named, values: Array(600).fill(0) })],
    ['that cannot be fetched', new Error('ECONNRESET')],
  ])('does not exist with a document %s, for 30 s', async (_, reply) => {
    const { displayOf, world, clock, asked } = setUp(reply)
    expect(await displayOf(shop)).toBeUndefined()
    world.reply = document(named)
    clock.advance(29 * second)
    expect(await displayOf(shop)).toBeUndefined()
    clock.advance(second)
    expect(await displayOf(shop)).toEqual({ name: 'Shop' })
    expect(asked).toEqual([shop, shop])
  })

  test('can be shown or is absent, whatever the document', async () => {
    const bodies = fc.oneof(
      fc.record({ id: fc.constantFrom(shop, 'x'), publicName: fc.oneof(anyText, fc.anything()) }),
      fc.json(),
      fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('latin1')),
    )
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const text = typeof body === 'string' ? body : String(JSON.stringify(body, withoutBigInt))
        const display = await setUp(document(text)).displayOf(shop)
        if (display?.name !== undefined) expectShowable(display.name)
      }),
    )
  })

  test('is used for 300 s, or until it is forgotten', async () => {
    const { displayOf, forget, world, clock } = setUp()
    await displayOf(shop)
    world.reply = document({ ...named, publicName: 'Renamed' })
    clock.advance(300 * second - 1)
    expect(await displayOf(shop)).toEqual({ name: 'Shop' })
    clock.advance(1)
    expect(await displayOf(shop)).toEqual({ name: 'Renamed' })
    world.reply = document(named)
    forget(shop)
    expect(await displayOf(shop)).toEqual({ name: 'Shop' })
  })

  test('is requested once for pages that are open at the same time', async () => {
    const { displayOf, asked } = setUp()
    const pages = await Promise.all(Array.from({ length: 100 }, () => displayOf(shop)))
    expect(pages).toEqual(Array(100).fill({ name: 'Shop' }))
    expect(asked).toEqual([shop])
  })

  test('delays no request for the keys of its host, and is not delayed by them', async () => {
    const key = testKey('a')
    const { displayOf, find, world } = setUp(document({ keys: [jwkOf(key)] }))
    let respond: (reply: FetchedDocument) => void = () => undefined
    world.reply = new Promise((resolve) => {
      respond = resolve
    })
    const names = Promise.all([1, 2, 3].map((number) => displayOf(`${shop}/${number}`)))
    const first = find({ walletAddress: shop, kid: key.kid, mayBeNew: true })
    respond(document({ keys: [jwkOf(key)], id: `${shop}/1`, publicName: 'Shop' }))
    expect(await first).toMatchObject({ kid: key.kid })
    expect(await names).toEqual([{ name: 'Shop' }, undefined, undefined])
  })

  test('that was not requested, because too many requests wait, is requested by the next page', async () => {
    const { displayOf, world } = setUp()
    let respond: (reply: FetchedDocument) => void = () => undefined
    world.reply = new Promise((resolve) => {
      respond = resolve
    })
    const waiting = Array.from({ length: 512 }, (_, i) => displayOf(`${shop}/${i}`))
    expect(await displayOf(shop)).toBeUndefined()
    respond(document(named))
    await Promise.all(waiting)
    expect(await displayOf(shop)).toEqual({ name: 'Shop' })
  })

  test('is kept in 2 MiB, whatever the names', async () => {
    const publicName = `${' \u0301'.repeat(600)}${'\u{1f6b2}'.repeat(60)}`
    const start = () =>
      remoteClientKeys({
        clock: manualClock(),
        fetch: async ({ href }) => document({ id: href, publicName }),
      })
    const fill = async ({ displayOf }: ReturnType<typeof start>, count: number) => {
      for (let i = 0; i < count; i++)
        expect(await displayOf(`https://h${i}.example/${i}`)).toBeDefined()
    }
    // Code that is compiled on first use would count as retained too.
    await fill(start(), 200)
    const names = start()
    expect(await retainedBytes(() => fill(names, 2_500))).toBeLessThan(2 * 1_024 ** 2)
    await fill(names, 1)
  })

  test('is fetched over http from this machine only with allowLoopback', async () => {
    const server = createServer(({ url, headers }, response) => {
      const id = `http://localhost:${(server.address() as AddressInfo).port}${url}`
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
      response.end(JSON.stringify({ id, publicName: headers.accept }))
    })
    server.listen(0, 'localhost')
    await once(server, 'listening')
    const walletAddress = `http://localhost:${(server.address() as AddressInfo).port}/shop`
    const local = remoteClientKeys({ allowLoopback: true })
    expect(await local.displayOf(walletAddress)).toEqual({ name: 'application/json' })
    expect(await remoteClientKeys().displayOf(walletAddress)).toBeUndefined()
    server.close()
  })
})

function withoutBigInt(_: string, value: unknown) {
  return typeof value === 'bigint' ? String(value) : value
}
